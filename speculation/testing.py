"""Fakes that tests of this library and of anything built on it share. They depend on their whole history.

A fake that looked at the last token only could not notice a cache that was not rewound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speculation.accept import Rule
from speculation.context import Context
from speculation.guessers.base import KeepOn
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
        self.can_rewind = True
        self.forwards = 0  # calls so far
        self.evaluated = 0  # tokens so far
        self._seed = seed
        self._spread = spread
        self._blur = blur
        self._hashes: list[int] = []
        self._rows: dict[int, Row] = {}

    @property
    def n_past(self) -> int:
        return len(self._hashes)

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        if self.n_past + len(tokens) > self.n_ctx:
            raise AssertionError(f"{len(tokens)} tokens do not fit behind {self.n_past} of {self.n_ctx}")
        if not 0 <= n_rows <= min(len(tokens), self.max_rows):
            raise AssertionError(f"{n_rows} rows of {len(tokens)} tokens")
        self.forwards += 1
        self.evaluated += len(tokens)
        for token in tokens:
            if not 0 <= token < self.n_vocab:
                raise AssertionError(f"token {token} of {self.n_vocab}")
            last = self._hashes[-1] if self._hashes else self._seed
            self._hashes.append((last * _PRIME + int(token) + 1) % _MODULUS)
        wanted = self._hashes[len(self._hashes) - n_rows :]
        return np.array([self._row(key) for key in wanted], dtype=np.float32).reshape(n_rows, self.n_vocab)

    def rewind(self, n_past: int) -> None:
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


class FakeClock:
    """A clock that moves by a fixed step at each look."""

    def __init__(self, step_s: float = 1.0) -> None:
        self.now_s = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s
