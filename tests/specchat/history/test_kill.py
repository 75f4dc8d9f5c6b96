"""Processes that are killed while they write, export and migrate: three hundred times nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.specchat.history import nursery

ROOT = Path(nursery.__file__).parents[3]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork and no SIGKILL")
def test_three_hundred_kills_lose_nothing_that_was_finished(tmp_path: Path) -> None:
    # A kill loses nothing that was handed to the system, so that the disk need not be waited for.
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else tmp_path
    with TemporaryDirectory(dir=place) as folder:
        lines = killed(Path(folder))

    assert {name: int(kills) for name, kills, _ in lines} == nursery.KILLS
    assert sum(nursery.KILLS.values()) == 300
    assert all(int(reports) > 10 for _, _, reports in lines)  # they did work between the kills


def killed(folder: Path) -> list[list[str]]:
    ended = subprocess.run(
        [sys.executable, "-m", nursery.__name__, str(folder), "300"],
        env={"PYTHONPATH": ":".join([str(ROOT), *sys.path])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    return [line.split() for line in ended.stdout.splitlines()]
