"""The rules that decide which draft tokens survive, so that the text follows the target exactly.

Letters as in Leviathan et al. 2023: p is the target's distribution, q the one a draft token was drawn from.
Temperature 0 is a point-mass p and a deterministic guesser a point-mass q, so neither needs a branch. A draft may be a
tree: where a position has several candidates, they are tried in order. A chain is a tree with one candidate for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from speculation.types import Distribution, Draft, Tokens, Verdict, point_mass

Rows = Callable[[int], Distribution]  # row i: the target's distribution after node i - 1; row 0: after the context
Drawn = tuple[int, Distribution | None]  # a draft token, and the q to report with it

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment and multipliers of splitmix64 (Steele et al. 2014)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Rule(Protocol):
    """How drafts are drawn and judged. Every rule leaves the output distributed as the target alone."""

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

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        """Judge a draft whose first token would stand at `position`; asks for no row that it does not need."""
        ...


def residual(p: Distribution, q: Distribution, scale: float = 1.0) -> Distribution:
    """Where to draw after a rejection so that the output still follows p: max(0, scale * p - q), normalised.

    Falls back to p when nothing is left, which only rounding can cause.
    """
    rest = np.maximum(scale * p.probs - _at(p.ids, q), 0.0)
    total = rest.sum()
    if total <= 0.0:
        return p
    keep = np.flatnonzero(rest > 0.0)
    keep = keep[np.argsort(-rest[keep], kind="stable")]
    return Distribution(p.ids[keep], rest[keep] / total)


def acceptance(p: Distribution, q: Distribution) -> float:
    """The chance that a token drawn from q survives the rejection rule: the sum of min(p, q)."""
    return float(np.minimum(p.probs, _at(p.ids, q)).sum())


def _at(ids: Tokens, q: Distribution) -> NDArray[np.float64]:
    """The probabilities of q at these ids, shape (m,)."""
    order = np.argsort(q.ids)
    at = np.minimum(np.searchsorted(q.ids[order], ids), len(order) - 1)
    return np.where(q.ids[order][at] == ids, q.probs[order][at], 0.0)


def _draw(p: Distribution, rng: Generator) -> int:
    at = int(np.searchsorted(np.cumsum(p.probs), rng.random(), side="right"))
    return int(p.ids[min(at, len(p.ids) - 1)])


def _q(draft: Draft, i: int) -> Distribution:
    return point_mass(draft.tokens[i]) if draft.q is None else draft.q[i]


def _without(q: Distribution, token: int) -> Distribution | None:
    """q given that it is not this token; None where it can be nothing else."""
    keep = np.flatnonzero(q.ids != token)
    rest = q.probs[keep]
    return Distribution(q.ids[keep], rest / rest.sum()) if keep.size else None


class Rejection:
    """Accept with min(1, p/q), else go on with the residual: Leviathan et al. 2023, algorithm 1; Chen et al. 2023.

    Several candidates are tried one after the other, each against what the rejections before it left of p: Miao et al.
    2023 (2305.09781), algorithm 2. q of a candidate may depend on those before it, so they may be drawn with
    replacement or without.
    """

    judges_trees = True

    def __init__(self, rng: Generator) -> None:
        self._rng = rng

    def draw(self, q: Distribution, position: int) -> Drawn:
        return _draw(q, self._rng), q

    def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
        drawn: list[Drawn] = []
        left: Distribution | None = q
        while left is not None and len(drawn) < n:
            token = _draw(left, self._rng)
            drawn.append((token, left))
            left = _without(left, token)
        return drawn

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        children = draft.children()
        path: list[int] = []
        p = rows(0)
        candidates = children[0]
        while candidates:
            for node in candidates:
                q, token = _q(draft, node), draft.tokens[node]
                if self._rng.random() * q.prob(token) < p.prob(token):
                    break
                p = residual(p, q)
            else:
                return Verdict(tuple(path), _draw(p, self._rng))
            path.append(node)
            p = rows(node + 1)
            candidates = children[node + 1]
        return Verdict(tuple(path), _draw(p, self._rng))


class Block:
    """Judge the draft as a whole: Sun et al. 2024 (2403.10444), algorithm 2. Accepts no less than `Rejection`."""

    judges_trees = False

    def __init__(self, rng: Generator) -> None:
        self._rng = rng

    def draw(self, q: Distribution, position: int) -> Drawn:
        return _draw(q, self._rng), q

    def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
        return [self.draw(q, position)][:n]

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        assert draft.parents is None, "this rule is one for chains"
        k = len(draft.tokens)
        mass = 1.0  # P_i of the paper: how much of the target's mass the first i tokens carry, at most 1
        kept, kept_mass = 0, 1.0
        kept_row = rows(0)
        row = kept_row
        for i, token in enumerate(draft.tokens):
            q_token = _q(draft, i).prob(token)
            mass = min(1.0, mass * row.prob(token) / q_token)
            if mass == 0.0:
                break  # no longer prefix can be kept, and its rows need not be computed
            row = rows(i + 1)
            if i + 1 == k:
                keep = mass
            else:
                left = _excess(row, _q(draft, i + 1), mass)
                keep = 1.0 if mass == 1.0 else left / (left + 1.0 - mass)
            if self._rng.random() < keep:
                kept, kept_mass, kept_row = i + 1, mass, row
        if kept == k:
            return Verdict(tuple(range(k)), _draw(kept_row, self._rng))
        return Verdict(tuple(range(kept)), _draw(residual(kept_row, _q(draft, kept), kept_mass), self._rng))


def _excess(p: Distribution, q: Distribution, mass: float) -> float:
    return float(np.maximum(0.0, mass * p.probs - _at(p.ids, q)).sum())


class Coupled:
    """Draft and target pick with the same noise, keyed by seed, position and token: Daliri et al. 2024 (2408.07978).

    The text depends on the seed alone: not on the guesser, not on k, not on when guessing was switched. At each node of
    a tree the target picks, and the path goes on where a child holds that token, so any tree will do.
    """

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
        noisy = np.log(q.probs) + gumbel(self._seed, position, q.ids)
        return [(int(token), None) for token in q.ids[np.argsort(-noisy, kind="stable")[:n]]]

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


def rule_named(name: str, seed: int) -> Rule:
    """The rule that a setting names: coupled, rejection or block. Raises KeyError with the known names."""
    rules: dict[str, Callable[[], Rule]] = {
        "coupled": lambda: Coupled(seed),
        "rejection": lambda: Rejection(np.random.default_rng(seed)),
        "block": lambda: Block(np.random.default_rng(seed)),
    }
    if name not in rules:
        raise KeyError(f"no rule is named {name!r}; there are {', '.join(sorted(rules))}")
    return rules[name]()
