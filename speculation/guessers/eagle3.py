"""An EAGLE-3 head guesses with a layer of its own from what three layers of the target were given (Li et al. 2025).

Its cache has an entry for each position of the text, made from the target's feature there and the token behind it; so
the entry of the last position but one tells the next token. Behind a token that it drafted itself it takes its own
state for the feature, and forgets such entries before it reads on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from speculation.accept import Rule
from speculation.context import Context, common_prefix
from speculation.guessers.base import KeepOn
from speculation.guessers.drafting import TRIES, Drafting, DraftsAtAPrice, fastest
from speculation.sampling import SamplingConfig
from speculation.types import Draft, Row, Tokens


class FeatureHead(Protocol):
    """A head with a cache of entries, and the features of the last positions in the target's cache."""

    @property
    def ids(self) -> Tokens:
        """The token of each column of its rows, (r,)."""
        ...

    @property
    def n_vocab(self) -> int:
        """Tokens that it can be given."""
        ...

    @property
    def n_ctx(self) -> int:
        """Entries that its cache can hold."""
        ...

    @property
    def known(self) -> range:
        """The positions of the target's cache whose features are there: the last ones, or none."""
        ...

    def rewind(self, n_entries: int) -> None:
        """Keep the first entries and forget the rest."""
        ...

    def read(self, first: int, tokens: Tokens) -> Row:
        """Append an entry for each position from `first` on, made of its feature and of the token behind it.

        The row after the last of them.
        """
        ...

    def after(self, token: int) -> Row:
        """Append an entry made of the state of the last one and of a token, and return its row."""
        ...


class Eagle3(DraftsAtAPrice):
    """Guesses with a head that was trained for the target."""

    name = "eagle3"

    def __init__(self, head: FeatureHead, sampling: SamplingConfig, min_p: float = 0.0) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this."""
        self.head = head
        self._drafting = Drafting(self.name, sampling, min_p, head.ids)
        self._text = Context()  # that the head's entries were made of
        self._first = 0  # the position of the first of them
        self._token_s: float | None = None

    def token_s(self, clock: Callable[[], float]) -> float:
        """Seconds of a token, as the fastest of a few tries has it: other load only ever adds."""
        if self._token_s is None:
            self._forget(0)
            tokens = self.head.ids[:TRIES].tolist()
            self._token_s = fastest(clock, (partial(self.head.after, token) for token in tokens))
        return self._token_s

    def read_along(self, context: Context, n_read: int) -> None:
        """Take up a prompt as far as the target has read it, which the first guess then need not."""
        tokens = context.tokens[:n_read]
        if 1 < len(tokens) <= self.head.n_ctx and self._knows(tokens, len(tokens)):
            self._read(tokens, self.head.known.start)

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """Up to k tokens drawn as the rule wants; empty where the last position but one has no feature."""
        tokens = context.tokens
        self._drafting.learn(tokens)
        k = min(k, self.head.n_ctx - len(tokens))
        if k <= 0 or not self._knows(tokens, len(tokens) - 1):
            return Draft(self.name)
        row = self._read(tokens, self.head.known.start)
        return self._drafting.draft(context, k, rule, keep_on, row, self.head.after)

    def _knows(self, tokens: Tokens, read: int) -> bool:
        """Whether the target's last features are those of tokens[:read], and all of these can be given to the head."""
        known = self.head.known
        return len(known) > 0 and known.stop == read and int(tokens.max()) < self.head.n_vocab

    def _read(self, tokens: Tokens, start: int) -> Row:
        """Bring the head to the end of `tokens`, whatever happened since the last call; the row after the last of them.

        Features are known from `start` on. Where entries before them are gone, the head begins there: it sees less of
        the text then.
        """
        same = min(common_prefix(self._text.tokens, tokens), len(tokens) - 1)
        kept = same - 1 - self._first
        if kept <= 0 or self._first + kept < start:
            kept, self._first = 0, start
        at = self._first + kept
        self._forget(kept)
        row = self.head.read(at, tokens[at + 1 :])
        self._text.extend(tokens[len(self._text) :])
        return row

    def _forget(self, kept: int) -> None:
        """Keep the first entries of the head; those that it made while it drafted go in any case."""
        self._text.truncate(self._first + kept + 1 if kept else 0)
        self.head.rewind(kept)
