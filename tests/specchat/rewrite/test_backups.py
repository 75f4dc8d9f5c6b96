"""A copy beside replaces nothing, on systems with and without second names of a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.errors import UsageError
from specchat.rewrite.backups import backup_path, check_backup, checked_suffix, make_backup
from specchat.rewrite.disk import Place, place_of
from specchat.rewrite.errors import ChangedOnDisk, NotWritten

OLD = b"old\n"


@pytest.fixture(params=["second names", "none"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A file on a system of either kind."""
    if request.param == "none":

        def refuse(*args: object, **more: object) -> None:
            raise OSError(errno.EPERM, "no second names here")

        monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a.txt").write_bytes(OLD)
    return place_of(tmp_path / "a.txt")


def test_it_is_made_once(place: Place) -> None:
    assert make_backup(place, OLD, ".orig") is True
    assert backup_path(place, ".orig").read_bytes() == OLD
    assert make_backup(place, OLD, ".orig") is False
    check_backup(place, OLD, ".orig")
    assert sorted(os.listdir(place.real.parent)) == ["a.txt", "a.txt.orig"]


@pytest.mark.parametrize("other", [b"", b"old\nmore\n", b"ol"])
def test_another_one_stays(place: Place, other: bytes) -> None:
    backup_path(place, ".orig").write_bytes(other)

    for act in (check_backup, make_backup):
        with pytest.raises(NotWritten, match="holds something else"):
            act(place, OLD, ".orig")

    assert backup_path(place, ".orig").read_bytes() == other
    assert sorted(os.listdir(place.real.parent)) == ["a.txt", "a.txt.orig"]


def test_one_that_appears_behind_the_last_look_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def appear(handle: int) -> None:
        backup_path(place, ".orig").write_bytes(b"mine")
        real(handle)

    monkeypatch.setattr(os, "fsync", appear)

    with pytest.raises(NotWritten):
        make_backup(place, OLD, ".orig")
    assert backup_path(place, ".orig").read_bytes() == b"mine"
    assert sorted(os.listdir(place.real.parent)) == ["a.txt", "a.txt.orig"]


def test_a_full_disk_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)

    with pytest.raises(NotWritten, match="No space left"):
        make_backup(place, OLD, ".orig")
    assert os.listdir(place.real.parent) == ["a.txt"]


def test_a_path_that_leads_elsewhere_by_now_gets_none(place: Place, tmp_path: Path) -> None:
    place.named.unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_bytes(OLD)
    place.named.symlink_to("other/a.txt")

    with pytest.raises(ChangedOnDisk):
        make_backup(place, OLD, ".orig")
    assert os.listdir(tmp_path / "other") == ["a.txt"]
    assert not backup_path(place, ".orig").exists()


@given(st.text(max_size=40))
def test_a_suffix_that_is_taken_keeps_the_copy_in_its_folder(suffix: str) -> None:
    place = Place(Path("/folder/a.txt"), Path("/folder/a.txt"), (0, 0))
    try:
        checked_suffix(suffix)
    except UsageError:
        return

    path = os.path.normpath(str(backup_path(place, suffix)))
    assert os.path.dirname(path) == "/folder"
    assert os.path.basename(path).startswith("a.txt")
    assert path != "/folder/a.txt"
