"""A process that is killed, not one that fails: the file is whole, and the store too."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import pytest

from specchat.rewrite.journal import Journal, State
from specchat.rewrite.undo import UndoStore
from tests.specchat.rewrite.killed_child import VERSIONS
from tests.specchat.rewrite.killing import killed_after

KILLS = 30


CHILD = "import sys; from pathlib import Path; from tests.specchat.rewrite import killed_child as c; \
c.main(Path(sys.argv[1]), c.UndoStore(Path(sys.argv[2])))"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("linked", [False, True])
def test_a_killed_process_leaves_a_whole_file_and_a_whole_store(tmp_path: Path, linked: bool) -> None:
    chance = random.Random(30 + linked)
    file = tmp_path / "work" / "a.txt"
    file.parent.mkdir()
    file.write_bytes(VERSIONS[0])
    names = {"a.txt"}
    if linked:
        (tmp_path / "work" / "other").hardlink_to(file)
        names.add("other")
    seen = set()

    for _ in range(KILLS // 2):
        killed_after(CHILD, [file, tmp_path / "undo"], chance.uniform(0, 0.15), signal.SIGKILL)

        if not linked:
            assert file.read_bytes() in VERSIONS  # before anything is set right
        store = UndoStore(tmp_path / "undo")
        past = store.past()
        present = file.read_bytes()
        assert present in VERSIONS
        assert {path.name for path in file.parent.iterdir()} == names
        journal = Journal(tmp_path / "undo")
        assert [each.entry.state for each in past] == [State.DONE] * len(past)
        assert all(journal.copy(digest) for each in past for digest in (each.entry.old, each.entry.new))
        if past:
            assert journal.copy(past[0].entry.new) == present
            seen.add(len(past))
        if linked:
            assert file.samefile(tmp_path / "work" / "other")

    assert len(seen) > KILLS // 4  # it did write between the kills
