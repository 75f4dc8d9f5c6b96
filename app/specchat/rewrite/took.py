"""What the runs of a rewrite took that ended before the present one, and what a plain step takes in this one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from specchat.dialogue import Dialogue
from specchat.session import Reply
from speculation.stats import Totals

_PLAIN_STEPS = 8  # plain steps from which on their own time is trusted, as the session has it


@dataclass(frozen=True, slots=True)
class Took:
    """Their steps, and the seconds in which they read."""

    totals: Totals = field(default_factory=Totals)
    read_s: float = 0.0

    def and_then(self, totals: Totals, replies: Iterable[Reply]) -> Took:
        """With what came behind."""
        return Took(self.totals + totals, self.read_s + sum(reply.read_s for reply in replies))

    def as_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**asdict(self.totals), "read_s": self.read_s}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Took:
        """What `as_json` gave. Raises KeyError, TypeError and ValueError for anything else."""
        counts = {name: _like(value, getattr(Totals(), name, 0.0)) for name, value in found.items()}
        read_s = counts.pop("read_s")
        return Took(Totals(**counts), read_s)


def plain_step_s_of(session: Dialogue, counted: Totals) -> float | None:
    """Seconds of a plain step: measured in a rewrite where it had enough of them."""
    if counted.plain_steps >= _PLAIN_STEPS:
        return counted.plain_s / counted.plain_steps
    return session.plain_step_s


def _like(found: Any, default: Any) -> Any:
    if isinstance(default, dict):
        return {str(name): _like(value, 0) for name, value in found.items()}
    if type(found) is not type(default) or not math.isfinite(found) or found < 0:
        raise ValueError("a count")
    return found
