"""A small model guesses for the large one, a token at a time, and keeps its own cache from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from speculation.accept import Rule
from speculation.confidence import Confidence
from speculation.context import Context, common_prefix, recent
from speculation.guessers.base import KeepOn
from speculation.sampling import SamplingConfig, distribution, probabilities
from speculation.types import Distribution, Draft, Model, Row, Tokens


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A draft that was handed out: where in the context it would stand, and how sure the model was of each token."""

    start: int
    tokens: tuple[int, ...]
    sure: tuple[float, ...]


class DraftModel:
    """Guesses with a model whose vocabulary fits the target's (see `vocabulary.why_incompatible`)."""

    name = "draft"

    def __init__(self, model: Model, sampling: SamplingConfig, n_target_vocab: int, min_p: float = 0.0) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this."""
        self.model = model
        self.confidence = Confidence()
        self.sampling = sampling
        self._n_shared = min(model.n_vocab, n_target_vocab)  # padding beyond the smaller vocabulary is never proposed
        self._min_p = min_p
        self._cached = Context()  # what the model's cache holds
        self._last = _Drafted(0, (), ())

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        return ()  # a guess of this kind has its price

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """Up to k tokens drawn as the rule wants; empty when the context does not fit this model."""
        k = min(k, self.model.n_ctx - len(context))
        tokens = context.tokens
        self._learn(tokens)
        if k <= 0 or len(tokens) == 0 or int(tokens.max()) >= self.model.n_vocab:
            return Draft(self.name)
        row = self._read(tokens)
        drafted: list[int] = []
        reported: list[Distribution] = []
        sure: list[float] = []
        chances: list[float] = []
        together = 1.0
        while True:
            seen = recent(context, drafted, self.sampling.repeat_last_n)
            q = distribution(row[: self._n_shared], self.sampling, seen)
            # Decided before the draw: to look at the token first would draw the proposed ones from another q than
            # the one that is reported, and the text would no longer follow the target.
            p = float(probabilities(row, q.ids[:1])[0])
            chance = self.confidence.chance(p)
            together *= chance
            if drafted and not (p >= self._min_p if keep_on is None else keep_on(len(drafted), together)):
                break
            token, report = rule.draw(q, len(context) + len(drafted))
            drafted.append(token)
            sure.append(p)
            chances.append(chance)
            if report is not None:
                reported.append(report)
            if len(drafted) == k:
                break
            row = self._forward(np.array([token], dtype=np.int32))
        self._last = _Drafted(len(context), tuple(drafted), tuple(sure))
        q_all = tuple(reported) if reported else None
        return Draft(self.name, tuple(drafted), q_all, chances=tuple(chances))

    def _learn(self, tokens: Tokens) -> None:
        """What became of the last draft, whoever wrote the text since: its tokens stand in the context or others do."""
        last, self._last = self._last, _Drafted(0, (), ())
        for i, (token, p) in enumerate(zip(last.tokens, last.sure, strict=True)):
            if last.start + i >= len(tokens):
                return
            accepted = int(tokens[last.start + i]) == token
            self.confidence.observe(p, accepted)
            if not accepted:
                return

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
