"""A write with a copy beside it and a failing command behind it: whatever fails, and whenever a process ends."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from specchat.errors import Refusal
from specchat.rewrite import saving
from specchat.rewrite.after import AfterFail, Failure
from specchat.rewrite.backups import make_backup
from specchat.rewrite.disk import place_of
from specchat.rewrite.endings import Converted
from specchat.rewrite.inputs import Job, Mode, Where
from specchat.rewrite.journal import ORPHAN_S, Journal, State
from specchat.rewrite.long import Chunks
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.results import Result, Status
from specchat.rewrite.shown import Format
from specchat.rewrite.source import read_source
from specchat.rewrite.terms import Terms
from specchat.rewrite.undo import UndoStore
from tests.specchat.rewrite.faults import CHANGING, FAULTS, Killed, failing
from tests.specchat.rewrite.killing import killed_after

OLD, NEW = b"".join(b"old line %d\n" % i for i in range(50)), b"".join(b"new line %d\r\n" % i for i in range(70))
CALLS = (*CHANGING, "link")  # those that only read fail in the tests of a write and of an undo alone


class Disk:
    """A file in a folder of its own, and the store of its writes."""

    def __init__(self, folder: Path) -> None:
        (folder / "work").mkdir(parents=True)
        self.file = folder / "work" / "a.txt"
        self.file.write_bytes(OLD)
        self.state = folder / "undo"
        self.job = job_for(self.file)

    def save(self) -> Result:
        outcome = SimpleNamespace(record=SimpleNamespace(source=read_source(self.file), instruction="do it"))
        store = UndoStore(self.state)
        return saving.saved(self.job, store, cast(Outcome, outcome), NEW, Converted())

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.file.parent.iterdir()}


def job_for(file: Path) -> Job:
    return Job(
        names=(str(file),),
        instruction="do it",
        mode=Mode.WRITE,
        terms=Terms(backup_suffix=".orig"),
        where=Where(),
        encoding=None,
        chunks=Chunks.AUTO,
        goes_on=False,
        after=("false",),
        after_fail=AfterFail.UNDO,
        force=False,
        shown=Format.UNIFIED,
        as_json=False,
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_call_leaves_a_whole_file_a_whole_copy_and_a_whole_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(saving, "run_after", lambda command, path: Failure("false ended with 1"))
    with failing(-1, None, CALLS) as counted:
        assert Disk(tmp_path / "count").save().status is Status.UNDONE
    assert len(counted.made) > 50

    for at, call in enumerate(counted.made):
        disk = Disk(tmp_path / str(at))
        outcome: Result | BaseException
        with failing(at, FAULTS[fault], CALLS):
            try:
                outcome = disk.save()
            except (Refusal, Killed) as error:
                outcome = error

        told = f"call {at}, {call}: {outcome!r}"
        present = disk.file.read_bytes()
        assert present in (OLD, NEW), told
        if fault != "killed":
            assert len(str(outcome).splitlines()) <= 1 or isinstance(outcome, Result), told
            left_new = isinstance(outcome, Result) and outcome.status is Status.WRITTEN
            assert (present == NEW) == left_new, told
        copy = disk.file.with_name("a.txt.orig")
        assert not copy.exists() or copy.read_bytes() == OLD, told
        check_settled(disk, told)


def check_settled(disk: Disk, told: str) -> None:
    """What the next run finds: a whole file and a whole store, and the way back from the new file."""
    store, journal = UndoStore(disk.state), Journal(disk.state)
    past = store.past()
    present = disk.file.read_bytes()
    assert present in (OLD, NEW), told
    assert [each.entry.state for each in past] == [State.DONE] * len(past), told
    assert all(journal.copy(digest) for each in past for digest in (each.entry.old, each.entry.new)), told
    if present == NEW:
        store.undo()
        assert disk.file.read_bytes() == OLD, told


CHILD = """
import sys
from pathlib import Path
from tests.specchat.rewrite.test_saving import Disk, job_for
disk = Disk.__new__(Disk)
disk.file, disk.state = Path(sys.argv[1]), Path(sys.argv[2])
disk.job = job_for(disk.file)
print("ready", flush=True)
while True:
    disk.save()
    disk.file.with_name("a.txt.orig").unlink()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_process_that_is_killed_leaves_the_old_or_the_new_file_and_no_half_copy(tmp_path: Path) -> None:
    chance = random.Random(7)
    disk = Disk(tmp_path)
    seen = set()

    for _ in range(12):
        killed_after(CHILD, [disk.file, disk.state], chance.uniform(0, 0.15), signal.SIGKILL)

        copy = disk.file.with_name("a.txt.orig")
        assert not copy.exists() or copy.read_bytes() == OLD
        assert disk.file.read_bytes() in (OLD, NEW)
        check_settled(disk, "killed")
        seen.add(len(UndoStore(disk.state).past()))
        copy.unlink(missing_ok=True)

    assert len(seen) > 3  # it did write between the kills


def test_what_a_killed_process_left_beside_a_file_goes_when_it_is_old_and_nothing_else_does(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    folder = disk.file.parent
    old, young = folder / ".specchat-0123abcd.part", folder / ".specchat-89abcdef.part"
    others = [folder / ".specchat-notes.part", folder / "mine.part", folder / ".specchat-0123abcd.part.txt"]
    for path in (old, young, *others):
        path.write_text("half")
    for path in (old, *others):
        os.utime(path, (0, path.stat().st_mtime - ORPHAN_S - 60))

    make_backup(place_of(disk.file), OLD, ".orig")

    assert disk.names == {"a.txt", "a.txt.orig", young.name, *(path.name for path in others)}
