"""The tokens of one conversation, growing at the end and sometimes cut.

Guessers follow a context from step to step. A bookmark tells one how much of what it saw still stands,
in a time that does not depend on the length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from speculation.types import Tokens


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How much of a context was seen, and how often it had been cut by then."""

    length: int = 0
    cuts: int = 0


class Context:
    """Prompt plus everything emitted, as token ids."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        given = np.fromiter(tokens, dtype=np.int32)
        self._buffer: Tokens = np.empty(max(1024, 2 * len(given)), dtype=np.int32)
        self._buffer[: len(given)] = given
        self._length = len(given)
        self._cuts: list[int] = []  # the length after each cut
        self.given = 0  # how many leading tokens were read and not written: what the present reply answers

    def __len__(self) -> int:
        return self._length

    @property
    def tokens(self) -> Tokens:
        """All tokens, shape (len(self),); a read-only view that the next change may invalidate."""
        view = self._buffer[: self._length]
        view.flags.writeable = False
        return view

    def tail(self, n: int) -> Tokens:
        """The last n tokens, or all when there are fewer. n = -1 means all."""
        return self.tokens if n < 0 else self.tokens[max(0, self._length - n) :]

    def extend(self, tokens: Sequence[int] | Tokens) -> None:
        """Append tokens."""
        needed = self._length + len(tokens)
        if needed > len(self._buffer):
            grown = np.empty(2 * needed, dtype=np.int32)
            grown[: self._length] = self._buffer[: self._length]
            self._buffer = grown
        self._buffer[self._length : needed] = tokens
        self._length = needed

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens."""
        if length < self._length:
            self._length = length
            self._cuts.append(length)

    def bookmark(self) -> Bookmark:
        """Remember the present state."""
        return Bookmark(self._length, len(self._cuts))

    def unchanged_since(self, mark: Bookmark) -> int:
        """How many leading tokens are certainly the same as when the bookmark was taken."""
        return min([mark.length, *self._cuts[mark.cuts :]])


def common_prefix(a: Tokens, b: Tokens) -> int:
    """How many leading tokens two arrays share."""
    n = min(len(a), len(b))
    different = np.flatnonzero(a[:n] != b[:n])
    return int(different[0]) if different.size else n


def recent(context: Context, drafted: Sequence[int], n: int) -> Tokens:
    """The last n tokens of context plus draft, shape (<= n,); n = -1 means all. What a repeat penalty looks at."""
    tail = np.asarray(drafted if n < 0 else drafted[max(0, len(drafted) - n) :], dtype=np.int32)
    return np.concatenate([context.tail(n if n < 0 else n - len(tail)), tail])
