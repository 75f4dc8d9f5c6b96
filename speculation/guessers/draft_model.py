"""A small model guesses for the large one, a token at a time, and keeps its own cache from step to step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from speculation.accept import Rule
from speculation.confidence import Confidence
from speculation.context import Context, common_prefix
from speculation.guessers.base import KeepOn
from speculation.guessers.drafting import Drafting, DraftsAtAPrice
from speculation.guessers.listening import Heard, heard
from speculation.sampling import SamplingConfig
from speculation.types import Draft, Model, Row, Tokens

_READ_AT_ONCE = 128  # tokens of a prompt,
_HEARD_AT_ONCE = 32  # and of a text that is listened to, between two looks whether that is still wanted


class DraftModel(DraftsAtAPrice):
    """Guesses with a model whose vocabulary fits the target's (see `vocabulary.why_incompatible`)."""

    name = "draft"

    def __init__(self, model: Model, sampling: SamplingConfig, n_target_vocab: int, min_p: float = 0.0) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this."""
        self.model = model
        self._drafting = Drafting(self.name, sampling, min_p)
        self._n_shared = min(model.n_vocab, n_target_vocab)  # padding beyond the smaller vocabulary is never proposed
        self._cached = Context()  # what the model's cache holds

    @property
    def confidence(self) -> Confidence:
        """How far the model's belief in its tokens can be trusted."""
        return self._drafting.confidence

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """Up to k tokens drawn as the rule wants; empty when the context does not fit this model."""
        k = min(k, self.model.n_ctx - len(context))
        tokens = context.tokens
        self._drafting.learn(tokens)
        if k <= 0 or len(tokens) == 0 or int(tokens.max()) >= self.model.n_vocab:
            return Draft(self.name)
        # Nothing is guessed behind a candidate beside the trunk: the cache holds one text, and a row more is not as
        # cheap for a small model as for a head, whose price is that of reading its matrices.
        return self._drafting.draft(context, k, rule, keep_on, self._read(tokens), self._after)

    def listen(self, tokens: Tokens, first: int, rule: Rule) -> Iterator[list[Heard]]:
        """Read a text that others wrote, from where the cache ends, and learn what proposals would have been worth.

        Yields after each batch what that says of the tokens from index `first` on, which is above 0. It may be left
        after any batch, and goes on there with the next call. Raises SpeculationError.
        """
        unreadable = np.flatnonzero(tokens >= self.model.n_vocab)
        end = min(len(tokens) - 1, self.model.n_ctx, *unreadable[:1].tolist())
        at = self._keep(tokens[:end], end)
        while at < end:
            is_heard = at >= first - 1
            upto = min(at + min(_HEARD_AT_ONCE, self.model.max_rows), end)
            if not is_heard:
                upto = min(at + _READ_AT_ONCE, first - 1, end)
            rows = self.model.forward(tokens[at:upto], n_rows=upto - at if is_heard else 0)
            self._cached.extend(tokens[at:upto])
            batch = heard(rows[:, : self._n_shared], tokens, at + 1, rule, self.sampling)
            for each in batch:
                self.confidence.observe(each.sure, each.held)
            at = upto
            yield batch

    def _read(self, tokens: Tokens) -> Row:
        """Bring the cache to `tokens`, whatever happened since the last call; the row after the last of them."""
        return self._forward(tokens[self._keep(tokens, len(tokens) - 1) :])

    def _keep(self, tokens: Tokens, most: int) -> int:
        """Cut the cache to what it shares with `tokens`, `most` of them at most; how many that are."""
        keep = min(common_prefix(self._cached.tokens, tokens), most)
        self._cached.truncate(keep)
        self.model.rewind(keep)
        return keep

    def _after(self, token: int) -> Row:
        return self._forward(np.array([token], dtype=np.int32))

    def _forward(self, tokens: Tokens) -> Row:
        row: Row = self.model.forward(tokens, n_rows=1)[0, : self._n_shared]
        self._cached.extend(tokens)
        return row
