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
from speculation.guessers.extending import Extending
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.trail import Trail
from speculation.types import CannotRewind, Draft, Logits, Row, Tokens

_PRIME = 1_000_000_007
_MODULUS = (1 << 61) - 1
_STATE_NUMBERS = 4


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
        self.trails: list[Trail] = []  # that follow the cache
        self._seed = seed
        self._spread = spread
        self._blur = blur
        self._hashes: list[int] = []
        self._tree: list[int] = []  # the hash of each node, until one path is kept
        self._rows: dict[int, Row] = {}
        self._shown: Logits = np.empty((0, n_vocab), dtype=np.float32)  # the rows of the last forward
        self._last: list[int] = []  # the hashes of its tokens

    @property
    def n_past(self) -> int:
        return len(self._hashes)

    @property
    def n_hidden(self) -> int:
        return self.n_vocab

    def hidden_rows(self) -> Logits:
        """The rows themselves: this model's output matrix is the unit matrix."""
        return self._shown if self.keeps_hidden else self._shown[:0]

    def inner_states(self, n: int) -> Logits:
        """What stands for the state of each of the n tokens of the last forward: all that is known of its history."""
        assert n == len(self._last)
        return _as_states(self._last)

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        if not 0 <= n_rows <= min(len(tokens), self.max_rows):
            raise AssertionError(f"{n_rows} rows of {len(tokens)} tokens")
        before = self.n_past
        self._append(tokens)
        for trail in self.trails:
            trail.decoded(before, len(tokens))
        rows = self._stacked(self._last[len(tokens) - n_rows :])
        self._shown = rows if n_rows == len(tokens) else rows[:0]
        return rows

    def forward_tree(self, pending: int, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        if self.n_past + 1 + len(tokens) > self.n_ctx or 1 + len(tokens) > self.max_rows or not self.can_tree:
            raise AssertionError(f"a tree of {len(tokens)} tokens behind {self.n_past} of {self.n_ctx}")
        before = self.n_past
        self._append([pending])
        self.evaluated += len(tokens)
        for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
            if not -1 <= parent < node:
                raise AssertionError(f"node {node} stands behind node {parent}")
            self._tree.append(self._after(self._hashes[-1] if parent < 0 else self._tree[parent], token))
        self._last = [self._hashes[-1], *self._tree]
        for trail in self.trails:
            trail.decoded_tree(before, len(self._last))
        self._shown = self._stacked(self._last)
        return self._shown

    def keep(self, path: Sequence[int]) -> None:
        self._hashes.extend(self._tree[node] for node in path)
        self._tree = []
        for trail in self.trails:
            trail.keep(path)

    def rewind(self, n_past: int) -> None:
        self._tree = []
        if n_past > self.n_past:
            raise AssertionError(f"rewind to {n_past}, but only {self.n_past} are there")
        if not self.can_rewind and n_past not in (0, self.n_past):
            raise CannotRewind("this fake cannot rewind")
        del self._hashes[n_past:]
        for trail in self.trails:
            trail.cut(n_past)

    def history_after(self, history: int | None, token: int) -> int:
        """What stands for a history and one more token; None: nothing before it."""
        return self._after(self._seed if history is None else history, token)

    def row_of(self, history: int) -> Row:
        """The logits after a history."""
        return self._row(history)

    def row_after(self, tokens: Sequence[int]) -> Row:
        """The logits after these tokens, whatever the cache holds."""
        key = self._seed
        for token in tokens:
            key = (key * _PRIME + int(token) + 1) % _MODULUS
        return self._row(key)

    def _append(self, tokens: Sequence[int] | Tokens) -> None:
        if self.n_past + len(tokens) > self.n_ctx:
            raise AssertionError(f"{len(tokens)} tokens do not fit behind {self.n_past} of {self.n_ctx}")
        self.forwards += 1
        self.evaluated += len(tokens)
        self._tree = []
        for token in tokens:
            self._hashes.append(self._after(self._hashes[-1] if self._hashes else self._seed, token))
        self._last = self._hashes[len(self._hashes) - len(tokens) :]

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


class HistoryLayers:
    """Layers of a `HistoryModel` that guess the token after the next, nearly as it would."""

    def __init__(self, target: HistoryModel, blur: float = 0.7) -> None:
        """`blur` is the deviation of the noise on their logits, a function of every entry in their cache."""
        self.trail = Trail(_STATE_NUMBERS, target.inner_states)
        self.n_hidden, self.n_vocab, self.n_ctx = _STATE_NUMBERS, target.n_vocab, target.n_ctx
        self.entries: list[tuple[int, int, int]] = []  # position, token, and the history before it
        self._target = target
        self._blur = blur
        target.trails.append(self.trail)

    def rewind(self, n_past: int) -> None:
        self.entries = [entry for entry in self.entries if entry[0] < n_past]

    def read(self, at: int, tokens: Tokens, states: Logits) -> None:
        for i, (token, state) in enumerate(zip(tokens, states, strict=True)):
            if self.entries and self.entries[-1][0] != at + i - 1:
                raise AssertionError(f"entry {at + i} stands behind entry {self.entries[-1][0]}")
            if at + i >= self.n_ctx:
                raise AssertionError(f"entry {at + i} of {self.n_ctx}")
            self.entries.append((at + i, int(token), _as_history(state)))

    def guess(self, at: int, token: int, state: Row) -> tuple[Row, Row]:
        self.read(at, np.array([token], dtype=np.int32), state[np.newaxis])
        history = self._target.history_after(self.entries[-1][2] if at else None, token)
        noise = np.random.default_rng(hash(tuple(self.entries)) % _MODULUS).normal(size=self.n_vocab)
        row = self._target.row_of(history) + self._blur * noise.astype(np.float32)
        return row, _as_states([history])[0]


def _as_states(histories: Sequence[int]) -> Logits:
    """Each history as four whole numbers that a float holds exactly."""
    parts = [[history >> 16 * i & 0xFFFF for i in range(_STATE_NUMBERS)] for history in histories]
    return np.array(parts, dtype=np.float32).reshape(len(histories), _STATE_NUMBERS)


def _as_history(state: Row) -> int:
    return sum(int(part) << 16 * i for i, part in enumerate(state))


class HistoryFeatures:
    """An EAGLE-3 head for a fake: a feature is all that the target has read, so one that is not the text's own shows.

    With `blur` it is a worse model than its target. It knows the features of positions from `start` on.
    """

    def __init__(self, target: HistoryModel, *, blur: float = 0.0, n_ctx: int = 4096) -> None:
        self.ids: Tokens = np.arange(target.n_vocab, dtype=np.int32)
        self.n_vocab = target.n_vocab
        self.n_ctx = n_ctx
        self.start = 0
        self.entries = 0  # made so far
        self._target = target
        self._blur = blur
        self._first = 0
        self._keys: list[int] = []  # of each entry: the text up to the token that it was made with

    @property
    def known(self) -> range:
        return range(min(self.start, self._target.n_past), self._target.n_past)

    def rewind(self, n_entries: int) -> None:
        if n_entries > len(self._keys):
            raise AssertionError(f"rewind to {n_entries}, but only {len(self._keys)} are there")
        del self._keys[n_entries:]

    def read(self, first: int, tokens: Tokens) -> Row:
        text = self._target._hashes
        self._first = self._first if self._keys else first
        if (
            first not in self.known
            or self._first + len(self._keys) != first
            or len(text) - first - len(tokens) not in (0, 1)
        ):
            raise AssertionError(f"{len(tokens)} entries from {first} on, behind {len(self._keys)}")
        if self._keys != text[self._first + 1 : first + 1]:
            raise AssertionError("entries of another text were kept")
        for i, token in enumerate(tokens):
            self._append(text[first + i], int(token))
        return self._row()

    def after(self, token: int) -> Row:
        self._append(self._keys[-1] if self._keys else 0, token)
        return self._row()

    def _append(self, feature: int, token: int) -> None:
        self.entries += 1
        self._keys.append(self._target._after(feature, token))
        if len(self._keys) > self.n_ctx:
            raise AssertionError(f"more than {self.n_ctx} entries")

    def _row(self) -> Row:
        noise = np.random.default_rng(self._keys[-1] + 1).normal(size=self.n_vocab) * self._blur
        return (self._target._row(self._keys[-1]) + noise).astype(np.float32)


class ScriptedGuesser:
    """Proposes a given text: the tokens that stand in it behind as many as the context has."""

    name = "scripted"

    def __init__(self, text: Sequence[int]) -> None:
        self._text = tuple(text)

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return ()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return Draft(self.name, self._text[len(context) : len(context) + k])


class BushyGuesser:
    """Proposes trees of any shape: all that it guesses is a function of how long the context is."""

    name = "bushy"

    def __init__(self, n_vocab: int, seed: int = 0) -> None:
        self._n_vocab = n_vocab
        self._seed = seed

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
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
    """A price list by which so many candidates are worth it at each depth, and guessing on behind so many of them."""

    def __init__(self, candidates: int = 2, behind: int = 1) -> None:
        self._candidates = candidates
        self._behind = behind

    def rows(self, reaches: Sequence[float]) -> int:
        return min(self._candidates, len(reaches))

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        return min(self._behind, len(reaches))


class WideDraft(DraftModel):
    """A draft model that offers two candidates for every position."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return super().propose(context, k, rule, AlwaysWidens())


class AlwaysLengthens(AlwaysWidens):
    """A price list by which a draft stops after two tokens in a row, and three copied ones behind it are worth it."""

    def __init__(self, candidates: int = 1) -> None:
        super().__init__(candidates)
        self._deep = 1

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        self._deep += 1
        return min(self._deep <= 2, len(reaches))

    def lengthen(self, reaches: Sequence[float], drafted: int) -> int:
        return min(3, len(reaches))


class LengthenedDraft(Extending):
    """A draft model behind whose drafts a lookup goes on."""

    def __init__(self, drafter: DraftModel, candidates: int = 1) -> None:
        super().__init__(drafter, PromptLookup())
        self._candidates = candidates

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return super().propose(context, k, rule, AlwaysLengthens(self._candidates))


class FakeClock:
    """A clock that moves by a fixed step at each look."""

    def __init__(self, step_s: float = 1.0) -> None:
        self.now_s = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s
