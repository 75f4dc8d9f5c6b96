"""The pieces of a long rewrite: how large they may be, what is left to do, and what the model is shown around each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from specchat.dialogue import Dialogue
from specchat.errors import InputRefused
from specchat.rewrite.checks import Rails
from specchat.rewrite.chunks import split
from specchat.rewrite.generate import GROWTH, Rewriting
from specchat.rewrite.part import Around, Part
from specchat.rewrite.partial import Piece
from specchat.rewrite.source import SourceFile

_BEFORE = 1 / 10  # share of the context for the lines in front of a piece; small models write those behind it too
_WORDS = 40  # tokens that say which lines these are
_MAY_GROW = 0.3  # share of a piece that is kept free for what the model adds


class Cutter:
    """Cuts one file for one request and one context."""

    def __init__(self, session: Dialogue, source: SourceFile, instruction: str, guard: Rails) -> None:
        """Measure. Raises InputRefused where not even the request fits the context."""
        self._session = session
        self._source = source
        self._instruction = instruction
        self._guard = guard
        self._sizes: dict[int, int] = {}  # line -> tokens
        self._room = session.model.n_ctx or sys.maxsize
        try:
            self.bare = self._rewriting(Part(0, 0), Around())
        except InputRefused as error:
            raise InputRefused(
                f"the request alone takes more than the {self._room} tokens that the context holds"
            ) from error

    def tokens(self, part: Part) -> int:
        """Tokens of some lines, each counted on its own."""
        return sum(map(self._size, range(part.start, part.end)))

    def cut(self, part: Part) -> list[Part]:
        """A part as pieces that fit. Raises InputRefused for a line that is too long to be one."""
        free = self._room - self.bare.needed_tokens
        sizes = [self._size(line) for line in range(part.start, part.end)]
        most = free / (2 + GROWTH)
        for line, size in enumerate(sizes, part.start + 1):
            if size > most:
                raise InputRefused(
                    f"line {line} of {self._source.name} has {size} tokens, which are read and written again in one "
                    f"piece, and the context holds {self._room}; make it larger (--ctx)"
                )
        around = _WORDS + int(self._room * _BEFORE)
        return split(self._source.texts, part, sizes, max(1, int((free - around) / (2 + _MAY_GROW))))

    def begin(self, part: Part, done: Sequence[Piece]) -> Rewriting:
        """Ask for a piece, or for the beginning of one that is longer than its lines are. Raises InputRefused."""
        free = self._room - self.bare.needed_tokens - _WORDS - int((2 + GROWTH) * self.tokens(part))
        for around in (self._around(part, done, free), Around()):
            try:
                return self._rewriting(part, around)
            except InputRefused:
                if part.end - part.start == 1 and not around.before:
                    raise
        return self.begin(Part(part.start, (part.start + part.end) // 2), done)

    def _around(self, part: Part, done: Sequence[Piece], free: int) -> Around:
        before: list[str] = []
        is_new = False
        left = min(int(self._room * _BEFORE), free)
        for line, new in _backwards(self._source, done, part.start):
            left -= self._session.model.count(f"{line}\n")
            if left < 0:
                break
            before.append(line)
            is_new = is_new or new
        return Around(before=tuple(before[::-1]), is_new=is_new)

    def _size(self, line: int) -> int:
        if line not in self._sizes:
            self._sizes[line] = self._session.model.count(f"{self._source.texts[line]}\n")
        return self._sizes[line]

    def _rewriting(self, part: Part, around: Around) -> Rewriting:
        return Rewriting(self._session, self._source, self._instruction, part, self._guard, around)


def left_of(source: SourceFile, parts: Sequence[Part], done: Sequence[Piece]) -> Iterator[Part]:
    """What is to be written still of some parts, without the blank lines that stand next to pieces."""
    for part in parts:
        at = part.start
        inside = [piece.part for piece in done if part.start <= piece.part.start and piece.part.end <= part.end]
        for piece in [*inside, Part(part.end, part.end)]:
            start, end = at, piece.start
            while start > part.start and start < end and not source.texts[start].strip():
                start += 1
            while end < part.end and start < end and not source.texts[end - 1].strip():
                end -= 1
            if start < end:
                yield Part(start, end)
            at = piece.end


def _backwards(source: SourceFile, done: Sequence[Piece], at: int) -> Iterator[tuple[str, bool]]:
    """The lines in front of a place as they are now, the nearest first, and whether they were written by the model."""
    for piece in [*reversed([piece for piece in done if piece.part.end <= at]), None]:
        end = 0 if piece is None else piece.part.end
        for line in range(at - 1, end - 1, -1):
            yield source.texts[line], False
        if piece is not None:
            for text in reversed(piece.lines):
                yield text, True
            at = piece.part.start
