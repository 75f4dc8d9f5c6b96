"""Fakes that tests of this library and of anything built on it share. They depend on their whole history.

A fake that looked at the last token only could not notice a cache that was not rewound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speculation.accept import Rule
from speculation.context import Context
from speculation.guessers.base import KeepOn
from speculation.guessers.draft_model import DraftModel
from speculation.types import CannotRewind, Draft, Logits, Row, Tokens

_PRIME = 1_000_000_007
_MODULUS = (1 << 61) - 1


class HistoryModel:
    """A random model: its logits are a function of every token in its cache, in order."""

    def __init__(
        self,
        n_vocab: int,
        seed: int,
        *,
        n_ctx: int = 4096,
        max_rows: int = 64,
        spread: float = 2.0,
        blur: float = 0.0,
    ) -> None:
        """`spread` is the deviation of the logits; `blur` adds noise of that deviation, which makes a worse model."""
        self.n_vocab = n_vocab
        self.n_ctx = n_ctx
        self.max_rows = max_rows
        self.can_rewind = self.can_tree = True
        self.keeps_hidden = True
        self.forwards = 0  # calls so far
        self.evaluated = 0  # tokens so far
        self._seed = seed
        self._spread = spread
        self._blur = blur
        self._hashes: list[int] = []
        self._tree: list[int] = []  # the hash of each node, until one path is kept
        self._rows: dict[int, Row] = {}
        self._shown: Logits = np.empty((0, n_vocab), dtype=np.float32)  # the rows of the last forward

    @property
    def n_past(self) -> int:
        return len(self._hashes)

    @property
    def n_hidden(self) -> int:
        return self.n_vocab

    def hidden_rows(self) -> Logits:
        """The rows themselves: this model's output matrix is the unit matrix."""
        return self._shown if self.keeps_hidden else self._shown[:0]

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        if self.n_past + len(tokens) > self.n_ctx:
            raise AssertionError(f"{len(tokens)} tokens do not fit behind {self.n_past} of {self.n_ctx}")
        if not 0 <= n_rows <= min(len(tokens), self.max_rows):
            raise AssertionError(f"{n_rows} rows of {len(tokens)} tokens")
        self.forwards += 1
        self.evaluated += len(tokens)
        self._tree = []
        for token in tokens:
            self._hashes.append(self._after(self._hashes[-1] if self._hashes else self._seed, token))
        rows = self._stacked(self._hashes[len(self._hashes) - n_rows :])
        self._shown = rows if n_rows == len(tokens) else rows[:0]
        return rows

    def forward_tree(self, pending: int, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        if self.n_past + 1 + len(tokens) > self.n_ctx or 1 + len(tokens) > self.max_rows or not self.can_tree:
            raise AssertionError(f"a tree of {len(tokens)} tokens behind {self.n_past} of {self.n_ctx}")
        rows = self.forward([pending], n_rows=1)
        self.evaluated += len(tokens)
        for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
            if not -1 <= parent < node:
                raise AssertionError(f"node {node} stands behind node {parent}")
            self._tree.append(self._after(self._hashes[-1] if parent < 0 else self._tree[parent], token))
        self._shown = np.concatenate([rows, self._stacked(self._tree)])
        return self._shown

    def keep(self, path: Sequence[int]) -> None:
        self._hashes.extend(self._tree[node] for node in path)
        self._tree = []

    def rewind(self, n_past: int) -> None:
        self._tree = []
        if n_past > self.n_past:
            raise AssertionError(f"rewind to {n_past}, but only {self.n_past} are there")
        if not self.can_rewind and n_past not in (0, self.n_past):
            raise CannotRewind("this fake cannot rewind")
        del self._hashes[n_past:]

    def row_after(self, tokens: Sequence[int]) -> Row:
        """The logits after these tokens, whatever the cache holds."""
        key = self._seed
        for token in tokens:
            key = (key * _PRIME + int(token) + 1) % _MODULUS
        return self._row(key)

    def _after(self, key: int, token: int) -> int:
        if not 0 <= token < self.n_vocab:
            raise AssertionError(f"token {token} of {self.n_vocab}")
        return (key * _PRIME + int(token) + 1) % _MODULUS

    def _stacked(self, keys: Sequence[int]) -> Logits:
        return np.array([self._row(key) for key in keys], dtype=np.float32).reshape(len(keys), self.n_vocab)

    def _row(self, key: int) -> Row:
        row = self._rows.get(key)
        if row is None:
            rng = np.random.default_rng(key)
            logits = rng.normal(size=self.n_vocab) * self._spread + rng.normal(size=self.n_vocab) * self._blur
            row = self._rows[key] = logits.astype(np.float32)
        return row


class ScriptedGuesser:
    """Proposes a given text: the tokens that stand in it behind as many as the context has."""

    name = "scripted"

    def __init__(self, text: Sequence[int]) -> None:
        self._text = tuple(text)

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        return ()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return Draft(self.name, self._text[len(context) : len(context) + k])


class BushyGuesser:
    """Proposes trees of any shape: all that it guesses is a function of how long the context is."""

    name = "bushy"

    def __init__(self, n_vocab: int, seed: int = 0) -> None:
        self._n_vocab = n_vocab
        self._seed = seed

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        return ()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        rng = np.random.default_rng([self._seed, len(context)])
        tokens: list[int] = []
        parents: list[int] = []
        taken: set[tuple[int, int]] = set()
        for _ in range(4 * k):
            parent, token = int(rng.integers(-1, len(tokens))), int(rng.integers(self._n_vocab))
            if (parent, token) not in taken and len(tokens) < k:
                taken.add((parent, token))
                tokens.append(token)
                parents.append(parent)
        return Draft(self.name, tuple(tokens), parents=tuple(parents))


class AlwaysWidens:
    """A price list by which every token and every second candidate is worth it."""

    def __call__(self, drafted: int, together: float) -> bool:
        return True

    def widen(self, reach: float, drafted: int) -> bool:
        return True


class WideDraft(DraftModel):
    """A draft model that offers two candidates for every position."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return super().propose(context, k, rule, AlwaysWidens())


class FakeClock:
    """A clock that moves by a fixed step at each look."""

    def __init__(self, step_s: float = 1.0) -> None:
        self.now_s = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s
