"""Layers that a model brings for the token after the next one guess for it (multi-token prediction).

They read each token together with the model's own state behind the token before it, and have a cache of their own. A
guess that goes further takes their own state for the one that the model has not come to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from speculation.accept import Rule
from speculation.context import Context, common_prefix
from speculation.guessers.base import KeepOn
from speculation.guessers.drafting import TRIES, Drafting, DraftsAtAPrice, fastest
from speculation.sampling import SamplingConfig
from speculation.trail import Trail
from speculation.types import Draft, Logits, Row, Tokens


class NextLayers(Protocol):
    """The layers, and what is known of the target's cache. An entry is a token with the state of the one before it."""

    trail: Trail  # the target's states, where it is followed
    n_hidden: int  # the numbers of a state
    n_vocab: int
    n_ctx: int  # entries that the cache can hold

    def rewind(self, n_past: int) -> None:
        """Forget the entries from position n_past on; 0 is always possible."""
        ...

    def read(self, at: int, tokens: Tokens, states: Logits) -> None:
        """Append entries from position `at` on, behind those that are there; an empty cache may begin anywhere.

        Raises SpeculationError; what was appended then is not known.
        """
        ...

    def guess(self, at: int, token: int, state: Row) -> tuple[Row, Row]:
        """Append an entry; the logits behind it, valid until the next call, and the layers' own state there."""
        ...


class MultiToken(DraftsAtAPrice):
    """Guesses with the layers that the target's own file brings."""

    name = "mtp"

    def __init__(self, layers: NextLayers, sampling: SamplingConfig, min_p: float = 0.0) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this."""
        self._layers = layers
        self._drafting = Drafting(self.name, sampling, min_p)
        self._tokens: Tokens = np.empty(0, dtype=np.int32)  # the text that the entries belong to
        self._start = 0  # of its tokens, the first that has an entry
        self._at = 0  # where the next entry of a draft stands
        self._state: Row = np.zeros(layers.n_hidden, dtype=np.float32)  # behind the last of them
        self._token_s: float | None = None

    def token_s(self, clock: Callable[[], float]) -> float:
        """Seconds of a token, as the fastest of a few tries has it: other load only ever adds."""
        if self._token_s is None:
            self._forget()
            self._layers.rewind(0)
            state = np.zeros(self._layers.n_hidden, dtype=np.float32)
            tries = (partial(self._layers.guess, at, at % self._layers.n_vocab, state) for at in range(TRIES))
            self._token_s = fastest(clock, tries)
            self._layers.rewind(0)
        return self._token_s

    def read_along(self, context: Context, n_read: int) -> None:
        """Take up a prompt as far as the target has read it."""
        self._read(context.tokens[:n_read], n_read)

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """Up to k tokens drawn as the rule wants; empty where the state behind the last token but one is not known."""
        tokens = context.tokens
        self._drafting.learn(tokens)
        k, last = min(k, self._layers.n_ctx - len(tokens)), len(tokens) - 1
        if k <= 0 or self._layers.trail.known.stop != last or not self._read(tokens, last):
            return Draft(self.name)
        self._at, self._state = last, self._states(last, last + 1)[0]
        row = self._after(int(tokens[last]))
        return self._drafting.draft(context, k, rule, keep_on, row, self._after)

    def _after(self, token: int) -> Row:
        row, self._state = self._layers.guess(self._at, token, self._state)
        self._at += 1
        return row

    def _read(self, tokens: Tokens, stop: int) -> bool:
        """Let the cache hold the entries of tokens[:stop], whatever happened since the last call; False if it cannot.

        Entries of tokens whose states were not seen are missing; others cannot stand behind a gap.
        """
        known = self._layers.trail.known
        first = known.start + 1 if known.start else 0
        if stop < first or stop > known.stop + 1:
            self._forget()
            return False
        keep = min(common_prefix(self._tokens, tokens), stop)
        begins_anew = keep <= self._start or keep < first
        keep, start = (first, first) if begins_anew else (keep, self._start)
        self._forget()  # until all has gone well
        self._layers.rewind(0 if begins_anew else keep)
        if keep < stop:
            self._layers.read(keep, tokens[keep:stop], self._states(keep, stop))
        self._tokens, self._start = tokens[:stop].copy(), start
        return True

    def _forget(self) -> None:
        self._tokens, self._start = self._tokens[:0], 0

    def _states(self, start: int, stop: int) -> Logits:
        """The states that the entries of some tokens need: each token's is that of the one before it."""
        trail = self._layers.trail
        if start:
            return trail.rows(range(start - 1, stop - 1))
        nothing = np.zeros((1, self._layers.n_hidden), dtype=np.float32)
        return np.concatenate([nothing, trail.rows(range(stop - 1))])
