"""The store of chats, looked at without changing it and without showing any of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from specchat.doctor.chats import check_chats
from specchat.doctor.finding import Verdict
from specchat.history.schema import MIGRATIONS
from specchat.history.store import Store


def made(path: Path) -> Path:
    """An empty store, closed."""
    Store.open(path).close()
    return path


def test_no_store_is_no_problem_and_none_is_made(tmp_path: Path) -> None:
    (finding,) = check_chats(tmp_path / "chats" / "chats.db")

    assert finding.verdict is Verdict.OK
    assert not (tmp_path / "chats").exists()


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    (finding,) = check_chats(tmp_path / "file" / "chats" / "chats.db")

    assert finding.verdict is Verdict.PROBLEM
    assert finding.said == f"none can be kept: nothing can be written into {tmp_path / 'file' / 'chats'}"
    assert "SPECCHAT_DATA_DIR" in finding.advice


def test_a_folder_in_the_place_of_the_store_is_a_problem(tmp_path: Path) -> None:
    (finding,) = check_chats(tmp_path)

    assert finding.verdict is Verdict.PROBLEM
    assert "is not a file" in finding.said


def test_a_sound_store_is_counted(tmp_path: Path) -> None:
    (finding,) = check_chats(made(tmp_path / "chats.db"))

    assert finding.verdict is Verdict.OK
    assert finding.said.startswith("0 chats, ")
    assert finding.values["version"] == len(MIGRATIONS)


def test_a_store_that_is_open_elsewhere_is_looked_at_all_the_same(tmp_path: Path) -> None:
    with Store.open(tmp_path / "chats.db"):
        (finding,) = check_chats(tmp_path / "chats.db")

    assert finding.verdict is Verdict.OK


def test_a_name_with_signs_of_a_uri_is_read_as_a_name(tmp_path: Path) -> None:
    folder = tmp_path / "a?mode=memory#%41"
    folder.mkdir()

    (finding,) = check_chats(made(folder / "chats.db"))

    assert finding.verdict is Verdict.OK


def test_damage_is_a_problem_that_says_that_nothing_is_deleted(tmp_path: Path) -> None:
    path = made(tmp_path / "chats.db")
    data = bytearray(path.read_bytes())
    data[4096 : 4096 * 4] = b"\xff" * (4096 * 3)
    path.write_bytes(data)

    (finding,) = check_chats(path)

    assert finding.verdict is Verdict.PROBLEM
    assert "nothing is deleted" in finding.advice
    assert path.read_bytes() == bytes(data)


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)

    (finding,) = check_chats(path)

    assert finding.verdict is Verdict.PROBLEM


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chats.db")) as other:
        other.execute("CREATE TABLE mine (words)")

    (finding,) = check_chats(tmp_path / "chats.db")

    assert finding.verdict is Verdict.PROBLEM
    assert "no store of chats" in finding.said


def test_a_newer_store_asks_for_a_newer_specchat(tmp_path: Path) -> None:
    path = made(tmp_path / "chats.db")
    with closing(sqlite3.connect(path)) as store:
        store.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")

    (finding,) = check_chats(path)

    assert finding.verdict is Verdict.PROBLEM
    assert "update specchat" in finding.advice


def test_stores_that_were_set_aside_are_named(tmp_path: Path) -> None:
    (tmp_path / "chats.db.damaged-20261130-080000").write_bytes(b"x" * 1000)
    (tmp_path / "chats.db.damaged-20261130-080000-wal").touch()

    aside, present = check_chats(tmp_path / "chats.db")

    assert aside.verdict is Verdict.NOTE
    assert "1 kB" in aside.said
    assert present.verdict is Verdict.OK
