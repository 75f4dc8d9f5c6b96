"""The processes beside specchat, from an installed one and from a stand-alone build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import specchat
from specchat import workers
from specchat.workers import WORD, WORKERS, pip_command, worker_command

FOLDER = Path(specchat.__file__).parent


def test_an_installed_specchat_runs_a_worker_by_its_file_away_from_the_files_beside_it() -> None:
    assert worker_command(FOLDER / "hub_worker.py") == [sys.executable, "-P", str(FOLDER / "hub_worker.py")]
    assert pip_command() == [sys.executable, "-P", "-m", "pip"]


def test_a_stand_alone_build_starts_itself_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert worker_command(FOLDER / "hub_worker.py") == [sys.executable, WORD, "hub_worker"]
    assert pip_command() == [sys.executable, WORD, "pip"]


def test_every_worker_is_known_to_a_stand_alone_build() -> None:
    assert sorted(path.stem for path in FOLDER.rglob("*_worker.py")) == sorted(WORKERS)


def test_a_command_line_is_no_work_for_a_worker() -> None:
    assert workers.run([]) is None
    assert workers.run(["ask", WORD, "pip"]) is None


def test_the_word_leads_to_the_work() -> None:
    script = f"import sys; from specchat.workers import run; sys.exit(run(['{WORD}', *sys.argv[1:]]))"

    def done(*names: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, *names]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert done("pip", "--version").stdout.startswith("pip ")
    assert done("template_worker").stdout == "{}\n"  # ready, and its input has ended
    assert done("os").stderr == "specchat: there is no worker os\n"
