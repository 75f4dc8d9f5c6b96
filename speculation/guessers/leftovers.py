"""Leftovers: the rows behind a rejected guess say what follows, though what they follow was wrong in one token.

A guess for a position stays one when a token before it turned out otherwise (Jacobi iteration; Santilli et al. 2023,
2305.10427). It costs nothing: the rows were computed with those that counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speculation.accept import Rule
from speculation.confidence import Confidence
from speculation.context import Context
from speculation.guessers.base import Checked, KeepOn
from speculation.sampling import leading
from speculation.types import Draft

_LONGEST = 3
_AMONG = 8  # tokens of a row among which the share of the best is taken


@dataclass(frozen=True, slots=True)
class _Left:
    """The best tokens of the rows behind a rejection, for the positions from `start` on."""

    start: int = 0
    tokens: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()


class Leftovers:
    """Guesses once after each rejection, with what the rejected rest of the draft led to."""

    name = "leftovers"

    def __init__(self) -> None:
        self._left = _Left()
        self._worth = [Confidence(0.02, 0.5) for _ in range(_LONGEST)]  # of a share, by the place in the chain

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """At most k tokens, three of them at the most; empty but right after a rejection."""
        return self._draft(context, k)

    def _draft(self, context: Context, k: int) -> Draft:
        left = self._left
        if k <= 0 or left.start != len(context):
            return Draft(self.name)
        chances = tuple(worth.chance(share) for worth, share in zip(self._worth, left.shares, strict=False))
        return Draft(self.name, left.tokens, chances=chances).cut(k)

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        draft = self._draft(context, k)
        return (draft,) if draft.tokens else ()

    def watch(self, context: Context, checked: Checked) -> None:
        """Learn whether the last leftovers came true, used or not; then keep those of this step."""
        left = self._left
        if left.start == len(context):
            for worth, share, token, written in zip(
                self._worth, left.shares, left.tokens, checked.emitted, strict=False
            ):
                worth.observe(share, token == written)
                if token != written:
                    break
        draft = checked.draft
        end = checked.path[-1] if checked.path else -1
        children = draft.children()
        tokens: list[int] = []
        shares: list[float] = []
        while children[end + 1] and len(tokens) < _LONGEST:
            end = children[end + 1][0]
            ids, found = leading(checked.rows[end + 1], _AMONG)
            tokens.append(int(ids[0]))
            shares.append(float(found[0]))
        self._left = _Left(len(context) + len(checked.emitted), tuple(tokens), tuple(shares))
