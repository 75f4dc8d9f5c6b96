"""What a review of rewritten files stands at: decisions, order, place, and the way back. Knows no widget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specchat.rewrite.flags import Flag
from specchat.rewrite.hunks import Decision
from specchat.tui.looking import Looking, Order
from specchat.tui.reviewed import ReviewedFile, Selected


@dataclass(frozen=True, slots=True)
class _Before:
    """What an undo goes back to."""

    files: tuple[ReviewedFile, ...]
    number: int
    hunk: str


class Reviewing(Looking):
    """The files, what was decided, and the hunk that is looked at. What is not written can be taken back."""

    def __init__(self, files: Sequence[ReviewedFile]) -> None:
        super().__init__(files)
        self._past: list[_Before] = []

    # Decisions.

    @property
    def is_settled(self) -> bool:
        """Whether nothing can be decided here: no hunk, a written file, a hunk that is being written anew."""
        hunk = self.hunk
        return hunk is None or self.number in self.written or (self.number, hunk.id) in self.redoing

    def decide(self, decision: Decision) -> bool:
        """Decide on the present hunk and go to the next open one; False where none is open any more."""
        hunk = self.hunk
        assert hunk is not None
        self._change(self.number, self.file.decided(decision, [hunk.id]))
        return self._go_on()

    def decide_rest(self, decision: Decision) -> bool:
        """The same for the present hunk and the open ones that follow it in the list of the file."""
        hunk, rest = self.hunk, self.listed[self.position + 1 :]
        assert hunk is not None
        ids = [hunk.id, *self._open(self.number, rest)]
        self._change(self.number, self.file.decided(decision, ids))
        return self._go_on()

    def decide_all(self, decision: Decision) -> bool:
        """The same for the present hunk and all that are open, in all files."""
        self._keep()
        here = self.hunk
        files = []
        for number, file in enumerate(self.files):
            ids = [] if number in self.written else self._open(number, file.review.hunks)
            if number == self.number and here is not None and not self.is_settled:
                ids.append(here.id)
            files.append(file.decided(decision, ids) if ids else file)
        self.files = tuple(files)
        return self._go_on()

    def split(self) -> bool:
        """Cut the present hunk into smaller ones; False where that is not possible."""
        hunk = self.hunk
        assert hunk is not None
        file = self.file.split(hunk)
        if file is self.file:
            return False
        self._change(self.number, file)
        self._at[self.number] = f"{hunk.id}.1"
        return True

    def edit(self, lines: Sequence[str]) -> None:
        """Other lines in place of those of the present hunk, which is accepted with them."""
        hunk = self.hunk
        assert hunk is not None
        self._change(self.number, self.file.edited(hunk.id, lines).decided(Decision.ACCEPTED, [hunk.id]))

    def redone(self, number: int, hunk: str, lines: Sequence[str], flags: Iterable[Flag] = ()) -> bool:
        """Lines that the model wrote anew; False where the hunk is no more, as after an undo of its making."""
        self.redoing.discard((number, hunk))
        if number in self.written or all(each.id != hunk for each in self.files[number].review.hunks):
            return False
        self._change(number, self.files[number].edited(hunk, lines, flags))
        return True

    def undo(self) -> bool:
        """Take back the last change; False where there is none."""
        while self._past:
            before = self._past.pop()
            files = tuple(
                now if number in self.written else then
                for number, (now, then) in enumerate(zip(self.files, before.files, strict=True))
            )
            if files != self.files:
                self.files, self.number = files, before.number
                self._at[before.number] = before.hunk
                return True
        return False

    # What comes of it.

    @property
    def selection(self) -> list[Selected]:
        """The accepted hunks of each file that has some and is not written yet."""
        return self.selected(range(len(self.files)))

    def selected(self, numbers: Iterable[int]) -> list[Selected]:
        """The same of some files only."""
        found = []
        for number in numbers:
            file = self.files[number]
            hunks = [] if number in self.written else file.of(Decision.ACCEPTED)
            if hunks:
                ids = tuple(hunk.id for hunk in hunks)
                found.append(Selected(number, file.review, ids, tuple(file.checked(hunks))))
        return found

    @property
    def unwritten(self) -> int:
        """How many hunks are accepted and not written."""
        return sum(len(f.of(Decision.ACCEPTED)) for i, f in enumerate(self.files) if i not in self.written)

    @property
    def n_open(self) -> int:
        """How many hunks are not decided, in files that are not written."""
        return sum(len(f.of(Decision.OPEN)) for i, f in enumerate(self.files) if i not in self.written)

    # Inside.

    def _keep(self) -> None:
        self._past.append(_Before(self.files, self.number, "" if self.hunk is None else self.hunk.id))

    def _change(self, number: int, file: ReviewedFile) -> None:
        self._keep()
        self.files = (*self.files[:number], file, *self.files[number + 1 :])

    def _go_on(self) -> bool:
        """Go to the next open hunk: behind the present one, before it, or in another file."""
        at = self.position
        for hunk in (*self.listed[at + 1 :], *self.listed[: max(0, at)]):
            if self.number not in self.written and self._open(self.number, [hunk]):
                self._at[self.number] = hunk.id
                return True
        for step in range(1, len(self.files)):
            number = (self.number + step) % len(self.files)
            if number not in self.written and self._open(number, self.files[number].review.hunks):
                self.number = number
                first = self._open(number, self.listed)[0]
                self._at[number] = first
                return True
        return False


__all__ = ["Order", "Reviewing"]
