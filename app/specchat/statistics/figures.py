"""The figures of replies, and their sums. Numbers only: no text, no store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from specchat.draft_replay import Kind
from speculation.stats import ENOUGH_STEPS
from speculation.types import PLAIN


class Work(StrEnum):
    """What a piece of a reply is."""

    CODE = Kind.CODE.value
    LIST = Kind.LIST.value
    PROSE = Kind.PROSE.value
    REWRITING = "rewriting"  # the reply as a whole repeats most of its question


class Counts(NamedTuple):
    """What some steps add up to."""

    steps: int = 0
    tokens: int = 0  # emitted
    examined: int = 0
    accepted: int = 0
    seconds: float = 0.0


class Cell(NamedTuple):
    """The steps of a reply that one guesser took, in one kind of text."""

    work: Work
    guesser: str  # "plain" for steps without a draft
    counts: Counts


@dataclass(frozen=True, slots=True)
class ReplyFigures:
    """What was written of a reply in one go."""

    reply: int  # parts of a reply that was continued share it
    ended: float  # seconds since 1970
    model: str
    draft: str | None  # the draft model that was loaded
    guess: str  # what the user chose, a value of `specchat.reply.Guess`
    temperature: float | None
    plain_step_s: float | None  # seconds of a plain step at that time; None: not known
    cells: tuple[Cell, ...]


class Sum:
    """What cells of many replies add up to. Speeds are estimates, from the plain steps of the same replies."""

    def __init__(self) -> None:
        self.steps = self.tokens = self.examined = self.accepted = 0
        self.seconds = 0.0
        self.priced_steps = 0  # those of replies in which the time of a plain step is known, as below
        self.priced_s = 0.0
        self.plain_s = 0.0  # what plain decoding would have taken for their tokens
        self.guessed_s = 0.0  # of steps with a draft
        self.guessed_plain_s = 0.0  # of as many plain steps
        self._replies: set[int] = set()

    def add(self, figures: ReplyFigures, cell: Cell) -> None:
        """Count a cell of a reply."""
        counts, plain_step_s = cell.counts, figures.plain_step_s
        self._replies.add(figures.reply)
        self.steps += counts.steps
        self.tokens += counts.tokens
        self.examined += counts.examined
        self.accepted += counts.accepted
        self.seconds += counts.seconds
        if plain_step_s is None:
            return
        self.priced_steps += counts.steps
        self.priced_s += counts.seconds
        self.plain_s += counts.tokens * plain_step_s
        if cell.guesser != PLAIN:
            self.guessed_s += counts.seconds
            self.guessed_plain_s += counts.steps * plain_step_s

    @property
    def replies(self) -> int:
        return len(self._replies)

    @property
    def tokens_per_step(self) -> float | None:
        return self.tokens / self.steps if self.steps else None

    @property
    def alpha(self) -> float | None:
        """Accepted / examined."""
        return self.accepted / self.examined if self.examined else None

    @property
    def step_cost(self) -> float | None:
        """The time of a step with a draft, in plain steps."""
        return self.guessed_s / self.guessed_plain_s if self.guessed_plain_s > 0 else None

    @property
    def speed_up(self) -> float | None:
        """Estimated speed over plain decoding; None from too few steps."""
        if self.priced_steps < ENOUGH_STEPS or self.priced_s <= 0:
            return None
        return self.plain_s / self.priced_s

    @property
    def saved_s(self) -> float | None:
        """Estimated seconds that guessing has saved, below zero where it has lost; None from too few steps."""
        return None if self.speed_up is None else self.plain_s - self.priced_s


def summed(replies: Iterable[ReplyFigures]) -> Sum:
    """The sum of everything."""
    return grouped(replies, lambda figures, cell: "").get("", Sum())


def grouped(replies: Iterable[ReplyFigures], key: Callable[[ReplyFigures, Cell], str]) -> dict[str, Sum]:
    """A sum for each key, the one with the most tokens first."""
    found: dict[str, Sum] = {}
    for figures in replies:
        for cell in figures.cells:
            found.setdefault(key(figures, cell), Sum()).add(figures, cell)
    return dict(sorted(found.items(), key=lambda item: (-item[1].tokens, item[0])))
