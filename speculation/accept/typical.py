"""The one rule that is not exact: what the target finds likely enough may stand."""

from __future__ import annotations

import math

import numpy as np

from speculation.accept.base import Rows
from speculation.accept.coupled import Coupled
from speculation.types import Distribution, Draft, Verdict

EPSILON = 0.09  # the most that is ever asked of a probability
DELTA = math.sqrt(EPSILON)  # as the paper ties the two; less is asked where the target itself is unsure


class Typical(Coupled):
    """Accept what has p > min(epsilon, delta * exp(-H(p))): Cai et al. 2024 (2401.10774), typical acceptance.

    A guess that is the target's own draw stands too, and every step ends with such a draw, so without a draft and at
    temperature 0 the text is that of `Coupled`. Of a tree the longest path is kept; of equal ones the first.
    """

    is_exact = False

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        children = draft.children()
        found: Verdict | None = None
        waiting: list[tuple[int, ...]] = [()]
        while waiting:
            path = waiting.pop()
            node = path[-1] if path else -1
            if found is not None and not children[node + 1] and len(path) <= found.accepted:
                continue  # no longer than what is found, nor can it become so
            p = rows(node + 1)
            own = self.pick(p, position + len(path))
            if found is None or len(path) > found.accepted:
                found = Verdict(path, own)
            least = threshold(p)
            stands = [c for c in children[node + 1] if draft.tokens[c] == own or p.prob(draft.tokens[c]) > least]
            waiting += [(*path, child) for child in reversed(stands)]
        assert found is not None
        return found


def threshold(p: Distribution) -> float:
    """The probability above which a guess is typical of p."""
    entropy = -float(p.probs @ np.log(p.probs))
    return min(EPSILON, DELTA * math.exp(-entropy))
