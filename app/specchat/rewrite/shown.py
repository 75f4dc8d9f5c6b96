"""How changes are shown: as unified hunks, side by side in the width of the terminal, or as JSON."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from specchat.console import printable
from specchat.rewrite.flags import Flag
from specchat.rewrite.hunks import Hunk, Mark, Review, marks
from specchat.rewrite.patch import AROUND, drawn
from specchat.rewrite.source import SourceFile

if TYPE_CHECKING:  # rich takes 50 ms to import, which pipes need not pay
    from rich.text import Text

_NARROWEST = 60  # columns in which two texts can stand side by side
_USUAL = 120  # columns where there is no terminal
_TAB = 4  # columns
_BETWEEN = " │ "

Draw = Callable[[SourceFile, Hunk], "Text"]


class Format(StrEnum):
    """How changes are shown."""

    UNIFIED = "unified"
    SIDE = "side"
    JSON = "json"


def drawing(wanted: Format) -> Draw:
    """What draws a hunk, for the terminal as wide as it is now."""
    width = shutil.get_terminal_size((_USUAL, 24)).columns
    if wanted is not Format.SIDE or width < _NARROWEST:
        return drawn
    return lambda source, hunk: side_by_side(source, hunk, width)


def side_by_side(source: SourceFile, hunk: Hunk, width: int) -> Text:
    """A hunk with the old lines on the left and the new ones on the right, no row wider than `width` columns."""
    from rich.text import Text

    number_width = len(str(len(source.lines) + 1))
    half = (width - len(_BETWEEN)) // 2
    text = Text()
    for old, new in _rows(source, hunk):
        left, right = _folded(old, half, number_width), _folded(new, half, 0)
        for one, other in zip_longest(left, right):
            row = one or Text()
            row.append(" " * (half - row.cell_len))
            text.append(row).append(_BETWEEN, "dim").append(other or Text()).append("\n")
    text.rstrip()
    return text


def hunks_as_json(review: Review, flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Hunks with their old and new lines; lines count from 1, and `end` is the last one, `start` - 1 for none."""
    found = list(flags)
    return [
        {
            "id": hunk.id,
            "start": hunk.start + 1,
            "end": hunk.end,
            "old": list(review.source.texts[hunk.start : hunk.end]),
            "new": review.new_lines(hunk.id),
            "flags": [flag_as_json(flag) for flag in found if flag.hunk == hunk.id],
        }
        for hunk in review.hunks
    ]


def flag_as_json(flag: Flag) -> dict[str, Any]:
    """One flag."""
    return {
        "kind": str(flag.kind),
        "line": flag.line,
        "reason": flag.reason,
        "p_old": flag.p_old,
        "p_new": flag.p_new,
    }


_Side = tuple[str, int | None, "Text"]  # sign, number, content


def _rows(source: SourceFile, hunk: Hunk) -> Iterator[tuple[_Side | None, _Side | None]]:
    """Pairs of an old and a new line, with unchanged ones around them. New lines have no numbers, as in `drawn`."""
    from rich.text import Text

    def same(start: int, end: int) -> Iterator[tuple[_Side, _Side]]:
        for i in range(start, end):
            content = printable(source.texts[i])
            yield (" ", i + 1, Text(content)), (" ", None, Text(content))

    at = max(0, hunk.start - AROUND)
    for each in hunk.changes:
        yield from same(at, each.start)
        old_marks, new_marks = marks(source, each)
        old = [("-", i + 1, _marked(source.texts[i], "red", old_marks, i)) for i in range(each.start, each.end)]
        new = [("+", None, _marked(line.text, "green", new_marks, i)) for i, line in enumerate(each.lines)]
        yield from zip_longest(old, new)
        at = each.end
    yield from same(at, min(len(source.lines), hunk.end + AROUND))


def _marked(content: str, style: str, found: Sequence[Mark], line: int) -> Text:
    from rich.text import Text

    text = Text(printable(content), style)
    for mark in found:
        if mark.line == line:
            text.stylize("bold underline", mark.start, mark.end)
    return text


def _folded(side: _Side | None, width: int, number_width: int) -> list[Text]:
    """One line as rows of at most `width` columns; a wide character is never cut in two."""
    from rich.cells import get_character_cell_size
    from rich.text import Text

    if side is None:
        return []
    sign, number, content = side
    content.expand_tabs(_TAB)
    head = f"{sign} " if number is None else f"{sign} {number:>{number_width}} "
    room = max(2, width - len(head))
    cuts, used = [], 0
    for at, character in enumerate(content.plain):
        columns = get_character_cell_size(character)
        if used + columns > room:
            cuts.append(at)
            used = 0
        used += columns
    rows = []
    for i, piece in enumerate(content.divide(cuts)):
        row = Text(head if i == 0 else " " * len(head), content.style)
        rows.append(row.append(piece))
    return rows
