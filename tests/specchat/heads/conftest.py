"""A tiny model for trainings, and folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.heads import command
from tests.gguf import tiny


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of this test alone."""
    for name, where in {"DATA_DIR": "data", "CACHE_DIR": "cache", "STATE_DIR": "state", "CONFIG": "own.toml"}.items():
        monkeypatch.setenv(f"SPECCHAT_{name}", str(tmp_path / where))
    monkeypatch.setattr(command, "harmless", lambda shelf, path: path)
    return tmp_path


@pytest.fixture
def model(own: Path) -> Path:
    return tiny.write_attention(own / "target.gguf")
