"""What guessing is worth: tokens per step, speed-up and the best draft length, in closed form.

Numbers only: no models, no measurements. Sources: Leviathan et al. 2023, equation 1 (tokens per step) and
theorem 3.8 (speed-up); both assume that every guess survives with the same chance, whatever came before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def tokens_per_step(alpha: float, k: int) -> float:
    """Expected tokens of a step with k guesses: (1 - alpha^(k+1)) / (1 - alpha), and k + 1 at alpha = 1."""
    _check_chance("alpha", alpha)
    _check_count("k", k)
    # The sum of powers is the same number; the quotient loses all its digits as alpha nears 1.
    return sum((alpha**i for i in range(1, k + 1)), start=1.0)


def speed_up(alpha: float, k: int, draft_cost: float) -> float:
    """Tokens per step over the cost of a step, k * draft_cost + 1, which counts in plain steps.

    Verifying k + 1 rows is taken to cost as much as one row: true only while decoding waits for memory.
    """
    _check_cost(draft_cost)
    return tokens_per_step(alpha, k) / (k * draft_cost + 1)


def best_k(alpha: float, draft_cost: float, max_k: int) -> int:
    """The k in 0..max_k with the highest speed-up, the smallest of them if several; 0 is plain decoding."""
    _check_count("max_k", max_k)
    return max(range(max_k + 1), key=lambda k: speed_up(alpha, k, draft_cost))


def expected_tokens(survival: Sequence[float]) -> float:
    """Expected tokens of a step whose guess i survives with chance survival[i], given those before it did.

    One token always comes; guess i adds one when all of survival[: i + 1] happen.
    """
    total = reached = 1.0
    for chance in survival:
        _check_chance("survival", chance)
        reached *= chance
        total += reached
    return total


def _check_chance(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is {value}; it must be from 0 to 1")


def _check_count(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name} is {value}; it must be 0 or more")


def _check_cost(draft_cost: float) -> None:
    if not 0.0 <= draft_cost < math.inf:
        raise ValueError(f"draft_cost is {draft_cost}; it must be 0 or more, and finite")
