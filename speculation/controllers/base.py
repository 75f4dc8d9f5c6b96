"""What a controller is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from speculation.context import Context
from speculation.guessers.base import Guesser, KeepOn
from speculation.types import PLAIN, Draft, Step


@dataclass(frozen=True, slots=True)
class Priced:
    """A candidate at its best length, and what is expected of it."""

    guesser: str
    k: int
    tokens: float  # expected from the step, the one that the target adds included
    seconds: float  # expected for the step

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """Who guesses in the next step, how far, and why."""

    guesser: str = PLAIN
    k: int = 0  # 0 is a plain step
    draft: Draft | None = None  # the candidate that was chosen; None: ask the guesser to propose
    reason: str = ""  # for people
    considered: tuple[Priced, ...] = ()  # what it was chosen from, plain decoding first
    keep_on: KeepOn | None = None  # whether another token of a guesser that is asked to propose is worth its price


class Controller(Protocol):
    """Decides before each step and learns from the record after it."""

    def plan(self, context: Context, guessers: Mapping[str, Guesser], room: int) -> Plan:
        """Choose a guesser and k <= room. room counts the draft tokens that context and limit still allow."""
        ...

    def record(self, step: Step) -> None: ...
