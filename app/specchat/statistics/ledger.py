"""What guessing has saved so far, and what a temperature costs. Pure: figures in, figures out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specchat.reply import Guess
from specchat.statistics.figures import ReplyFigures, Sum, summed
from speculation.stats import ENOUGH_STEPS


@dataclass(frozen=True, slots=True)
class Ledger:
    """Seconds that guessing has saved, estimated; below zero where it has lost, None where too little is known."""

    total_s: float | None
    week_s: float | None  # in the last seven days
    today_s: float | None


_DAY_S = 86_400.0


def ledger(replies: Sequence[ReplyFigures], midnight: float) -> Ledger:
    """What was saved in all and since `midnight`, the beginning of today in seconds since 1970."""

    def since(moment: float) -> float | None:
        return summed(figures for figures in replies if figures.ended >= moment).saved_s

    return Ledger(since(float("-inf")), since(midnight - 6 * _DAY_S), since(midnight))


@dataclass(frozen=True, slots=True)
class AtTemperature:
    """What guesses were worth at a temperature."""

    temperature: float  # rounded to a tenth
    replies: int
    steps: int
    tokens_per_step: float
    alpha: float | None
    speed_up: float | None  # estimated; None from too few steps


def by_temperature(replies: Iterable[ReplyFigures]) -> list[AtTemperature]:
    """Replies that were written with guesses, by their temperature, the lowest first."""
    found: dict[float, Sum] = {}
    for figures in replies:
        if figures.temperature is None or figures.guess == Guess.OFF:
            continue
        group = found.setdefault(round(figures.temperature, 1), Sum())
        for cell in figures.cells:
            group.add(figures, cell)
    return [
        AtTemperature(temperature, group.replies, group.steps, group.tokens_per_step, group.alpha, group.speed_up)
        for temperature, group in sorted(found.items())
        if group.tokens_per_step is not None
    ]


def price_at(groups: Sequence[AtTemperature], temperature: float) -> str:
    """What a temperature costs, against the lowest one that was used; empty where too little is known of both."""
    known = [group for group in groups if group.steps >= ENOUGH_STEPS]
    at = next((group for group in known if group.temperature == round(temperature, 1)), None)
    if at is None:
        return ""
    lowest = known[0]
    if at is lowest:
        return f"{at.tokens_per_step:.1f} tokens per step here"
    lost = 1 - at.tokens_per_step / lowest.tokens_per_step
    compared = f"{at.tokens_per_step:.1f}, at {lowest.temperature:.1f} {lowest.tokens_per_step:.1f}"
    cost = f"costs {lost:.0%} of tokens per step here" if lost >= 0.005 else "costs no tokens per step here"
    return f"{cost} ({compared})"


def price_tag(groups: Sequence[AtTemperature]) -> str:
    """One line for people: "at 0.2 2.4 tokens per step, at 1.0 1.6 (from your 63 replies)"."""
    if not groups:
        return "no reply was written with guesses yet"
    told = ", ".join(
        f"at {group.temperature:.1f} {group.tokens_per_step:.1f}{' tokens per step' if i == 0 else ''}"
        for i, group in enumerate(groups)
    )
    replies = sum(group.replies for group in groups)
    return f"{told} (from your {'last reply' if replies == 1 else f'{replies} replies'})"
