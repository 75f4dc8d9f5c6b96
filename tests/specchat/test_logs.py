"""The log: figures alone, private, rotated, and never in the way."""

from __future__ import annotations

import logging
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.logs import MOST_BYTES, OLD_FILES, log_path, note, opened_log
from tests.gguf import tiny

MARKER = "xylophonemarker"


def written(path: Path) -> list[str]:
    """The lines without time and process."""
    return [line.split(" ", 3)[3] for line in path.read_text().splitlines()]


def test_a_line_is_an_event_and_its_figures(tmp_path: Path) -> None:
    with opened_log(tmp_path / "log"):
        note("reply.stop", tokens=12, seconds=1.23456789, missing=None)

    assert written(tmp_path / "log") == ["reply.stop tokens=12 seconds=1.23457"]


def test_text_can_get_in_neither_as_an_event_nor_as_a_figure_nor_from_a_library(tmp_path: Path) -> None:
    with opened_log(tmp_path / "log"):
        note(f"what was said: {MARKER}", tokens=1)
        note("reply", words=MARKER)  # type: ignore[arg-type] # the slip that this is about
        logging.getLogger("specchat.figures").warning("hello %s", MARKER)
        logging.getLogger("specchat.figures.below").error(MARKER)
        logging.getLogger().error(MARKER)

    assert written(tmp_path / "log") == ["? tokens=1", "reply"]


def test_nothing_reaches_a_log_that_is_closed_or_off(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with opened_log(tmp_path / "log"):
        pass
    note("later", tokens=1)
    with opened_log(None):
        note("off", tokens=1)

    assert (tmp_path / "log").read_text() == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_folder_and_file_are_the_users_alone_also_where_the_file_was_open_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log"
    with opened_log(path):
        note("first")
    path.chmod(0o644)

    with opened_log(path):
        note("second")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_files_rotate_and_the_oldest_lines_go(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n" * (MOST_BYTES // 4))
    for number in range(1, OLD_FILES + 1):
        (tmp_path / f"log.{number}").write_text(f"{number}")

    with opened_log(path):
        note("new")

    assert written(path) == ["new"]
    assert (tmp_path / "log.1").read_text().startswith("old")
    assert [(tmp_path / f"log.{number}").read_text() for number in range(2, OLD_FILES + 1)] == ["1", "2"]
    assert not (tmp_path / f"log.{OLD_FILES + 1}").exists()


def test_a_log_that_cannot_be_written_is_no_trouble(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()

    with opened_log(tmp_path / "file" / "log"):
        note("event", tokens=1)
    with opened_log(tmp_path):  # a folder
        note("event", tokens=1)

    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with opened_log(Path("/dev/full")):
        note("event", tokens=1)

    assert capfd.readouterr() == ("", "")


def test_the_variable_names_another_file_or_turns_it_off(tmp_path: Path) -> None:
    assert log_path({"SPECCHAT_LOG": "OFF"}) is None
    assert log_path({"SPECCHAT_LOG": str(tmp_path / "x")}) == tmp_path / "x"
    assert log_path({"SPECCHAT_STATE_DIR": str(tmp_path)}) == tmp_path / "log" / "specchat.log"


def test_nothing_that_was_said_is_in_any_file_of_state_cache_and_log(tmp_path: Path) -> None:
    """But for the store of chats, which is made to hold them."""
    model = tiny.write_attention(tmp_path / "tiny.gguf")
    home = tmp_path / f"home-{MARKER}"  # a name of a folder is a word of the user too
    home.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPECCHAT", "XDG"))} | {"HOME": str(home)}
    (tmp_path / f"{MARKER}.txt").write_text(f"attached {MARKER}")

    for args, said in (
        (["-m", str(model), "--max-tokens", "4", "--system", MARKER], f"tell me of {MARKER}\n/quit\n"),
        (["ask", "-m", str(model), "--max-tokens", "4", "-f", f"{MARKER}.txt", f"what is {MARKER}"], ""),
        (["ask", "-m", f"{MARKER}.gguf", MARKER], ""),  # which fails
        (["models", "info", MARKER], ""),
    ):
        subprocess.run(
            [sys.executable, "-m", "specchat", *args],
            input=said.encode(), env=env, cwd=tmp_path, capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name == "specchat.log" for path in files)
    holding = [path for path in files if re.search(MARKER.encode(), path.read_bytes(), re.IGNORECASE)]
    assert [path.name for path in holding if not path.name.startswith("chats.db")] == []
    log = next(path for path in files if path.name == "specchat.log").read_text()
    assert log.count("reply.") == 2
    assert log.count("command.") == 4
