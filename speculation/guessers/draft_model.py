"""A small model guesses for the large one, a token at a time, and keeps its own cache from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speculation.accept import Rule
from speculation.confidence import Confidence
from speculation.context import Context, common_prefix
from speculation.guessers.base import KeepOn
from speculation.guessers.drafting import Drafting
from speculation.sampling import SamplingConfig
from speculation.types import Draft, Model, Row, Tokens


class DraftModel:
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

    @property
    def sampling(self) -> SamplingConfig:
        """How the target's rows are cut, which the model's are too."""
        return self._drafting.sampling

    @sampling.setter
    def sampling(self, sampling: SamplingConfig) -> None:
        self._drafting.sampling = sampling

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        return ()  # a guess of this kind has its price

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """Up to k tokens drawn as the rule wants; empty when the context does not fit this model."""
        k = min(k, self.model.n_ctx - len(context))
        tokens = context.tokens
        self._drafting.learn(tokens)
        if k <= 0 or len(tokens) == 0 or int(tokens.max()) >= self.model.n_vocab:
            return Draft(self.name)
        return self._drafting.draft(context, k, rule, keep_on, self._read(tokens), self._after, self._n_shared)

    def _read(self, tokens: Tokens) -> Row:
        """Bring the cache to `tokens`, whatever happened since the last call; the row after the last of them."""
        keep = min(common_prefix(self._cached.tokens, tokens), len(tokens) - 1)
        self._cached.truncate(keep)
        self.model.rewind(keep)
        return self._forward(tokens[keep:])

    def _after(self, token: int) -> Row:
        return self._forward(np.array([token], dtype=np.int32))

    def _forward(self, tokens: Tokens) -> Row:
        row: Row = self.model.forward(tokens, n_rows=1)[0]
        self._cached.extend(tokens)
        return row
