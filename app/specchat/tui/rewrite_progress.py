"""What a screen is told while a file is written again, and what it says of it. Knows no widget and no engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specchat.tui.screens.downloading import duration

SURE_COPIES = 24  # steps accepted whole, in a row, from which on the rest looks unchanged
_SHOWN = 4  # edits


class EditSoFar(Protocol):
    """Old lines [start, end) that became the new lines [new_start, new_end); from 0."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def new_start(self) -> int: ...
    @property
    def new_end(self) -> int: ...


class RewriteProgress(Protocol):
    """How far a rewrite is after a step. Seconds ahead are estimates, None where nothing is known."""

    @property
    def line(self) -> int: ...  # old lines that are done
    @property
    def lines(self) -> int: ...  # ... of so many
    @property
    def edits(self) -> Sequence[EditSoFar]: ...
    @property
    def tokens_per_step(self) -> float | None: ...
    @property
    def seconds_left(self) -> float | None: ...
    @property
    def plain_seconds_left(self) -> float | None: ...
    @property
    def whole_copies(self) -> int: ...  # the last steps in a row whose guesses were accepted whole


def figures(progress: RewriteProgress) -> list[tuple[int, str]]:
    """Line, speed and time, each with how much it is missed where there is no room (0: most)."""
    per_step, left, plain = progress.tokens_per_step, progress.seconds_left, progress.plain_seconds_left
    return [
        (0, f"line {progress.line}/{progress.lines}"),
        (2, "" if per_step is None else f"{per_step:.1f} tokens/step"),
        (1, "" if left is None else f"{duration(left)} left"),
        (3, "" if plain is None else f"plain {duration(plain)} left (est)"),
    ]


def edits(progress: RewriteProgress) -> str:
    """The edits so far, the last ones by their lines: "3: line 43 +3, line 88 -1 +1"."""
    found = progress.edits
    if not found:
        return "none so far"
    shown = [_edit(each) for each in found[-_SHOWN:]]
    return f"{len(found)}: {'... ' if len(found) > _SHOWN else ''}{', '.join(shown)}"


def copying(progress: RewriteProgress) -> str:
    """Whether the rest looks unchanged, and why one may think so."""
    n = progress.whole_copies
    if n < SURE_COPIES:
        return ""
    return f"{n} steps in a row accepted whole: this looks like an unchanged rest"


def _edit(each: EditSoFar) -> str:
    gone, come = each.end - each.start, each.new_end - each.new_start
    return f"line {each.start + 1}" + (f" -{gone}" if gone else "") + (f" +{come}" if come else "")
