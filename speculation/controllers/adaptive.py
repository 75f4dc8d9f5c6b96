"""`auto`: at every step the guesser and the length that promise most tokens a second, at what steps cost just now.

Speed in the long run is E[N] / E[T], the tokens and the seconds of a step. The step that maximises E[N] - lambda E[T]
at the price of time lambda which makes that maximum zero is the one with the largest ratio, so no lambda is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate, repeat
from math import inf
from operator import mul

from speculation.context import Context
from speculation.controllers.base import Plan, Priced
from speculation.controllers.drafter import Drafter
from speculation.controllers.stopping import Stopping
from speculation.cost import CostTable, LivePrices
from speculation.guessers.base import Guesser
from speculation.types import PLAIN, Draft, Step

# What a guess must promise beyond its price, as a share of the price. The best of many estimates is an overestimate,
# and where checks are dear (a CPU) the open text in between must not pay for it. Where they are cheap it is nothing.
_MARGIN = 0.2
_LONGEST_DRAFT = 16  # tokens in a row of a guesser whose tokens have a price, when it is priced,
_LARGEST_DRAFT = 63  # and tokens of its drafts

_GUARD_KEEP = 0.95  # of realised gains and losses at each guessed step
_GUARD_STEPS = 8  # guessed steps before the guard judges
_LOSING = 0.95  # realised speed over plain below which guessing pauses,
_LOST = 2.0  # once that has cost the time of so many plain steps: a few unlucky cheap guesses are no reason
_PAUSE, _LONGEST_PAUSE = 32, 512  # plain steps
_NAMES = {
    "draft": "the draft model",
    "eagle": "the EAGLE head",
    "eagle3": "the EAGLE-3 head",
    "medusa": "the Medusa heads",
    "mtp": "multi-token prediction",
    "recycling": "likely here before",
    "leftovers": "left over from a rejected guess",
}


class Adaptive:
    """Prices every candidate at every length; plain decoding is always one."""

    def __init__(
        self,
        cost: CostTable,
        draft_step_s: float | None = None,
        *,
        heads: Mapping[str, float] | None = None,
        alphas: Mapping[str, float] | None = None,
        insist: str | None = None,
        along: Collection[str] = (),
    ) -> None:
        """`draft_step_s`: seconds in which a draft model writes a token, roughly; None: never try one.

        `heads`: the same of other guessers whose tokens have a price, by name.
        `alphas`: the chance that a token of these is accepted, where that was seen elsewhere.
        `insist` names a guesser that somebody chose by hand: it alone guesses, whenever it has something to offer, at
        the length that looks best. Guessers named in `along` may guess beside it.
        """
        self.losing = _LOSING  # realised speed over plain below which guessing pauses; 0: never
        self._insist = insist
        self._along = frozenset(along)
        self._prices = LivePrices(cost)
        priced = ({} if draft_step_s is None else {"draft": draft_step_s}) | dict(heads or {})
        known = alphas or {}
        self._drafters = {name: Drafter(token_s, known.get(name)) for name, token_s in priced.items()}
        self._stopping: Stopping | None = None  # of the last draft
        self._asked: Drafter | None = None  # to propose in the present step
        self._gained = self._spent = 0.0  # of guessed steps, in plain steps, discounted
        self._judged = 0  # guessed steps since the last pause
        self._pause = _PAUSE
        self._paused = 0  # plain steps left
        self._paused_at = 1.0  # the realised speed that led to the pause

    def plan(self, context: Context, guessers: Mapping[str, Guesser], room: int) -> Plan:
        plain_s = self._prices.forward_s(1)
        plain = Priced(PLAIN, 0, 1.0, plain_s)
        self._asked = None
        if self._insist is not None:
            return self._insisted(_shown(guessers, context, room, 0.0), guessers, room, plain)
        waits = ""
        if self._paused:
            waits = f"paused: {self._paused_at:.2f}x"
        elif self._prices.plain_is_doubtful:
            waits = "a plain step, to see what it costs now"
        least = inf if waits or room <= 0 else (1.0 + _MARGIN) * self._prices.least_chance(room)
        # Asked also while guessing pauses: a lookup learns from what is written.
        found = _shown(guessers, context, room, least)
        if waits:
            return Plan(reason=waits, considered=(plain,))
        offers: list[tuple[Priced, Draft | None]] = [(plain, None)]
        offers += [(self._best(draft.guesser, draft.reaches(), plain_s), draft) for draft in found]
        for name, drafter in self._drafters.items():
            if name in guessers and not drafter.rest:
                reaches = accumulate(repeat(drafter.alpha, min(room, _LONGEST_DRAFT)), mul)
                offers.append((self._best(name, reaches, plain_s, drafter.token_s), None))
        considered = tuple(priced for priced, _ in offers)
        best, draft = max(offers, key=lambda offer: offer[0].tokens_per_s)
        reason = _reason(best, draft, plain_s)
        if not best.k:
            return Plan(reason=reason, considered=considered)
        return self._carried_out(best, draft, reason, considered, room)

    def _carried_out(
        self, best: Priced, draft: Draft | None, reason: str, considered: tuple[Priced, ...], room: int
    ) -> Plan:
        """A draft model may go on as long as each token is worth its price; a candidate is there already."""
        if draft is not None:
            return Plan(best.guesser, best.k, draft, reason, considered)
        self._asked = drafter = self._drafters[best.guesser]
        self._stopping = Stopping(self._prices, drafter.token_s, drafter.alpha, best.tokens_per_s)
        return Plan(best.guesser, min(room, _LARGEST_DRAFT), None, reason, considered, self._stopping)

    def _insisted(self, found: Iterable[Draft], guessers: Mapping[str, Guesser], room: int, plain: Priced) -> Plan:
        offers: list[tuple[Priced, Draft | None]] = [
            (self._best(draft.guesser, draft.reaches(), plain.seconds, demand=0.0), draft)
            for draft in found
            if draft.guesser == self._insist or draft.guesser in self._along
        ]
        name = self._insist or PLAIN
        if name in guessers and (drafter := self._drafters.get(name)) is not None:
            reaches = accumulate(repeat(drafter.alpha, min(room, _LONGEST_DRAFT)), mul)
            offers.append((self._best(name, reaches, plain.seconds, drafter.token_s, demand=0.0), None))
        offers = [offer for offer in offers if offer[0].k]
        if not offers:
            return Plan(reason=f"{self._insist} has nothing to offer", considered=(plain,))
        best, draft = max(offers, key=lambda offer: offer[0].tokens_per_s)
        considered = (plain, *(priced for priced, _ in offers))
        return self._carried_out(best, draft, _reason(best, draft, plain.seconds), considered, room)

    def take_up(self, guesser: str, held: Iterable[bool]) -> None:
        """Learn whether tokens that a guesser would have drafted held, each as if it had been a step."""
        if (drafter := self._drafters.get(guesser)) is not None:
            for each in held:
                drafter.fade()
                drafter.count(accepted=int(each), examined=1)

    def promises(self, guesser: str) -> bool:
        """Whether a guesser whose tokens have a price would be worth it now, as far as is known."""
        drafter = self._drafters.get(guesser)
        if drafter is None:
            return False
        reaches = accumulate(repeat(drafter.alpha, _LONGEST_DRAFT), mul)
        return self._best(guesser, reaches, self._prices.forward_s(1), drafter.token_s).k > 0

    def record(self, step: Step) -> None:
        """Learn what the step took and what it was worth."""
        self._prices.observe(step.drafted + 1, step.verify_s + step.accept_s)
        plain_s = self._prices.forward_s(1)
        for drafter in self._drafters.values():
            drafter.fade()
        if step.guesser == PLAIN:
            self._paused = max(0, self._paused - 1)
            if self._asked is not None:
                self._asked.proposed_nothing()
            self._asked = None
            return
        if step.guesser in self._drafters:
            stopping = self._stopping
            drafted, longest = (step.drafted, None) if stopping is None else (stopping.drafted, stopping.alone)
            self._drafters[step.guesser].observe(step, drafted, longest)
        expected_s = self._prices.forward_s(step.drafted + 1)
        # One step that took a hundred times longer says nothing about guessing.
        seconds = step.draft_s + min(step.verify_s + step.accept_s, 3 * expected_s)
        self._guard(len(step.tokens), seconds / plain_s)

    def _guard(self, gained: float, spent: float) -> None:
        """Pause when guessed steps lose; both are in plain steps. Pauses double until guessing has won again."""
        self._gained = self._gained * _GUARD_KEEP + gained
        self._spent = self._spent * _GUARD_KEEP + spent
        self._judged += 1
        if self._judged < _GUARD_STEPS:
            return
        speed_up = self._gained / self._spent
        if speed_up >= 1.0:
            self._pause = _PAUSE
        elif speed_up < self.losing and self._spent - self._gained > _LOST:
            self._paused, self._paused_at = self._pause, speed_up
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._gained = self._spent = 0.0
            self._judged = 0

    def _best(
        self,
        guesser: str,
        reaches: Iterable[float],
        plain_s: float,
        token_s: float = 0.0,
        demand: float = 1.0 + _MARGIN,
    ) -> Priced:
        """A candidate at the number of nodes that promises most tokens a second, or k = 0.

        `reaches`: of each node to be accepted, not rising, so that the first of them are the best smaller draft. A
        number is considered when it promises `demand` times the plain steps that it costs.
        """
        forward_s = self._prices.forward_s
        best, speed = Priced(guesser, 0, 1.0, plain_s), 0.0
        expected = 0.0
        for k, reach in enumerate(reaches, 1):
            expected += reach
            seconds = forward_s(k + 1) + k * token_s
            if 1.0 + expected > speed * seconds and expected > demand * (seconds / plain_s - 1.0):
                speed = (1.0 + expected) / seconds
                best = Priced(guesser, k, 1.0 + expected, seconds)
        return best


def _shown(guessers: Mapping[str, Guesser], context: Context, room: int, least: float) -> list[Draft]:
    return [draft for guesser in guessers.values() for draft in guesser.candidates(context, room, least)]


def _reason(best: Priced, draft: Draft | None, plain_s: float) -> str:
    if best.k == 0:
        return "no guess is worth its check"
    what = _NAMES.get(best.guesser, best.guesser)
    if draft is not None and draft.match:
        what = "the last token matches" if draft.match == 1 else f"the last {draft.match} tokens match"
    return f"{what}: {best.tokens:.1f} tokens expected in the time of {best.seconds / plain_s:.1f}"
