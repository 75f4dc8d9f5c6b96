"""Which hunk of which file a review looks at, and the ways to the others. Knows no widget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from specchat.rewrite.flags import by_risk
from specchat.rewrite.hunks import Decision, Hunk
from specchat.tui.reviewed import ReviewedFile


class Order(StrEnum):
    """How hunks are listed."""

    PLACE = "by place"
    RISK = "by risk"


class Looking:
    """The files and the place in them; what is written or being written anew is passed by."""

    def __init__(self, files: Sequence[ReviewedFile]) -> None:
        if not files:
            raise ValueError("there is nothing to review")
        self.files = tuple(files)
        self.order = Order.PLACE
        self.written: dict[int, str] = {}  # file -> id for undo
        self.redoing: set[tuple[int, str]] = set()  # file and hunk
        self._at: list[str] = [each.review.hunks[0].id if each.review.hunks else "" for each in files]
        self._listed: tuple[ReviewedFile, Order, list[Hunk]] | None = None
        self.number = next((i for i, each in enumerate(files) if each.review.hunks), 0)

    @property
    def file(self) -> ReviewedFile:
        """The file that is looked at."""
        return self.files[self.number]

    @property
    def listed(self) -> list[Hunk]:
        """Its hunks in the chosen order."""
        if self._listed is None or self._listed[0] is not self.file or self._listed[1] is not self.order:
            hunks = list(self.file.review.hunks)
            shown = hunks if self.order is Order.PLACE else by_risk(hunks, self.file.flags)
            self._listed = (self.file, self.order, shown)
        return self._listed[2]

    @property
    def position(self) -> int:
        """Where in the list the present hunk stands; -1 in a file without changes."""
        wanted = self._at[self.number]
        return next((i for i, hunk in enumerate(self.listed) if hunk.id == wanted), min(0, len(self.listed) - 1))

    @property
    def hunk(self) -> Hunk | None:
        """The hunk that is looked at."""
        return self.listed[self.position] if self.listed else None

    def move(self, step: int) -> bool:
        """Go to the next hunk or the one before, also into other files; False where there is none."""
        at = self.position + step
        if self.listed and 0 <= at < len(self.listed):
            self._at[self.number] = self.listed[at].id
            return True
        number = self.number + step
        while 0 <= number < len(self.files):
            if self.files[number].review.hunks:
                self.number = number
                self._at[number] = self.listed[0 if step > 0 else -1].id
                return True
            number += step
        return False

    def move_open(self, step: int) -> bool:
        """Go to the next hunk that is not decided or to the one before, also in other files; False where none is."""
        number, at = self.number, self._at[:]
        while self.move(step):
            if self.hunk is not None and self.number not in self.written and self._open(self.number, [self.hunk]):
                return True
        self.number, self._at = number, at
        return False

    def find(self, text: str) -> bool:
        """Go to the next hunk that holds a text, in either case, in its old or its new lines; False where none does."""
        number, at = self.number, self._at[:]
        n_hunks = sum(len(file.review.hunks) for file in self.files)
        for _ in range(n_hunks):
            if not self.move(1):
                self.number = next(i for i, file in enumerate(self.files) if file.review.hunks)
                self._at[self.number] = self.listed[0].id
            if self.hunk is not None and self.file.holds(self.hunk, text):
                return True
        self.number, self._at = number, at
        return False

    def move_file(self, step: int) -> bool:
        """Go to the next file or the one before; False where there is none."""
        if not 0 <= self.number + step < len(self.files):
            return False
        self.number += step
        return True

    def go(self, position: int) -> None:
        """Go to a hunk of the list."""
        self._at[self.number] = self.listed[position].id

    def go_file(self, number: int) -> None:
        """Go to a file."""
        self.number = number

    def toggle_order(self) -> Order:
        """List the hunks in the other order; the present one stays."""
        self.order = Order.RISK if self.order is Order.PLACE else Order.PLACE
        return self.order

    def _open(self, number: int, hunks: Iterable[Hunk]) -> list[str]:
        return [hunk.id for hunk in hunks if hunk.decision is Decision.OPEN and (number, hunk.id) not in self.redoing]
