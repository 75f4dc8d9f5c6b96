"""The rule by which a seed names a text: draft and target draw with the same noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from speculation.accept.base import Drawn, Foreseen, Rows
from speculation.types import Distribution, Draft, Tokens, Verdict

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment and multipliers of splitmix64 (Steele et al. 2014)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Coupled:
    """Draft and target pick with the same noise, keyed by seed, position and token: Daliri et al. 2024 (2408.07978).

    The text depends on the seed alone: not on the guesser, not on k, not on when guessing was switched. At each node of
    a tree the target picks, and the path goes on where a child holds that token, so any tree will do.
    """

    is_exact = True
    judges_trees = True

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def pick(self, p: Distribution, position: int) -> int:
        """The token that this seed draws from p at this position (the Gumbel-max trick)."""
        if len(p.ids) == 1:
            return int(p.ids[0])
        return int(p.ids[np.argmax(np.log(p.probs) + gumbel(self._seed, position, p.ids))])

    def draw(self, q: Distribution, position: int) -> Drawn:
        return self.pick(q, position), None

    def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
        if n == 1 or len(q.ids) == 1:
            return [self.draw(q, position)][:n]  # in a third of the time
        return [(token, None) for token, _ in self.foreseen(q, position, n)]

    def foreseen(self, q: Distribution, position: int, n: int) -> Sequence[Foreseen]:
        """The shares of q times noise: the further a token is ahead of the others, the less the target's p undoes it.

        They foretell what is accepted better than q does (packaging/decisions.md, "The chooser").
        """
        if len(q.ids) == 1:
            return ()
        noisy = np.log(q.probs) + gumbel(self._seed, position, q.ids)
        best = np.argpartition(-noisy, n - 1)[:n] if n < len(noisy) else np.arange(len(noisy))
        best = best[np.argsort(-noisy[best], kind="stable")]
        shares = np.exp(noisy - noisy[best[0]])
        return list(zip(q.ids[best].tolist(), (shares[best] / shares.sum()).tolist(), strict=True))

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        children = draft.children()
        path: list[int] = []
        node: int | None = -1
        while node is not None:
            chosen = self.pick(rows(node + 1), position + len(path))
            node = next((child for child in children[node + 1] if draft.tokens[child] == chosen), None)
            if node is not None:
                path.append(node)
        return Verdict(tuple(path), chosen)


def gumbel(seed: int, position: int, ids: Tokens) -> NDArray[np.float64]:
    """Standard Gumbel noise for tokens, shape (m,): a pure function of seed, position and token id."""
    key = _mix(_mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)) + np.uint64(position))
    bits = _mix(key + ids.astype(np.uint64) * _GOLDEN)
    uniform = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # never 0 or 1
    noise: NDArray[np.float64] = -np.log(-np.log(uniform))
    return noise


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + _GOLDEN  # array arithmetic wraps silently, as splitmix64 wants
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))
