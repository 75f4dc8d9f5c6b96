"""How figures are written beside the chat: right at the edge of their column, "-" for what is not known."""

from __future__ import annotations

import math

from specchat.console import printable
from speculation.stats import Totals


def one_line(text: str) -> str:
    """Text of unknown origin, fit for one line of a screen."""
    return " ".join(printable(text).split())


def number(value: float | None, width: int, form: str = ".2f") -> str:
    """A figure at the right of its column; "-" for what is not known."""
    if value is None or not math.isfinite(value):
        return "-".rjust(width)
    text = format(value, form)
    if len(text) > width:
        text = format(value, ".0f")
    return text.rjust(width) if len(text) <= width else format(value, ".0e").rjust(width)


def percent(share: float | None, width: int) -> str:
    """A share as "68 %", at the right of its column."""
    if share is None or not math.isfinite(share):
        return "-".rjust(width)
    return f"{100 * share:.0f} %".rjust(width)


def times(speed_up: float | None, width: int) -> str:
    """A speed-up as "x1.9", at the right of its column."""
    if speed_up is None or not math.isfinite(speed_up):
        return "-".rjust(width)
    return f"x{speed_up:.1f}".rjust(width)


def duration(seconds: float | None) -> str:
    """Seconds as people say them: 9.5 s, 2 min 10 s."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if abs(seconds) < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(abs(seconds)), 60)
    return f"{'-' if seconds < 0 else ''}{minutes} min {rest:02} s"


def bar(share: float, width: int) -> str:
    """A bar of at most `width` cells, exact to half a cell; something, however small, is seen."""
    halves = round(max(0.0, min(share, 1.0)) * width * 2) if math.isfinite(share) else 0
    if share > 0:
        halves = max(1, halves)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)


def step_cost(totals: Totals, plain_step_s: float | None) -> float | None:
    """The time of a step over that of a plain step; None where either is not known."""
    if not plain_step_s or not totals.steps:
        return None
    return totals.seconds / totals.steps / plain_step_s
