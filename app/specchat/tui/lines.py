"""Lines of styled segments in which every character knows its place in the source, and text as it stands in them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.segment import Segment

NOWHERE = -1  # the place of characters that the source does not have: bullets, borders, padding


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the screen."""

    segments: tuple[Segment, ...]
    places: tuple[int, ...]  # for each character, its index in the source or NOWHERE
    kind: str = ""  # "code" inside a block of code

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)

    def moved(self, by: int, kind: str = "") -> Line:
        """The same line where the source begins somewhere else."""
        places = tuple(NOWHERE if place == NOWHERE else place + by for place in self.places)
        return Line(self.segments, places, kind or self.kind)


def raw_lines(source: str, width: int) -> list[Line]:
    """The source as it stands; long lines are broken behind a blank, or anywhere where a word is too long."""
    lines = []
    start = 0
    for text in source.split("\n"):
        shown = text.replace("\t", " ")  # one character, and so one place
        for piece in _broken(shown, max(1, width)):
            lines.append(Line((Segment(piece),), tuple(range(start, start + len(piece)))))
            start += len(piece)
        start += 1
    return lines


def _broken(text: str, width: int) -> list[str]:
    pieces, at = list[str](), 0
    while True:
        ahead = _ahead(text, at, width)
        if cell_len(ahead) <= width:
            return [*pieces, ahead] if ahead or not pieces else pieces
        fits = len(chop_cells(ahead, width)[0]) or 1
        blank = ahead.rfind(" ", 0, fits + 1)
        cut = blank + 1 if blank > 0 else fits
        pieces.append(ahead[:cut])
        at += cut


def _ahead(text: str, at: int, width: int) -> str:
    """What follows, enough of it to be wider than `width`: accents and joiners take no column."""
    end = at + width + 1
    while end < len(text) and cell_len(text[at:end]) <= width:
        end += end - at
    return text[at:end]


def cell_to_character(text: str, cell: int) -> int:
    """The index of the character that covers a column; len(text) behind the end."""
    return bisect_right(range(len(text)), cell, key=lambda index: cell_len(text[: index + 1]))


def character_to_cell(text: str, index: int) -> int:
    """The column at which a character begins."""
    return cell_len(text[: max(0, index)])
