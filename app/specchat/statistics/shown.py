"""The figures as people read them: tables of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from specchat.attachments import label
from specchat.statistics.figures import Sum
from specchat.statistics.ledger import AtTemperature, Ledger
from speculation.stats import ENOUGH_STEPS

WIDTH = 80  # characters
_NAME = 23
LEGEND = (
    "accepted: of the guesses that were looked at; cost: of a step with guesses, in\n"
    "plain steps; speed and saved: against plain decoding, est from the plain steps\n"
    f'of the same replies; "-": none, or fewer than {ENOUGH_STEPS} steps, which is not enough yet'
)


def duration(seconds: float | None) -> str:
    """Seconds as people say them: 9.5 s, 2 min 10 s, 3 h 05 min; a dash for None."""
    if seconds is None:
        return "-"
    sign, rest = ("-" if seconds < 0 else ""), abs(seconds)
    if rest < 59.95:
        return f"{sign}{rest:.1f} s"
    minutes, whole = divmod(round(rest), 60)
    if minutes < 60:
        return f"{sign}{minutes} min {whole:02} s"
    return f"{sign}{minutes // 60:,} h {minutes % 60:02} min"


def wrapped(line: str, indent: str = "") -> list[str]:
    """A sentence in lines that fit."""
    return textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ")


def headline(total: Sum, saved: Ledger) -> list[str]:
    """The totals, first of all."""
    replies = f"{total.replies:,} repl{'y' if total.replies == 1 else 'ies'}"
    per_step = "" if total.tokens_per_step is None else f", {total.tokens_per_step:.2f} tokens per step"
    lines = [f"{replies}, {total.tokens:,} tokens{per_step}"]
    if saved.total_s is None:
        return [*lines, f"time saved: not enough yet to say ({total.priced_steps} steps of {ENOUGH_STEPS})"]
    times = {"in all": saved.total_s, "in 7 days": saved.week_s, "today": saved.today_s}
    known = ", ".join(f"{duration(seconds)} {when}" for when, seconds in times.items() if seconds is not None)
    return [*lines, f"time saved, est: {known}"]


def table(title: str, sums: Mapping[str, Sum]) -> list[str]:
    """A line for each sum under a head."""
    head = ("replies", "tokens", "tok/step", "accepted", "cost", "speed", "saved")
    return [_line(title, head), *(_line(name, _cells(each)) for name, each in sums.items())]


def temperature_table(groups: Sequence[AtTemperature]) -> list[str]:
    """A line for each temperature under a head."""
    lines = ["temperature  replies     steps  tok/step  accepted  speed (est)"]
    for group in groups:
        accepted = "-" if group.alpha is None else f"{group.alpha:.0%}"
        lines.append(
            f"{group.temperature:11.1f}  {group.replies:7,}  {group.steps:8,}  {group.tokens_per_step:8.2f}"
            f"  {accepted:>8}  {_times(group.speed_up):>11}"
        )
    return lines


def _cells(each: Sum) -> tuple[str, ...]:
    return (
        f"{each.replies:,}",
        f"{each.tokens:,}",
        "-" if each.tokens_per_step is None else f"{each.tokens_per_step:.2f}",
        "-" if each.alpha is None else f"{each.alpha:.0%}",
        "-" if each.step_cost is None else f"{each.step_cost:.{2 if each.step_cost < 99.5 else 0}f}",
        _times(each.speed_up),
        _short(each.saved_s),
    )


_WIDTHS = (8, 10, 9, 9, 6, 7, 8)


def _line(name: str, cells: Sequence[str]) -> str:
    name = label(name) or "(not known)"
    shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
    return shown.ljust(_NAME) + "".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))


def _times(speed_up: float | None) -> str:
    return "-" if speed_up is None else f"x{speed_up:.2f}"


def _short(seconds: float | None) -> str:
    """A duration in seven characters: -9 s, 14 min, 32 h."""
    if seconds is None:
        return "-"
    size = abs(seconds)
    if size < 99.5:
        return f"{round(seconds)} s"  # which, unlike a format, knows no minus zero
    if size < 99.5 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
