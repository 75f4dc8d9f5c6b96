"""A command line for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.rewrite import command, dry_run
from tests.specchat.rewrite.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SPECCHAT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config" / "config.toml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    made = Shell(monkeypatch, capsysbinary)
    for module in (command, dry_run):
        monkeypatch.setattr(module, "open_session", made.open_session)
    monkeypatch.setattr(dry_run, "_is_here", lambda args: True)
    return made
