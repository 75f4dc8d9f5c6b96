"""Taking writes back, and a store that is whole whenever a process ends."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.errors import InputRefused
from specchat.folders import undo_folder
from specchat.rewrite.errors import ChangedOnDisk, NotWritten
from specchat.rewrite.journal import ORPHAN_S, Entry, Journal, State
from specchat.rewrite.source import read_source
from specchat.rewrite.undo import ChangedSince, UndoStore
from tests.specchat.rewrite.faults import CHANGING, FAULTS, READING, Killed, failing

OLD = b"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nseven\r\n"
NEW = OLD.replace(b"two", b"TWO").replace(b"five", b"FIVE")


class Clock:
    """Time that passes by a second at each look."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(OLD)
    return tmp_path / "a.txt"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> UndoStore:
    return UndoStore(tmp_path / "state" / "undo", clock)


def save(store: UndoStore, file: Path, data: bytes) -> Entry:
    entry = store.save(read_source(file), data, "louder")
    assert entry is not None
    return entry


def test_a_write_is_taken_back(store: UndoStore, file: Path) -> None:
    entry = save(store, file, NEW)

    store.undo(entry.id[:4])

    assert file.read_bytes() == OLD


def test_the_undo_can_be_undone(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)

    back = store.undo()
    store.undo(back.id)

    assert file.read_bytes() == NEW


def test_restoring_puts_the_old_contents_back_whatever_came_since_and_loses_nothing(
    store: UndoStore, file: Path
) -> None:
    entry = save(store, file, NEW)
    file.write_bytes(b"what a formatter made of it\n")

    back = store.restore(entry)
    assert file.read_bytes() == OLD
    with pytest.raises(InputRefused, match="already as it was"):
        store.restore(entry)

    store.undo(back.id)
    assert file.read_bytes() == b"what a formatter made of it\n"


def test_without_an_id_the_last_write_that_stands_is_taken_back(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    save(store, file, b"third\n")

    store.undo()
    store.undo()

    assert file.read_bytes() == OLD
    with pytest.raises(InputRefused, match="nothing to undo"):
        store.undo()


def test_writing_what_is_there_is_no_write(store: UndoStore, file: Path) -> None:
    assert store.save(read_source(file), OLD) is None
    assert store.past() == []


@pytest.mark.parametrize("wanted", ["ffffffff", "", "../../x", "\x1b[31m"])
def test_an_id_that_names_nothing_is_refused_in_one_clean_line(store: UndoStore, file: Path, wanted: str) -> None:
    save(store, file, NEW)

    with pytest.raises(InputRefused) as raised:
        store.undo(wanted)

    assert not set("\x1b\n") & set(str(raised.value))
    assert file.read_bytes() == NEW


def test_a_list_names_the_request_and_what_was_undone(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    store.undo()

    back, first = store.past()

    assert (first.entry.title, first.undone, first.entry.named) == ("louder", True, str(file))
    assert (back.entry.undoes, back.undone) == (first.entry.id, False)


def test_a_file_that_changed_since_is_not_touched_and_a_merge_is_offered(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    file.write_bytes(NEW.replace(b"seven", b"SEVEN!"))

    with pytest.raises(ChangedSince, match="without conflicts") as raised:
        store.undo()

    assert raised.value.exit_code == 7
    assert file.read_bytes() == NEW.replace(b"seven", b"SEVEN!")
    assert raised.value.merged is not None
    assert raised.value.merged.data == OLD.replace(b"seven", b"SEVEN!")


def test_the_offered_merge_is_written_and_can_be_undone(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    file.write_bytes(edited := NEW + b"eight\r\n")
    with pytest.raises(ChangedSince) as raised:
        store.undo()

    entry = store.merge_back(raised.value)

    assert file.read_bytes() == OLD + b"eight\r\n"
    store.undo(entry.id)
    assert file.read_bytes() == edited


def test_a_merge_that_was_offered_for_other_contents_is_not_written(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    file.write_bytes(NEW + b"eight\r\n")
    with pytest.raises(ChangedSince) as raised:
        store.undo()
    file.write_bytes(NEW + b"nine\r\n")

    with pytest.raises(ChangedSince):
        store.merge_back(raised.value)

    assert file.read_bytes() == NEW + b"nine\r\n"


def test_where_both_changed_a_line_the_merge_says_so(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    file.write_bytes(NEW.replace(b"TWO", b"2"))

    with pytest.raises(ChangedSince, match="1 conflict") as raised:
        store.undo()

    merged = raised.value.merged
    assert merged is not None
    assert merged.data.splitlines(keepends=True)[1:6] == [
        b"<<<<<<< the file now\r\n",
        b"2\r\n",
        b"=======\r\n",
        b"two\r\n",
        merged.data.splitlines(keepends=True)[5],
    ]
    assert merged.data.splitlines()[5].startswith(b">>>>>>> before ")


def test_a_file_that_is_gone_is_not_made_anew(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    file.unlink()

    with pytest.raises(ChangedOnDisk) as raised:
        store.undo()

    assert not file.exists()
    assert store.copy_path(store.past()[0].entry).read_bytes() == OLD
    assert str(store.copy_path(store.past()[0].entry)) in str(raised.value)


def test_a_path_that_leads_elsewhere_now_is_not_followed(store: UndoStore, file: Path) -> None:
    save(store, file, NEW)
    file.rename(file.with_name("secret"))
    file.symlink_to("secret")

    with pytest.raises(ChangedOnDisk, match="another file"):
        store.undo()

    assert file.with_name("secret").read_bytes() == NEW


def test_the_store_is_the_user_s_alone(store: UndoStore, file: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        save(store, file, NEW)
    finally:
        os.umask(before)

    modes = {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode))
        for path in [tmp_path / "state" / "undo", *(tmp_path / "state" / "undo").rglob("*")]
    }
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_store_that_was_open_to_others_is_closed(store: UndoStore, file: Path, tmp_path: Path) -> None:
    (tmp_path / "state" / "undo").mkdir(parents=True)
    (tmp_path / "state" / "undo").chmod(0o755)

    save(store, file, NEW)

    assert stat.S_IMODE((tmp_path / "state" / "undo").stat().st_mode) == 0o700


def test_equal_contents_are_kept_once(store: UndoStore, file: Path, tmp_path: Path) -> None:
    save(store, file, NEW)
    save(store, file, OLD)
    save(store, file, NEW)

    assert len(list((tmp_path / "state" / "undo" / "copies").iterdir())) == 2


def test_a_spoilt_copy_is_not_written_back(store: UndoStore, file: Path) -> None:
    entry = save(store, file, NEW)
    store.copy_path(entry).write_bytes(b"rot")

    with pytest.raises(InputRefused, match="is lost"):
        store.undo()

    assert file.read_bytes() == NEW


def test_a_spoilt_copy_is_replaced_by_the_next_write(store: UndoStore, file: Path) -> None:
    entry = save(store, file, NEW)
    store.copy_path(entry).write_bytes(b"rot")
    file.write_bytes(OLD)

    save(store, file, NEW)
    store.undo()

    assert file.read_bytes() == OLD


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b"{}", b'{"id": "00000000", "state": "done"}', b"\xff"])
def test_a_spoilt_entry_hides_no_other(store: UndoStore, file: Path, tmp_path: Path, junk: bytes) -> None:
    save(store, file, NEW)
    (tmp_path / "state" / "undo" / "entries" / "00000000.json").write_bytes(junk)

    assert len(store.past()) == 1


def test_an_entry_cannot_name_a_copy_elsewhere(store: UndoStore, file: Path, tmp_path: Path) -> None:
    entry = save(store, file, NEW)
    path = tmp_path / "state" / "undo" / "entries" / f"{entry.id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "old": "../../../a.txt"}))

    with pytest.raises(InputRefused, match="is lost"):
        store.undo()


def test_old_writes_and_their_copies_are_forgotten(store: UndoStore, file: Path, tmp_path: Path, clock: Clock) -> None:
    save(store, file, b"x\n")
    clock.now += 2 * ORPHAN_S
    recent = save(store, file, NEW)
    for path in (tmp_path / "state" / "undo" / "copies").iterdir():
        os.utime(path, (0, 0))

    assert store.prune(older_than_s=ORPHAN_S) == 1
    assert [past.entry.id for past in store.past()] == [recent.id]
    kept = {path.read_bytes() for path in (tmp_path / "state" / "undo" / "copies").iterdir()}
    assert kept == {b"x\n", NEW}


def test_a_copy_that_is_just_being_used_outlives_a_sweep(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "undo")
    digest = journal.keep(b"x")

    journal.sweep(os.stat(tmp_path / "undo" / "copies" / digest).st_mtime + 1)

    assert journal.copy(digest) == b"x"


def test_a_forgotten_write_cannot_be_undone(store: UndoStore, file: Path) -> None:
    entry = save(store, file, NEW)

    store.forget(entry)

    assert store.past() == []


def test_a_write_that_another_process_is_at_is_left_alone(store: UndoStore, file: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state" / "undo")
    entry = save(store, file, NEW)
    journal.put(replace(entry, state=State.PENDING))
    file.write_bytes(OLD)

    with journal.claimed(entry.id):
        UndoStore(tmp_path / "state" / "undo").settle()
        assert [each.state for each in journal.entries()] == [State.PENDING]

    UndoStore(tmp_path / "state" / "undo").settle()
    assert journal.entries() == []


def test_a_write_that_was_interrupted_before_another_edit_is_not_taken_for_whole(
    store: UndoStore, file: Path, tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "state" / "undo")
    entry = save(store, file, NEW)
    journal.put(replace(entry, state=State.PENDING))
    file.write_bytes(NEW.replace(b"FIVE", b"five"))

    store.settle()

    assert [each.state for each in journal.entries()] == [State.UNCLEAR]
    assert file.read_bytes() == NEW.replace(b"FIVE", b"five")


def test_a_store_that_cannot_be_made_stops_the_write(file: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")

    with pytest.raises(NotWritten, match="nothing was written"):
        UndoStore(tmp_path / "state" / "undo").save(read_source(file), NEW)

    assert file.read_bytes() == OLD


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_call_of_an_undo_leaves_a_whole_file_and_a_whole_store(tmp_path: Path, fault: str) -> None:
    names = CHANGING + READING
    with failing(-1, None, names) as counted:
        written(tmp_path / "count")[1].undo()
    assert len(counted.made) > 50

    for at, call in enumerate(counted.made):
        file, store = written(tmp_path / str(at))
        outcome: BaseException | None = None
        with failing(at, FAULTS[fault], names):
            try:
                store.undo()
            except (NotWritten, ChangedOnDisk, InputRefused, Killed) as error:
                outcome = error

        told = f"call {at}, {call}: {outcome!r}"
        present = file.read_bytes()
        assert present in (OLD, NEW), told
        assert fault == "killed" or present == (NEW if outcome else OLD), told
        past = store.past()
        assert len(past) == (2 if present == OLD else 1), told
        assert [each.entry.state for each in past] == [State.DONE] * len(past), told
        journal = Journal(file.parent / "undo")
        assert all(journal.copy(digest) for each in past for digest in (each.entry.old, each.entry.new)), told
        if present == NEW:
            store.undo()
            assert file.read_bytes() == OLD, told


def written(folder: Path) -> tuple[Path, UndoStore]:
    """A file that a store has written."""
    folder.mkdir()
    (file := folder / "a.txt").write_bytes(OLD)
    store = UndoStore(folder / "undo", Clock())
    save(store, file, NEW)
    return file, store


def test_the_state_folder_is_where_the_user_wants_it(tmp_path: Path) -> None:
    assert undo_folder({"SPECCHAT_STATE_DIR": str(tmp_path)}) == tmp_path / "undo"
    assert undo_folder({}).name == "undo"
