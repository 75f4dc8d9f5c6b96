"""What a rule is, and the algebra of p and q that several of them share.

Letters as in Leviathan et al. 2023: p is the target's distribution, q the one a draft token was drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from speculation.types import Distribution, Draft, Tokens, Verdict, point_mass

Rows = Callable[[int], Distribution]  # row i: the target's distribution after node i - 1; row 0: after the context
Drawn = tuple[int, Distribution | None]  # a draft token, and the q to report with it
Foreseen = tuple[int, float]  # a draft token, and how sure it is, 0..1


class Rule(Protocol):
    """How drafts are drawn and judged."""

    @property
    def is_exact(self) -> bool:
        """Whether the output is distributed as the target alone, whatever was guessed."""
        ...

    @property
    def judges_trees(self) -> bool:
        """Whether several candidates for a position may be verified; else only chains."""
        ...

    def draw(self, q: Distribution, position: int) -> Drawn:
        """Draw a draft token for a context position; return it and the q to report with it."""
        ...

    def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
        """Draw up to n different candidates for a position; the first is as from `draw`.

        All of them have to be proposed, in this order: what is withheld was drawn all the same.
        """
        ...

    def foreseen(self, q: Distribution, position: int, n: int) -> Sequence[Foreseen]:
        """What `draw_several` would give, the surest first, for whoever decides how many to propose.

        Empty where looking would bias the text, because what was drawn has to be proposed, and where q has one token.
        """
        ...

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        """Judge a draft whose first token would stand at `position`; asks for no row that it does not need."""
        ...


def residual(p: Distribution, q: Distribution, scale: float = 1.0) -> Distribution:
    """Where to draw after a rejection so that the output still follows p: max(0, scale * p - q), normalised.

    Falls back to p when nothing is left, which only rounding can cause.
    """
    rest = np.maximum(scale * p.probs - at_ids(p.ids, q), 0.0)
    total = rest.sum()
    if total <= 0.0:
        return p
    keep = np.flatnonzero(rest > 0.0)
    keep = keep[np.argsort(-rest[keep], kind="stable")]
    return Distribution(p.ids[keep], rest[keep] / total)


def acceptance(p: Distribution, q: Distribution) -> float:
    """The chance that a token drawn from q survives the rejection rule: the sum of min(p, q)."""
    return float(np.minimum(p.probs, at_ids(p.ids, q)).sum())


def at_ids(ids: Tokens, q: Distribution) -> NDArray[np.float64]:
    """The probabilities of q at these ids, shape (m,)."""
    order = np.argsort(q.ids)
    at = np.minimum(np.searchsorted(q.ids[order], ids), len(order) - 1)
    return np.where(q.ids[order][at] == ids, q.probs[order][at], 0.0)


def drawn_from(p: Distribution, rng: Generator) -> int:
    """A token of p."""
    at = int(np.searchsorted(np.cumsum(p.probs), rng.random(), side="right"))
    return int(p.ids[min(at, len(p.ids) - 1)])


def q_of(draft: Draft, node: int) -> Distribution:
    """What a node of a draft was drawn from; a point mass where nothing was reported."""
    return point_mass(draft.tokens[node]) if draft.q is None else draft.q[node]
