"""Which guesser suits which kind of work, by what replies took so far, and how sure that is. Pure.

A guesser is weighed against plain decoding: the time that plain steps would have taken for all tokens of a kind of
text, over the time that was taken. In a reply that `auto` wrote, the steps of one guesser are what that guesser saves,
and everything else counts as plain; so what it would do alone is rather more than less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from specchat.reply import OWN, Guess
from specchat.statistics.figures import Cell, ReplyFigures, Work
from speculation.stats import ENOUGH_STEPS
from speculation.types import PLAIN

LEAST_REPLIES = 3  # of which something is said: one reply says more of its subject than of a kind of work
AS_GOOD = 0.98  # of the best speed: what gives as much is preferred where it is simpler
_ERRORS = 2.0  # standard errors by which the best must lead
_TOLERATED = 0.1  # as many standard errors of two that are called as good
_SIMPLEST_FIRST = (
    Guess.OFF,
    Guess.LOOKUP,
    Guess.RECYCLING,
    Guess.MTP,
    Guess.MEDUSA,
    Guess.EAGLE,
    Guess.EAGLE3,
    Guess.DRAFT,
    Guess.AUTO,
)


class Sureness(StrEnum):
    """How much an advice rests on."""

    CLEAR = "clear"
    UNCLEAR = "unclear"  # the guessers differ by less than replies do
    TOO_LITTLE = "not enough yet"


@dataclass(frozen=True, slots=True)
class Weighed:
    """What one guesser was worth in one kind of text."""

    guess: Guess
    speed_up: float  # estimated, over plain decoding
    error: float  # the standard error of that, by how much replies differ
    replies: int
    steps: int  # with a draft of this guesser


@dataclass(frozen=True, slots=True)
class Advice:
    """What to choose for a kind of work."""

    work: Work
    guess: Guess  # `auto`, which finds out by itself, where nothing better is known
    sureness: Sureness
    replies: int
    steps: int
    weighed: tuple[Weighed, ...]  # the best first; only what was tried often enough

    @property
    def line(self) -> str:
        """One line for people."""
        tried = f"{self.replies} repl{'y' if self.replies == 1 else 'ies'}, {self.steps:,} steps"
        if self.sureness is Sureness.TOO_LITTLE:
            least = f"a guesser needs {LEAST_REPLIES} and {ENOUGH_STEPS}"
            return f"{self.work}: not enough yet to advise ({tried}; {least})"
        speeds = ", ".join(f"{each.guess} x{each.speed_up:.2f}" for each in self.weighed)
        return f"{self.work}: {self.guess} ({self.sureness}; est {speeds}; {tried})"


@dataclass(slots=True)
class _Evidence:
    """Times of replies, as sums from which a ratio and its error follow."""

    replies: dict[int, tuple[float, float]] = field(default_factory=dict)  # reply -> plain, taken, in seconds
    steps: int = 0

    def add(self, reply: int, plain_s: float, taken_s: float, steps: int) -> None:
        before = self.replies.get(reply, (0.0, 0.0))
        self.replies[reply] = (before[0] + plain_s, before[1] + taken_s)
        self.steps += steps

    def weighed(self, guess: Guess) -> Weighed | None:
        """Speed over plain; None where too little was seen."""
        taken_s = sum(taken for _, taken in self.replies.values())
        if self.steps < ENOUGH_STEPS or len(self.replies) < LEAST_REPLIES or taken_s <= 0:
            return None
        speed_up = sum(plain for plain, _ in self.replies.values()) / taken_s
        return Weighed(guess, speed_up, _error(self.residuals(), {}), len(self.replies), self.steps)

    def residuals(self) -> dict[int, float]:
        """By how much each reply pulls the speed-up, a ratio of sums, away from what it is."""
        taken_s = sum(taken for _, taken in self.replies.values())
        speed_up = sum(plain for plain, _ in self.replies.values()) / taken_s
        return {reply: (plain - speed_up * taken) / taken_s for reply, (plain, taken) in self.replies.items()}


def _error(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """The standard error of the difference of two ratios; what a reply does to both of them cancels."""
    replies = one.keys() | other.keys()
    spread = sum((one.get(reply, 0.0) - other.get(reply, 0.0)) ** 2 for reply in replies)
    return math.sqrt(spread * len(replies) / max(1, len(replies) - 1))


def advice(replies: Iterable[ReplyFigures]) -> list[Advice]:
    """An advice for each kind of work that was seen, in their order. The replies should be of one model."""
    seen: dict[Work, dict[Guess, _Evidence]] = {}
    counted: dict[Work, tuple[set[int], int]] = {}
    for figures in replies:
        of_work: dict[Work, list[Cell]] = {}
        for cell in figures.cells:
            of_work.setdefault(cell.work, []).append(cell)
        for work, cells in of_work.items():
            known, steps = counted.setdefault(work, (set(), 0))
            known.add(figures.reply)
            counted[work] = (known, steps + sum(cell.counts.steps for cell in cells))
            if figures.plain_step_s is not None:
                _weigh(seen.setdefault(work, {}), figures, cells, figures.plain_step_s)
    return [
        _advice(work, seen.get(work, {}), len(counted[work][0]), counted[work][1]) for work in Work if work in counted
    ]


def _weigh(evidence: dict[Guess, _Evidence], figures: ReplyFigures, cells: Sequence[Cell], plain_step_s: float) -> None:
    """Count what one reply says of each guesser that could have guessed in it."""
    if figures.guess not in list(Guess) or figures.guess == Guess.OFF:
        return
    chosen = Guess(figures.guess)
    plain_s = sum(cell.counts.tokens for cell in cells) * plain_step_s
    taken_s = sum(cell.counts.seconds for cell in cells)
    steps = sum(cell.counts.steps for cell in cells if cell.guesser != PLAIN)
    # What auto seldom chose to guess at is known of auto all the same.
    judged = sum(cell.counts.steps for cell in cells) if chosen is Guess.AUTO else steps
    evidence.setdefault(chosen, _Evidence()).add(figures.reply, plain_s, taken_s, judged)
    if chosen is not Guess.AUTO:
        return
    for guess in (Guess.LOOKUP, Guess.RECYCLING, Guess.DRAFT, *OWN):
        if guess is Guess.DRAFT and figures.draft is None:
            continue
        if guess in (Guess.RECYCLING, *OWN) and all(cell.guesser != guess for cell in cells):
            continue  # nothing says that it was there
        own = [cell.counts for cell in cells if cell.guesser == guess]
        saved_s = sum(each.tokens * plain_step_s - each.seconds for each in own)
        evidence.setdefault(guess, _Evidence()).add(
            figures.reply, plain_s, plain_s - saved_s, sum(each.steps for each in own)
        )


def _advice(work: Work, evidence: dict[Guess, _Evidence], replies: int, steps: int) -> Advice:
    found = [each for guess in Guess if guess in evidence and (each := evidence[guess].weighed(guess)) is not None]
    if not found:
        return Advice(work, Guess.AUTO, Sureness.TOO_LITTLE, replies, steps, ())
    residuals = {each.guess: evidence[each.guess].residuals() for each in found}
    found.append(Weighed(Guess.OFF, 1.0, 0.0, replies, 0))
    found.sort(key=lambda each: (-each.speed_up, _SIMPLEST_FIRST.index(each.guess)))
    as_good = [each for each in found if each.speed_up >= AS_GOOD * found[0].speed_up]
    chosen = min(as_good, key=lambda each: _SIMPLEST_FIRST.index(each.guess))

    def is_settled(other: Weighed) -> bool:
        lead = chosen.speed_up - other.speed_up
        doubt = _ERRORS * _error(residuals.get(chosen.guess, {}), residuals.get(other.guess, {}))
        return lead > doubt or (other in as_good and doubt <= _TOLERATED)

    if all(is_settled(other) for other in found if other is not chosen):
        return Advice(work, chosen.guess, Sureness.CLEAR, replies, steps, tuple(found))
    return Advice(work, Guess.AUTO, Sureness.UNCLEAR, replies, steps, tuple(found))
