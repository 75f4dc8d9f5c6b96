"""One guesser, one length: what a user chose by hand, and what tests and comparisons need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speculation.context import Context
from speculation.controllers.base import Plan
from speculation.guessers.base import Guesser
from speculation.types import PLAIN, Step


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same guesser with at most k tokens; `Fixed()` is plain decoding."""

    guesser: str = PLAIN
    k: int = 0

    def plan(self, context: Context, guessers: Mapping[str, Guesser], room: int) -> Plan:
        k = min(self.k, room)
        return Plan(self.guesser, k) if k > 0 and self.guesser in guessers else Plan()

    def record(self, step: Step) -> None:
        """Nothing to learn."""
