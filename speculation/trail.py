"""What a model computed inside for each token of its cache: it grows with the cache and is cut with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from speculation.types import Logits


class Trail:
    """A row for each token in a cache, from the token on where somebody began to follow it."""

    def __init__(self, width: int, read: Callable[[int], Logits]) -> None:
        """`read` gives the rows of all n tokens of the model's last decode, (n, width), valid until the next one."""
        self._read = read
        self._rows: Logits = np.empty((0, width), dtype=np.float32)
        self._start = 0  # the token that the first row belongs to
        self._end = 0
        self._tree: Logits | None = None  # of the nodes of a tree, until one path is kept

    @property
    def known(self) -> range:
        """The tokens of the cache that have a row here: the last ones, or none."""
        return range(self._start, self._end)

    def rows(self, tokens: range) -> Logits:
        """The rows of some known tokens; a view that the next change may invalidate."""
        return self._rows[tokens.start - self._start : tokens.stop - self._start]

    def restart(self, n_past: int) -> None:
        """The cache holds n_past tokens now, of which nothing is known; the memory of the rows is freed."""
        self._rows = np.empty((0, self._rows.shape[1]), dtype=np.float32)
        self._start = self._end = n_past
        self._tree = None

    def decoded(self, n_past: int, n: int) -> None:
        """n tokens were appended to n_past in the cache."""
        if n_past != self._end:
            self.restart(n_past)
        self._append(self._read(n))

    def decoded_tree(self, n_past: int, n: int) -> None:
        """A token was appended to n_past in the cache, and behind it n - 1 nodes of a tree, which do not count yet."""
        if n_past != self._end:
            self.restart(n_past)
        rows = self._read(n)
        self._append(rows[:1])
        self._tree = rows[1:].copy()

    def keep(self, path: Sequence[int]) -> None:
        """The nodes of one path of the tree count now; the others are gone."""
        if self._tree is not None:
            self._append(self._tree[list(path)])
        self._tree = None

    def cut(self, n_past: int) -> None:
        """The cache was cut to its first n_past tokens."""
        self._start, self._end = min(self._start, n_past), min(self._end, n_past)
        self._tree = None

    def _append(self, rows: Logits) -> None:
        used, needed = self._end - self._start, self._end - self._start + len(rows)
        if needed > len(self._rows):
            grown = np.empty((max(2 * needed, 256), self._rows.shape[1]), dtype=np.float32)
            grown[:used] = self._rows[:used]
            self._rows = grown
        self._rows[used:needed] = rows
        self._end += len(rows)
