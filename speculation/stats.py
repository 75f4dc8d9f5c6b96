"""Counts of steps and the rates that people are shown. Every number here comes from `Step` records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from speculation.types import LOOKUP, PLAIN, Step

ENOUGH_STEPS = 32  # below it no speed-up is shown


@dataclass
class Totals:
    """What the steps of a reply add up to."""

    steps: int = 0
    emitted: int = 0
    drafted: int = 0
    examined: int = 0
    accepted: int = 0
    draft_s: float = 0.0
    verify_s: float = 0.0
    accept_s: float = 0.0
    plain_steps: int = 0
    plain_s: float = 0.0  # seconds of the plain steps alone
    accepted_by: dict[str, int] = field(
        default_factory=dict
    )  # guesser -> accepted tokens; copies behind a draft are the lookup's

    def add(self, step: Step) -> None:
        """Count one step."""
        self.steps += 1
        self.emitted += len(step.tokens)
        self.drafted += step.drafted
        self.examined += step.examined
        self.accepted += step.accepted
        self.draft_s += step.draft_s
        self.verify_s += step.verify_s
        self.accept_s += step.accept_s
        if step.guesser == PLAIN:
            self.plain_steps += 1
            self.plain_s += step.draft_s + step.verify_s + step.accept_s
        elif step.accepted:
            copied = sum(source is not None for source in step.sources or ()) if step.source is None else 0
            for name, count in ((step.guesser, step.accepted - copied), (LOOKUP, copied)):
                if count:
                    self.accepted_by[name] = self.accepted_by.get(name, 0) + count

    def __add__(self, other: Totals) -> Totals:
        """The steps of both."""
        names = [each.name for each in fields(self) if each.name != "accepted_by"]
        counts = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Totals(**counts, accepted_by=dict(Counter(self.accepted_by) + Counter(other.accepted_by)))

    @property
    def seconds(self) -> float:
        """Time spent in steps."""
        return self.draft_s + self.verify_s + self.accept_s

    @property
    def tokens_per_step(self) -> float | None:
        return self.emitted / self.steps if self.steps else None

    @property
    def alpha(self) -> float | None:
        """Accepted / examined."""
        return self.accepted / self.examined if self.examined else None

    @property
    def tokens_per_s(self) -> float | None:
        return self.emitted / self.seconds if self.seconds > 0 else None

    def speed_up(self, plain_step_s: float | None) -> float | None:
        """Estimated speed over plain decoding, given the seconds of a plain step; None from too few steps."""
        if plain_step_s is None or self.steps < ENOUGH_STEPS or self.seconds <= 0:
            return None
        return self.emitted * plain_step_s / self.seconds


def totals(steps: Iterable[Step]) -> Totals:
    """The totals of some steps."""
    counted = Totals()
    for step in steps:
        counted.add(step)
    return counted
