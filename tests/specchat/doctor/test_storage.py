"""Memory, disk and file modes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from specchat.doctor.finding import Verdict
from specchat.doctor.storage import check_disk, check_memory, check_private, private_places, readable_by_others
from specchat.fit import Room
from specchat.folders import history_path, refused_folder, states_folder

GB = 10**9
modes = pytest.mark.skipif(sys.platform == "win32", reason="file modes")


def test_memory_is_ok_a_problem_or_not_known() -> None:
    def verdict(free: int | None) -> Verdict:
        return check_memory(Room(free, 16 * GB), 2 * GB, is_gpu=False).verdict

    assert verdict(8 * GB) is Verdict.OK
    assert verdict(GB) is Verdict.PROBLEM
    assert verdict(None) is Verdict.NOTE


def test_a_folder_that_is_not_there_yet_is_looked_at_where_it_would_be(tmp_path: Path) -> None:
    finding = check_disk(tmp_path / "a" / "b", 0)

    assert finding.verdict is Verdict.OK
    assert not (tmp_path / "a").exists()


def test_too_little_room_for_the_starter_pair_is_a_note_with_both_sizes(tmp_path: Path) -> None:
    finding = check_disk(tmp_path, 1 << 60)

    assert finding.verdict is Verdict.NOTE
    assert "SPECCHAT_MODELS_DIR" in finding.advice


def test_a_file_in_the_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "models").touch()

    assert check_disk(tmp_path / "models" / "below", 0).verdict is Verdict.PROBLEM


def private(folder: Path) -> Path:
    """A folder as specchat makes it, with a file in it."""
    folder.mkdir(mode=0o700, parents=True)
    os.close(os.open(folder / "file", os.O_CREAT | os.O_WRONLY, 0o600))
    return folder


@modes
def test_what_only_its_owner_can_read_is_ok(tmp_path: Path) -> None:
    (finding,) = check_private([private(tmp_path / "undo"), tmp_path / "not there"])

    assert finding.verdict is Verdict.OK


@modes
def test_an_open_folder_is_a_problem_that_names_it_and_the_command(tmp_path: Path) -> None:
    undo = private(tmp_path / "undo")
    (undo / "file").chmod(0o644)
    undo.chmod(0o755)

    (finding,) = check_private([undo])

    assert finding.verdict is Verdict.PROBLEM
    assert f"{undo} and 1 more" in finding.said
    assert finding.advice == f"chmod -R go= {undo}"


@modes
def test_an_open_file_in_a_closed_folder_is_out_of_reach(tmp_path: Path) -> None:
    undo = private(tmp_path / "undo")
    (undo / "file").chmod(0o644)

    assert readable_by_others(undo) == []
    assert readable_by_others(undo / "file") == []


@modes
def test_links_are_not_followed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    assert readable_by_others(tmp_path / "link") == []


@modes
def test_settings_that_others_can_read_are_a_note(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "config.toml").touch()
    (tmp_path / "config.toml").chmod(0o644)

    (finding,) = check_private([], tmp_path / "config.toml")

    assert finding.verdict is Verdict.NOTE


def test_the_store_of_chats_and_the_saved_states_are_among_the_private_places(tmp_path: Path) -> None:
    environ = {f"SPECCHAT_{kind}_DIR": str(tmp_path / kind) for kind in ("DATA", "CACHE", "STATE")}

    private = set(private_places(environ))
    assert {history_path(environ).parent, states_folder(environ), refused_folder(environ)} <= private


def test_windows_has_no_modes_to_look_at(tmp_path: Path) -> None:
    (finding,) = check_private([tmp_path], tmp_path, "win32")

    assert finding.verdict is Verdict.OK
