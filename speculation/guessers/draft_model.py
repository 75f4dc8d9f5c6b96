"""A small model guesses for the large one, a token at a time, and keeps its own cache from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speculation.accept import Rule
from speculation.context import Context, common_prefix, recent
from speculation.sampling import SamplingConfig, distribution, probabilities
from speculation.types import Distribution, Draft, Model, Row, Tokens


class DraftModel:
    """Guesses with a model whose vocabulary fits the target's (see `vocabulary.why_incompatible`)."""

    name = "draft"

    def __init__(self, model: Model, sampling: SamplingConfig, n_target_vocab: int, min_p: float = 0.0) -> None:
        self.model = model
        self.sampling = sampling
        self._n_shared = min(model.n_vocab, n_target_vocab)  # padding beyond the smaller vocabulary is never proposed
        self._min_p = min_p  # stop where the best token is less probable, nothing cut
        self._cached = Context()  # what the model's cache holds

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        return ()  # a guess of this kind has its price

    def propose(self, context: Context, k: int, rule: Rule) -> Draft:
        """Up to k tokens drawn as the rule wants; empty when the context does not fit this model."""
        k = min(k, self.model.n_ctx - len(context))
        tokens = context.tokens
        if k <= 0 or len(tokens) == 0 or int(tokens.max()) >= self.model.n_vocab:
            return Draft(self.name)
        row = self._read(tokens)
        drafted: list[int] = []
        reported: list[Distribution] = []
        while True:
            seen = recent(context, drafted, self.sampling.repeat_last_n)
            q = distribution(row[: self._n_shared], self.sampling, seen)
            # Decided before the draw: to look at the token first would draw the proposed ones from another q than
            # the one that is reported, and the text would no longer follow the target.
            if drafted and probabilities(row, q.ids[:1])[0] < self._min_p:
                break
            token, report = rule.draw(q, len(context) + len(drafted))
            drafted.append(token)
            if report is not None:
                reported.append(report)
            if len(drafted) == k:
                break
            row = self._forward(np.array([token], dtype=np.int32))
        return Draft(self.name, tuple(drafted), tuple(reported) if reported else None)

    def _read(self, tokens: Tokens) -> Row:
        """Bring the cache to `tokens`, whatever happened since the last call; the row after the last of them."""
        keep = min(common_prefix(self._cached.tokens, tokens), len(tokens) - 1)
        self._cached.truncate(keep)
        self.model.rewind(keep)
        return self._forward(tokens[keep:])

    def _forward(self, tokens: Tokens) -> Row:
        row: Row = self.model.forward(tokens, n_rows=1)[0]
        self._cached.extend(tokens)
        return row
