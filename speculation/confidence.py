"""A draft model's own probability of its token -> the chance that the target accepts it, learned from what came.

A small model is rarely calibrated against a large one: what it calls 0.9 may hold in 0.7 or in 0.99 of the cases, and
that differs from pair to pair and from text to text.
"""

from __future__ import annotations

from bisect import bisect_right

_EDGES = (0.15, 0.3, 0.45, 0.6, 0.75, 0.85, 0.92, 0.97, 0.99)
_STRENGTH = 6.0  # observations that the prior weighs in each bin
_KEEP = 0.99  # of what was seen in a bin, at each new observation there


class Confidence:
    """Discounted counts for ranges of the draft model's probability, over a prior that believes it, nearly."""

    def __init__(self, least: float = 0.05, slope: float = 0.9) -> None:
        """The prior is least + slope * p."""
        self._least, self._slope = least, slope
        self._hits = [0.0] * (len(_EDGES) + 1)
        self._seen = [0.0] * (len(_EDGES) + 1)

    def chance(self, p: float) -> float:
        """The chance that a token of probability p is accepted, given that those before it were."""
        at = bisect_right(_EDGES, p)
        believed = self._least + self._slope * p
        return (self._hits[at] + _STRENGTH * believed) / (self._seen[at] + _STRENGTH)

    def observe(self, p: float, accepted: bool) -> None:
        """Learn what became of a token of probability p."""
        at = bisect_right(_EDGES, p)
        self._hits[at] = _KEEP * self._hits[at] + accepted
        self._seen[at] = _KEEP * self._seen[at] + 1.0
