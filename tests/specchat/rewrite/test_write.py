"""A file is the old one or the new one, and in all else what it was."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.rewrite.errors import ChangedOnDisk, NotWritten
from specchat.rewrite.source import read_source
from specchat.rewrite.undo import UndoStore
from specchat.rewrite.write import torn
from tests.specchat.rewrite.faults import CHANGING, FAULTS, READING, Killed, failing

OLD = b"".join(b"old line %d\r\n" % i for i in range(40))
LONGER = OLD.replace(b"old line 7", b"a new and longer line 7")
SHORTER = OLD.replace(b"old line 7\r\n", b"").replace(b"old line 30", b"x")


class Disk:
    """A file, its neighbours and an undo store."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "work" / "a.txt"
        self.file.parent.mkdir()
        self.file.write_bytes(OLD)
        self.store = UndoStore(folder / "undo", clock=lambda: 1e9)

    def save(self, data: bytes) -> None:
        self.store.save(read_source(self.file), data)

    def names(self) -> set[str]:
        return set(os.listdir(self.file.parent))


@pytest.fixture
def place(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.mark.parametrize("mode", [0o751, 0o644, 0o600, 0o4755])
def test_the_mode_stays(place: Disk, mode: int) -> None:
    place.file.chmod(mode)

    place.save(LONGER)

    assert place.file.read_bytes() == LONGER
    assert stat.S_IMODE(place.file.stat().st_mode) == mode


def test_the_mode_stays_under_any_umask(place: Disk) -> None:
    place.file.chmod(0o664)
    before = os.umask(0o077)
    try:
        place.save(LONGER)
    finally:
        os.umask(before)

    assert stat.S_IMODE(place.file.stat().st_mode) == 0o664


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_the_owner_stays(place: Disk) -> None:
    os.chown(place.file, 1234, 2345)

    place.save(LONGER)

    assert (place.file.stat().st_uid, place.file.stat().st_gid) == (1234, 2345)


def test_an_extended_attribute_stays(place: Disk) -> None:
    try:
        os.setxattr(place.file, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")

    place.save(LONGER)

    assert os.getxattr(place.file, "user.note") == b"kept"


def test_a_link_stays_one_and_its_target_is_written(place: Disk) -> None:
    link = place.file.with_name("link")
    link.symlink_to("a.txt")

    place.store.save(read_source(link), LONGER)

    assert os.readlink(link) == "a.txt"
    assert place.file.read_bytes() == LONGER


@pytest.mark.parametrize("data", [LONGER, SHORTER])
def test_both_names_of_one_file_are_written(place: Disk, data: bytes) -> None:
    other = place.file.with_name("other")
    other.hardlink_to(place.file)

    place.save(data)

    assert other.samefile(place.file)
    assert other.read_bytes() == data


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_an_owner_that_a_new_file_cannot_have_keeps_the_old_file(place: Disk) -> None:
    os.chown(place.file, 1234, 2345)
    inode = place.file.stat().st_ino

    with failing(0, FAULTS["forbidden"], names=("fchown",)):
        place.save(LONGER)

    assert (place.file.read_bytes(), place.file.stat().st_ino) == (LONGER, inode)


def test_nothing_is_left_beside(place: Disk) -> None:
    place.save(LONGER)

    assert place.names() == {"a.txt"}


def test_a_read_only_file_stays_as_it_is(place: Disk) -> None:
    place.file.chmod(0o444)

    with pytest.raises(NotWritten, match="read-only; nothing was written"):
        place.save(LONGER)

    assert place.file.read_bytes() == OLD
    assert place.store.past() == []


@pytest.mark.parametrize("change", ["edited", "same size", "removed", "a folder", "a pipe", "a link"])
def test_a_file_that_changed_meanwhile_is_not_written(place: Disk, change: str) -> None:
    source = read_source(place.file)
    if change == "edited":
        place.file.write_bytes(OLD + b"more")
    elif change == "same size":
        place.file.write_bytes(OLD.replace(b"old line 3", b"ald line 3"))
    else:
        place.file.unlink()
    if change == "a folder":
        place.file.mkdir()
    elif change == "a pipe":
        os.mkfifo(place.file)
    elif change == "a link":
        (place.file.parent / "secret").write_bytes(OLD)
        place.file.symlink_to("secret")
    before = place.names()

    with pytest.raises(ChangedOnDisk) as raised:
        place.store.save(source, LONGER)

    assert raised.value.exit_code == 7
    assert "\n" not in str(raised.value)
    assert place.names() == before
    assert place.store.past() == []
    if change == "edited":
        assert place.file.read_bytes() == OLD + b"more"
    if change == "a link":
        assert (place.file.parent / "secret").read_bytes() == OLD


def test_an_edit_while_the_new_file_is_made_is_noticed(place: Disk) -> None:
    source = read_source(place.file)
    with failing(-1, None) as calls, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fchmod", lambda *_: place.file.write_bytes(b"edited"))

        with pytest.raises(ChangedOnDisk):
            place.store.save(source, LONGER)

    assert "fchmod" in calls.made
    assert place.file.read_bytes() == b"edited"
    assert place.names() == {"a.txt"}


def scenario(folder: Path, kind: str) -> tuple[Disk, bytes]:
    """A file that is replaced by name, or in place growing or shrinking, and what it is to hold."""
    place = Disk(folder)
    if kind != "by name":
        place.file.with_name("other").hardlink_to(place.file)
    return place, SHORTER if kind == "shrinking" else LONGER


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["by name", "growing", "shrinking"])
def test_a_fault_at_any_call_leaves_the_old_or_the_new_file(tmp_path: Path, kind: str, fault: str) -> None:
    names = CHANGING + READING
    (tmp_path / "count").mkdir()
    place, data = scenario(tmp_path / "count", kind)
    with failing(-1, None, names) as calls:
        place.save(data)
    assert len(calls.made) > 50

    for at, call in enumerate(calls.made):
        (folder := tmp_path / str(at)).mkdir()
        place, data = scenario(folder, kind)
        source = read_source(place.file)
        outcome: BaseException | None = None
        with failing(at, FAULTS[fault], names):
            try:
                place.store.save(source, data)
            except (NotWritten, ChangedOnDisk, Killed) as error:
                outcome = error

        told = f"call {at}, {call}: {outcome!r}"
        torn_now = place.file.read_bytes()
        if kind == "by name" or fault != "killed":
            assert torn_now in (OLD, data), told
        assert fault == "killed" or torn_now == (OLD if outcome else data), told
        assert fault == "killed" or len(str(outcome or "").splitlines()) <= 1, told
        check_settled(place, data, told)


def check_settled(place: Disk, data: bytes, told: str) -> None:
    """What the next run finds: a whole file, no litter, and the way back exactly where the file is the new one."""
    past = place.store.past()
    present = place.file.read_bytes()
    assert present in (OLD, data), told
    assert len(past) == (present == data), told
    assert place.names() <= {"a.txt", "other"}, told
    if past:
        place.store.undo()
        assert place.file.read_bytes() == OLD, told


def test_a_full_disk_in_place_is_met_before_an_old_byte_is_lost(tmp_path: Path) -> None:
    place, data = scenario(tmp_path, "growing")
    source = read_source(place.file)
    real = os.ftruncate
    seen: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fails_when(place, seen))
        patch.setattr(os, "ftruncate", real)
        with pytest.raises(NotWritten, match="No space left"):
            place.store.save(source, data)

    assert seen[0].startswith(OLD)
    assert place.file.read_bytes() == OLD


def fails_when(place: Disk, seen: list[bytes]) -> object:
    """An fsync that finds the disk full once the file itself has grown."""
    real = os.fsync

    def call(handle: int) -> None:
        if os.fstat(handle).st_ino == place.file.stat().st_ino and not seen:
            seen.append(place.file.read_bytes())
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    return call


@given(st.binary(max_size=12), st.binary(max_size=12), st.integers(0, 12), st.booleans())
def test_what_an_interrupted_overwriting_leaves_is_known(old: bytes, new: bytes, cut: int, back: bool) -> None:
    first, then = (new, old) if back else (old, new)
    passed = [first + then[len(first) : len(first) + n] for n in range(len(then) - len(first) + 1)]
    whole = passed[-1] if passed else first
    passed += [then[:n] + whole[n:] for n in range(min(len(first), len(then)) + 1)]
    present = passed[cut % len(passed)]

    assert present in (old, new) or torn(present, old, new)


@given(st.binary(min_size=4, max_size=12), st.binary(min_size=4, max_size=12), st.integers(0, 11))
def test_a_byte_of_neither_is_nobody_s_interrupted_overwriting(old: bytes, new: bytes, at: int) -> None:
    at %= min(len(old), len(new))
    odd = next(value for value in range(256) if value not in (old[at], new[at]))
    present = old[:at] + bytes([odd]) + old[at + 1 :]

    assert not torn(present, old, new)
