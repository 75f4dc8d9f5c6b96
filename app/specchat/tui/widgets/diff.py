"""Rows of a diff on the screen: wrapped, marked by sign and underline, drawn a line at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from specchat.tui.diff_rows import Cell, Row, cut

_ABOVE = 3  # lines of context over the hunk
_BAR = "\u258c"  # half a block: at the left of the present hunk
_BETWEEN = " \u2502"


class DiffView(ScrollView, can_focus=True):
    """One hunk among its neighbours; it scrolls with the arrows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "diff--context",
        "diff--number",
        "diff--removed",
        "diff--removed-word",
        "diff--added",
        "diff--added-word",
        "diff--other",
        "diff--bar",
        "diff--remark",
    }
    DEFAULT_CSS = """
    DiffView {
        height: 1fr; min-height: 1; overflow-x: hidden; overflow-y: scroll;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; background: $background;
        & > .diff--context { color: $foreground; }
        & > .diff--number, & > .diff--other, & > .diff--remark { color: $text-muted; }
        & > .diff--remark { text-style: italic; }
        & > .diff--removed { color: $text-error; background: $error 12%; }
        & > .diff--removed-word { color: $text-error; background: $error 35%; text-style: bold underline; }
        & > .diff--added { color: $text-success; background: $success 12%; }
        & > .diff--added-word { color: $text-success; background: $success 35%; text-style: bold underline; }
        & > .diff--bar { color: $accent; }
        &:ansi {
            & > .diff--removed, & > .diff--removed-word { color: ansi_red; background: ansi_default; }
            & > .diff--added, & > .diff--added-word { color: ansi_green; background: ansi_default; }
            & > .diff--number, & > .diff--other, & > .diff--remark { color: ansi_default; text-style: dim; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "page_down", "Scroll", show=False)]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()
        self._hunk = ""
        self._lines: list[tuple[int, int]] = []  # row, piece of it
        self._pieces: list[list[list[tuple[int, int]]]] = []  # of each cell of each row
        self._laid_out = 0  # columns
        self._digits = 1

    def show(self, rows: Sequence[Row], hunk: str) -> None:
        """Other rows; those of `hunk` stand out and are scrolled to."""
        self._rows, self._hunk, self._laid_out = rows, hunk, 0
        numbers = [cell.number for row in rows for cell in row.cells if cell is not None]
        self._digits = len(str(max(numbers, default=1)))
        self._lay_out()
        self._reveal()

    @property
    def shown(self) -> list[str]:
        """The lines as they are drawn."""
        return [self._strip(y).text.rstrip() for y in range(len(self._lines))]

    def on_resize(self, event: events.Resize) -> None:
        """Other columns break lines elsewhere; the hunk stays on the screen."""
        if self._width != self._laid_out:
            self._lay_out()
        self._reveal()

    def render_line(self, y: int) -> Strip:
        """What Textual asks for: one line of the screen."""
        at = y + self.scroll_offset.y
        strip = self._strip(at) if at < len(self._lines) else Strip([])
        return strip.crop_extend(0, self.size.width, self.rich_style)

    @property
    def _width(self) -> int:
        return max(1, self.scrollable_content_region.width)

    @property
    def _gutter(self) -> int:
        return self._digits + 4 if self._width > self._digits + 12 else 2  # numbers leave where they would be all

    def _text_width(self, row: Row) -> int:
        columns = (self._width - 1) if len(row.cells) < 2 else (self._width - 1 - len(_BETWEEN)) // 2
        return max(1, columns - self._gutter)

    def _lay_out(self) -> None:
        self._laid_out = self._width
        self._lines, self._pieces = [], []
        for number, row in enumerate(self._rows):
            width = self._text_width(row)
            pieces = [[] if cell is None else cut(cell.text, width) for cell in row.cells]
            self._pieces.append(pieces)
            self._lines += [(number, piece) for piece in range(max((len(each) for each in pieces), default=1))]
        self.virtual_size = Size(self._width, len(self._lines))
        self.refresh()

    def _reveal(self) -> None:
        """Scroll to the present hunk: all of it where it fits, else its beginning."""
        own = [y for y, (row, _) in enumerate(self._lines) if self._rows[row].hunk == self._hunk != ""]
        if own:
            room = max(0, self.size.height - (own[-1] - own[0] + 1))
            self.scroll_to(y=max(0, own[0] - min(room, max(_ABOVE, room // 3))), animate=False)
        else:
            self.scroll_to(y=0, animate=False)

    # Drawing.

    def _strip(self, y: int) -> Strip:
        number, piece = self._lines[y]
        row = self._rows[number]
        own = bool(row.hunk) and row.hunk == self._hunk
        segments = [Segment(_BAR if own else " ", self._style("bar"))]
        if row.remark:
            segments.append(Segment(f" {row.remark}", self._style("remark")))
        columns = self._gutter + self._text_width(row)
        for at, cell in enumerate(row.cells):
            if at:
                segments.append(Segment(_BETWEEN, self._style("number")))
            pieces = self._pieces[number][at]
            if cell is None or piece >= len(pieces):
                segments.append(Segment(" " * columns, self.rich_style))
            else:
                drawn = self._cell(cell, pieces[piece], own=own, first=piece == 0)
                # A blank that a line was broken behind may hang over.
                segments += Strip(drawn).crop_extend(0, columns, drawn[-1].style)
        return Strip(segments)

    def _cell(self, cell: Cell, piece: tuple[int, int], *, own: bool, first: bool) -> list[Segment]:
        kind = {"-": "removed", "+": "added"}.get(cell.sign, "context")
        shade = self._style(kind if own or kind == "context" else "other")
        word = self._style(f"{kind}-word") if kind != "context" else shade
        number = f"{cell.number:>{self._digits}}" if first else " " * self._digits
        gutter = f"{cell.sign} {number}  " if self._gutter > 2 else f"{cell.sign} "
        quiet = shade if kind != "context" else self._style("number")
        segments = [Segment(gutter, quiet)]
        at, end = piece
        for start, stop in cell.marks:
            start, stop = max(start, at), min(stop, end)
            if start < stop:
                segments += [Segment(cell.text[at:start], shade), Segment(cell.text[start:stop], word)]
                at = stop
        return [*segments, Segment(cell.text[at:end], shade)]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"diff--{name}")
