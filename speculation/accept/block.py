"""The rule that judges a draft as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from speculation.accept.base import Drawn, Foreseen, Rows, at_ids, drawn_from, q_of, residual
from speculation.types import Distribution, Draft, Verdict


class Block:
    """Judge the draft as a whole: Sun et al. 2024 (2403.10444), algorithm 2. Accepts no less than `Rejection`."""

    is_exact = True
    judges_trees = False

    def __init__(self, rng: Generator) -> None:
        self._rng = rng

    def draw(self, q: Distribution, position: int) -> Drawn:
        return drawn_from(q, self._rng), q

    def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
        return [self.draw(q, position)][:n]

    def foreseen(self, q: Distribution, position: int, n: int) -> Sequence[Foreseen]:
        return ()

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        assert draft.parents is None, "this rule is one for chains"
        k = len(draft.tokens)
        mass = 1.0  # P_i of the paper: how much of the target's mass the first i tokens carry, at most 1
        kept, kept_mass = 0, 1.0
        kept_row = rows(0)
        row = kept_row
        for i, token in enumerate(draft.tokens):
            q_token = q_of(draft, i).prob(token)
            mass = min(1.0, mass * row.prob(token) / q_token)
            if mass == 0.0:
                break  # no longer prefix can be kept, and its rows need not be computed
            row = rows(i + 1)
            if i + 1 == k:
                keep = mass
            else:
                left = _excess(row, q_of(draft, i + 1), mass)
                keep = 1.0 if mass == 1.0 else left / (left + 1.0 - mass)
            if self._rng.random() < keep:
                kept, kept_mass, kept_row = i + 1, mass, row
        if kept == k:
            return Verdict(tuple(range(k)), drawn_from(kept_row, self._rng))
        return Verdict(tuple(range(kept)), drawn_from(residual(kept_row, q_of(draft, kept), kept_mass), self._rng))


def _excess(p: Distribution, q: Distribution, mass: float) -> float:
    return float(np.maximum(0.0, mass * p.probs - at_ids(p.ids, q)).sum())
