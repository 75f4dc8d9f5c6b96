"""Whether a reply is what its model alone would have written, and what is said where it may not be."""

from __future__ import annotations

INEXACT_RULES = ("typical",)  # of `speculation.accept`: those whose `is_exact` is False
INEXACT = "rule typical: no longer exactly the model's text"


def follows_exactly(rule: str, temperature: float | None) -> bool:
    """Whether text that was written so is distributed as the model alone would write it.

    At temperature 0 the model has one choice, which every rule leaves to it.
    """
    return rule not in INEXACT_RULES or temperature == 0
