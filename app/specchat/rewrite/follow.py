"""Where in the old file a text that is being written has come to, and what it changed on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specchat.rewrite.align import Replaced, align
from speculation.types import Step

_FARTHEST = 200  # lines that are looked through, to both sides, for the place that was reached
_ENOUGH = 4  # filled lines that are the same, from which on that place is certain


@dataclass(frozen=True, slots=True)
class Progress:
    """One step, and how far it brought the rewrite. Seconds ahead are estimates."""

    step: Step | None  # None: text that was held back
    text: str
    line: int  # old lines of the part that are done
    lines: int  # ... of so many
    edits: tuple[Replaced, ...]  # so far, in lines of the old file
    tokens: int  # written so far
    tokens_per_step: float | None
    seconds: float  # that the steps took so far
    seconds_left: float | None
    plain_seconds_left: float | None  # that plain decoding would take from here on
    whole_copies: int  # the last steps in a row whose guesses were accepted whole


class Follower:
    """Grows with the text; every stretch of it is compared once."""

    def __init__(self, old: Sequence[str]) -> None:
        self.lines: list[str] = []  # written and whole
        self.half = ""  # of the line that is being written
        self.edits: list[Replaced] = []
        self._old = old
        self._settled = 0  # old lines up to here ...
        self._settled_new = 0  # ... are compared with written lines up to here
        self._run = _ENOUGH  # filled lines that were the same, one behind the other, since the last edit
        self._certain = (0, 0)

    @property
    def line(self) -> int:
        """How many old lines are done; a guess while it is in the middle of an edit."""
        return min(len(self._old), self._settled + len(self.lines) - self._settled_new)

    @property
    def settled(self) -> tuple[int, int]:
        """Up to where the old lines are done for certain, and the written ones, which end like those."""
        return self._certain

    def feed(self, text: str, copied: int | None = None) -> None:
        """Take up text; `copied` is the index of the old line that its last guessed token was copied from."""
        *whole, self.half = (self.half + text).split("\n")
        for line in whole:
            self.lines.append(line.removesuffix("\r"))
            self._settle(None)
        self._settle(copied)

    def _settle(self, copied: int | None) -> None:
        """Find the place behind the last written line, if that is an old line again."""
        if len(self.lines) == self._settled_new:
            return
        for place in self._places(copied):
            if self._old[place - 1] == self.lines[-1] and self._goes_on_to(place):
                old, new = self._old[self._settled : place], self.lines[self._settled_new :]
                self.edits += [
                    Replaced(
                        each.start + self._settled,
                        each.end + self._settled,
                        each.new_start + self._settled_new,
                        each.new_end + self._settled_new,
                    )
                    for each in align(old, new)
                ]
                at_once = (place, len(self.lines)) == (self._settled + 1, self._settled_new + 1)
                self._settled, self._settled_new = place, len(self.lines)
                self._run = self._run + bool(self.lines[-1].strip()) if at_once else 0
                if self._run >= _ENOUGH:
                    self._certain = (self._settled, self._settled_new)
                return

    def _goes_on_to(self, place: int) -> bool:
        """Whether the line before is the same as well, for one alone may be like many others."""
        at_once = place - 1 == self._settled and len(self.lines) - 1 == self._settled_new
        return at_once or (place > 1 and len(self.lines) > 1 and self._old[place - 2] == self.lines[-2])

    def _places(self, copied: int | None) -> Iterator[int]:
        natural = self._settled + len(self.lines) - self._settled_new
        near = [] if copied is None else [copied, copied + 1]
        near.append(natural)
        for distance in range(1, _FARTHEST):
            near += [natural - distance, natural + distance]
        return (place for place in near if self._settled < place <= len(self._old))
