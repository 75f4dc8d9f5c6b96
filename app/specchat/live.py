"""The figures of a running reply, all from step records, and what they say about its speed. No screens."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log
from statistics import fmean, median
from typing import TYPE_CHECKING

from speculation.stats import Totals, totals
from speculation.types import PLAIN, Step

if TYPE_CHECKING:
    from specchat.provenance import Author, Origin
    from speculation.controllers.base import Plan, Priced

RECENT_STEPS = 40  # of a sparkline, and of who guesses at present
_PLAIN_STEPS = 8  # plain steps from which on their own time is trusted, as the session has it

_WINDOW = 32  # steps that are "now", and the fewest that are "before"
_BEFORE = 4 * _WINDOW  # the most steps that are "before"
_EVERY = 8  # steps between two explanations: comparing takes longer than counting
_FALL = 0.15  # of the speed that is worth a word
_SAME = 0.1  # a change of a cause that is none
_STALL = 10.0  # times the usual step: one such step is no change of pace
_LIKE_STEPS = 8  # steps that need a like one before, to say that steps got slower
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Live:
    """A snapshot that a newer one replaces. Speed-up and saved time are estimates."""

    guess: str  # what the user chose, a value of `specchat.session.Guess`
    guesser: str  # of the last guessed one of the recent steps; "plain" where none was guessed
    reason: str  # of the last step's plan
    paused: str  # like "paused: 0.88x"; empty while guessing goes on
    considered: tuple[Priced, ...]  # by the last step's plan
    totals: Totals
    by_guesser: Mapping[str, Totals]  # plain steps too
    recent: tuple[int, ...]  # tokens of each of the last steps
    plain_step_s: float | None
    context_tokens: int
    n_ctx: int
    memory_bytes: int | None
    who: Mapping[Author, int]  # emitted tokens
    saved_s: float | None  # what plain decoding would have taken more; negative: less
    explanation: str  # of a change of speed; empty when there is none
    exact: bool = True  # whether the text follows the model exactly

    @property
    def speed_up(self) -> float | None:
        """Estimated speed over plain decoding; None under 32 steps."""
        return self.totals.speed_up(self.plain_step_s)


class LiveFigures:
    """Counts the steps of a reply."""

    def __init__(self, guess: str, plain_step_s: float | None, n_ctx: int, *, exact: bool = True) -> None:
        """`plain_step_s`: seconds of a plain step as far as known; the reply's own plain steps replace it.

        `exact`: whether its text follows the model exactly.
        """
        self._exact = exact
        self._guess = guess
        self._known_plain_step_s = plain_step_s
        self._n_ctx = n_ctx
        self._totals = Totals()
        self._by_guesser: dict[str, Totals] = {}
        self._steps: deque[Step] = deque(maxlen=_BEFORE + _WINDOW)
        self._plan: Plan | None = None
        self._explanation = ""

    @property
    def plain_step_s(self) -> float | None:
        """Seconds of a plain step: measured in this reply where it had enough of them."""
        counted = self._totals
        if counted.plain_steps >= _PLAIN_STEPS:
            return counted.plain_s / counted.plain_steps
        return self._known_plain_step_s

    def add(self, step: Step, plan: Plan | None = None) -> None:
        """Count a step and remember the plan that led to it."""
        self._totals.add(step)
        self._by_guesser.setdefault(step.guesser, Totals()).add(step)
        self._steps.append(step)
        self._plan = plan
        if self._totals.steps % _EVERY == 0:
            self._explanation = explain_speed(self._steps)

    def snapshot(
        self,
        *,
        context_tokens: int,
        guess: str | None = None,
        plain_step_s: float | None = None,
        memory_bytes: int | None = None,
        who: Mapping[Author, int] | None = None,
        origin: Origin | None = None,
    ) -> Live:
        """The figures so far; later steps do not change them. `guess` and `plain_step_s` where they are others now.

        `origin` is where the last step's draft was copied from.
        """
        self._guess = guess or self._guess
        self._known_plain_step_s = plain_step_s or self._known_plain_step_s
        counted, plain_step_s = self._totals, self.plain_step_s
        recent = _last(self._steps, RECENT_STEPS)
        reason = "" if self._plan is None else told(self._plan, origin)
        return Live(
            guess=self._guess,
            guesser=next((step.guesser for step in reversed(recent) if step.guesser != PLAIN), PLAIN),
            reason=reason,
            paused=reason if reason.startswith("paused") else "",
            considered=() if self._plan is None else self._plan.considered,
            totals=_copied(counted),
            by_guesser={name: _copied(each) for name, each in self._by_guesser.items()},
            recent=tuple(len(step.tokens) for step in recent),
            plain_step_s=plain_step_s,
            context_tokens=context_tokens,
            n_ctx=self._n_ctx,
            memory_bytes=memory_bytes,
            who=dict(who or {}),
            saved_s=None if plain_step_s is None else counted.emitted * plain_step_s - counted.seconds,
            explanation=self._explanation,
            exact=self._exact,
        )


def told(plan: Plan, origin: Origin | None = None) -> str:
    """Why a step was taken, for people: the evidence, and what was expected against the next best."""
    offers = [priced for priced in plan.considered if priced.guesser == plan.guesser and priced.k]
    if plan.k == 0 or not offers:
        return plan.reason
    chosen = max(offers, key=lambda priced: priced.tokens_per_s)
    what = plan.reason.partition(":")[0]
    if plan.draft is not None and origin is not None:
        what += f" {origin.title}:{origin.line}"
    others = [priced for priced in plan.considered if priced is not chosen]
    against = f" against {max(priced.tokens for priced in others):.1f}" if others else ""
    return f"{what}; expects {chosen.tokens:.1f} a step{against}"


def plain_position(ends: Sequence[int], elapsed_s: float, plain_step_s: float) -> int:
    """The character that plain decoding would have reached; the text's end where it would be further.

    `ends` says for each token of the reply where its characters end, as `Authorship.ends` does.
    """
    tokens = int(elapsed_s / plain_step_s) if plain_step_s > 0 else len(ends)
    return ends[min(tokens, len(ends)) - 1] if tokens > 0 and ends else 0


def sparkline(values: Sequence[int], width: int) -> str:
    """The last `width` numbers of tokens, a bar each: the lowest is 1, the highest the largest, but at least 8."""
    shown = values[max(0, len(values) - width) :] if width > 0 else ()
    top = max([len(_BARS), *shown])
    return "".join(_BARS[round((max(1, value) - 1) / (top - 1) * (len(_BARS) - 1))] for value in shown)


def explain_speed(steps: Sequence[Step]) -> str:
    """Why the last 32 steps of a reply were slower than those before; empty when they were not, or under 64 steps.

    Tokens a second are tokens a step over seconds a step. Steps take longer when they check more, or when the
    machine has become slower; like steps, before and now, tell which.
    """
    if len(steps) < 2 * _WINDOW:
        return ""
    recent = _last(steps, _BEFORE + _WINDOW)
    before, now = recent[:-_WINDOW], recent[-_WINDOW:]
    old, new = totals(before), totals(now)
    pace = _usual_s(now) / _usual_s(before) if _usual_s(before) > 0 else 0.0
    if pace <= 0 or not (old.tokens_per_step and new.tokens_per_step):
        return ""
    worth = new.tokens_per_step / old.tokens_per_step
    if worth / pace > 1 - _FALL:
        return ""
    slower = _slowdown(before, now)
    share_of_slower = log(slower) / log(pace / worth)
    causes = []
    if slower <= 1 + _SAME or share_of_slower < 2 / 3:
        causes.append(_worse(old, new, worth))
    elif old.drafted or new.drafted:
        causes.append(_as_good(new, worth))
    if slower > 1 + _SAME and share_of_slower > 1 / 3:
        causes.append("each step got slower")
    return f"speed fell {1 - worth / pace:.0%}: {', '.join(causes)}".replace("%", " %")


def _as_good(new: Totals, worth: float) -> str:
    how = "as good as" if abs(worth - 1) <= _SAME else "better than" if worth > 1 else "nearly as good as"
    return f"guesses {how} before ({new.tokens_per_step:.1f} a step)"


def _worse(old: Totals, new: Totals, worth: float) -> str:
    change = f"{old.tokens_per_step:.1f} to {new.tokens_per_step:.1f} a step"
    if worth > 1 - _SAME:
        longer = new.drafted / new.steps > old.drafted / old.steps
        return f"longer guesses cost more than they bring ({change})" if longer else "some steps took much longer"
    if 2 * _guessed(new) < _guessed(old):
        return f"fewer steps are guessed ({_guessed(old):.0%} to {_guessed(new):.0%}; {change})"
    return f"guesses got worse ({change}): this passage is new text"


def _guessed(counted: Totals) -> float:
    return 1 - counted.plain_steps / counted.steps


def _slowdown(before: Sequence[Step], now: Sequence[Step]) -> float:
    """Time of a step now over that of a like step before; 1 where too few are alike."""
    ratios = []
    for step in now:
        near = max(1, step.drafted // 8)
        like = [
            other.draft_s + other.verify_s + other.accept_s
            for other in before
            if other.guesser == step.guesser and abs(other.drafted - step.drafted) <= near
        ]
        if len(like) >= 3 and (usual := median(like)) > 0:
            ratios.append((step.draft_s + step.verify_s + step.accept_s) / usual)
    slower = median(ratios) if len(ratios) >= _LIKE_STEPS else 1.0
    return slower if slower > 0 else 1.0


def _usual_s(steps: Sequence[Step]) -> float:
    """Mean seconds of a step, without the few that took many times longer than the others."""
    seconds = [step.draft_s + step.verify_s + step.accept_s for step in steps]
    limit = _STALL * median(seconds)
    return fmean(each for each in seconds if each <= limit)


def _last(steps: Sequence[Step], n: int) -> list[Step]:
    return list(islice(steps, max(0, len(steps) - n), None))


def _copied(counted: Totals) -> Totals:
    return replace(counted, accepted_by=dict(counted.accepted_by))
