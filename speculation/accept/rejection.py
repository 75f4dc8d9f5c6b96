"""The rule that the papers on speculative decoding began with, token by token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from speculation.accept.base import Drawn, Foreseen, Rows, drawn_from, q_of, residual
from speculation.types import Distribution, Draft, Verdict


class Rejection:
    """Accept with min(1, p/q), else go on with the residual: Leviathan et al. 2023, algorithm 1; Chen et al. 2023.

    Several candidates are tried one after the other, each against what the rejections before it left of p: Miao et al.
    2023 (2305.09781), algorithm 2. q of a candidate may depend on those before it, so they may be drawn with
    replacement or without.
    """

    is_exact = True
    judges_trees = True

    def __init__(self, rng: Generator) -> None:
        self._rng = rng

    def draw(self, q: Distribution, position: int) -> Drawn:
        return drawn_from(q, self._rng), q

    def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
        drawn: list[Drawn] = []
        left: Distribution | None = q
        while left is not None and len(drawn) < n:
            token = drawn_from(left, self._rng)
            drawn.append((token, left))
            left = _without(left, token)
        return drawn

    def foreseen(self, q: Distribution, position: int, n: int) -> Sequence[Foreseen]:
        return ()

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        children = draft.children()
        path: list[int] = []
        p = rows(0)
        candidates = children[0]
        while candidates:
            for node in candidates:
                q, token = q_of(draft, node), draft.tokens[node]
                if self._rng.random() * q.prob(token) < p.prob(token):
                    break
                p = residual(p, q)
            else:
                return Verdict(tuple(path), drawn_from(p, self._rng))
            path.append(node)
            p = rows(node + 1)
            candidates = children[node + 1]
        return Verdict(tuple(path), drawn_from(p, self._rng))


def _without(q: Distribution, token: int) -> Distribution | None:
    """q given that it is not this token; None where it can be nothing else."""
    keep = np.flatnonzero(q.ids != token)
    rest = q.probs[keep]
    return Distribution(q.ids[keep], rest / rest.sum()) if keep.size else None
