"""The simple `auto`: look up when the match is long enough for what a check costs here, else decode plainly."""

from __future__ import annotations

from collections.abc import Mapping

from speculation.context import Context
from speculation.controllers.base import Plan
from speculation.cost import CostTable
from speculation.guessers.base import Guesser
from speculation.types import Draft, Step

# A copy of L matching tokens goes on with chance (L + _FOR) / (L + _FOR + _AGAINST): a rule of succession, set so
# that the short accidental matches of ordinary prose are not worth a check on a CPU. It is moved by what happens.
_FOR = 0.5
_AGAINST = 2.5
_FORGET = 0.9


class Threshold:
    """Chooses the lookup length that gains most by measured prices; plain when none gains."""

    def __init__(self, cost: CostTable) -> None:
        self._cost = cost
        self._against = _AGAINST

    def plan(self, context: Context, guessers: Mapping[str, Guesser], room: int) -> Plan:
        found = [draft for guesser in guessers.values() for draft in guesser.candidates(context, room)]
        best = max(found, key=lambda draft: draft.match, default=None)
        if best is None:
            return Plan(reason="nothing earlier matches")
        k, gain = self._best_length(best)
        if k == 0:
            return Plan(reason=f"the last {best.match} tokens match, too few for the price of a check")
        return Plan(best.guesser, k, best, f"the last {best.match} tokens match; {gain:.1f} tokens gained for {k}")

    def record(self, step: Step) -> None:
        """Trust matches less after a rejection and slowly more again while copies go through."""
        if step.examined > step.accepted:
            self._against = min(8.0, self._against + 1.0)
        elif step.drafted:
            self._against = _AGAINST + (self._against - _AGAINST) * _FORGET**step.accepted

    def _best_length(self, draft: Draft) -> tuple[int, float]:
        """The k with the most tokens expected beyond what plain decoding writes in the same time, and that surplus."""
        plain_s = self._cost.forward_s(1)
        best, most = 0, 0.0
        survival, expected = 1.0, 0.0
        for k in range(1, len(draft.tokens) + 1):
            run = draft.match + k - 1 + _FOR
            survival *= run / (run + self._against)
            expected += survival
            gain = expected - (self._cost.forward_s(k + 1) / plain_s - 1.0)
            if gain > most:
                best, most = k, gain
        return best, most
