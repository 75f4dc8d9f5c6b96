"""Chats of a file are taken up into the store; those that are here already are left as they are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from specchat.history.errors import ImportRefused
from specchat.history.importing import read_chats
from specchat.history.records import ChatRecord
from specchat.history.store import Store

AT_ONCE = 100  # chats of a file that are stored together


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a file."""

    new: int
    known: int  # that were here already
    empty: int  # without messages
    problem: ImportRefused | None  # which ended the reading; what came before it was taken up

    @property
    def line(self) -> str:
        """What was taken up, for people."""
        left = [f"{self.known} {'was' if self.known == 1 else 'were'} here already"] if self.known else []
        left += [f"{self.empty} had no messages"] if self.empty else []
        return "; ".join([f"{self.new} chat{'' if self.new == 1 else 's'} taken up", *left])


def take_up(store: Store, path: Path | None) -> Taken:
    """Take up the chats of a file, None: of standard input. Waits for the disk. Raises StoreRefused."""
    new = known = empty = 0
    chats, problem, more = read_chats(path), None, True
    while more:
        waiting: list[ChatRecord] = []
        try:
            waiting.extend(islice(chats, AT_ONCE))  # what came before a fault stays in it
        except ImportRefused as error:
            problem = error
        full = [record for record in waiting if record.turns]
        put = store.put_new(full)
        new, known, empty = new + put, known + len(full) - put, empty + len(waiting) - len(full)
        more = len(waiting) == AT_ONCE and problem is None
    return Taken(new, known, empty, problem)
