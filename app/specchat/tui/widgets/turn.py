"""One message on the screen: its text, who proposed it, and what it took."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from specchat.attachments import label
from specchat.console import printable
from specchat.provenance import Author, Span
from specchat.tui.lines import NOWHERE, Line, cell_to_character, character_to_cell, raw_lines
from specchat.tui.markdown import code_blocks
from specchat.tui.rendering import Body, Colours
from specchat.tui.widgets.status import fitted

GUTTER = 2  # columns
_SHADES = ((0.0, "·"), (0.34, "░"), (0.67, "▒"), (1.01, "█"))  # up to this share of guessed characters
_REST = 4.0  # times as long as drawing took does a growing text wait before it is drawn again
_AUTHORS = list(Author)
_THOUGHT = re.compile(r"\s*<think>(.*?)(?:(</think>)\s*|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class View:
    """How messages are shown."""

    rendered: bool = True
    tint: str = "gutter"  # off, gutter or token
    fold_thinking: bool = True
    plain_marker: bool = True

    @property
    def raw(self) -> bool:
        """Single tokens can be told apart in the source only."""
        return not self.rendered or self.tint == "token"


class TurnView(Widget):
    """A question or a reply. Its text may grow; it is drawn when `settle` or `finish` is called."""

    DEFAULT_CSS = """
    TurnView { height: auto; width: 1fr; margin: 0 0 1 0; padding: 0 1 0 0; }
    TurnView.-current { background: $boost; }
    TurnView.-dropped { text-opacity: 55%; }
    """
    ALLOW_SELECT = True

    def __init__(
        self, turn: int, who: str, view: View, colours: Colours, *, when: str = "", as_written: bool = False
    ) -> None:
        """`as_written`: the text is no Markdown."""
        super().__init__(classes="turn")
        self.turn = turn  # its id in the chat
        self.who = label(who)
        self.when = when
        self.branch = ""  # "2/3" where there are others, and other marks
        self.took: Sequence[tuple[int, str]] = ()  # the line below: parts, each behind a number, small for important
        self.note = ""  # a second one: where a copy is from, the verdict of a check
        self.source = ""
        self.marker: int | None = None  # the character that plain decoding would be at
        self.highlighted: tuple[int, int] | None = None
        self._as_written = as_written
        self._view = view
        self._colours = colours
        self._authors = bytearray()  # for each character the index of its author, from 0 = the model
        self._growing = False
        self._unfolded = False
        self._body = Body(colours)
        self._lines: list[Line] = []
        self._strips: dict[int, Strip] = {}
        self._drawn_width = 0
        self._drawn_length = -1
        self._took_s = 0.0
        self._drawn_at = 0.0
        self._marker_at: tuple[int, int] | None = None  # where the marker is drawn: line, character

    def begin(self) -> None:
        """The text will grow."""
        self._growing = True

    def append(self, text: str, spans: Iterable[Span]) -> None:
        """More text and who proposed it; not drawn yet."""
        self.source += printable(text)
        self.mark(spans)

    def mark(self, spans: Iterable[Span]) -> None:
        """Note who proposed characters."""
        for span in spans:
            if span.end > len(self._authors):
                self._authors.extend(bytes(span.end - len(self._authors)))
            self._authors[span.start : span.end] = bytes([_AUTHORS.index(span.author)]) * (span.end - span.start)

    def replace(self, text: str, spans: Iterable[Span] = ()) -> None:
        """Another text in place of this one."""
        self.source, self._authors = printable(text), bytearray()
        self.mark(spans)
        self._body.reset()
        self.redraw()

    def settle(self) -> bool:
        """Draw what was appended, unless drawing the last time took so long that it is too early."""
        if len(self.source) == self._drawn_length:
            return False
        if monotonic() - self._drawn_at < _REST * self._took_s:
            return False
        before, width, marked = self._lines, self._drawn_width, self._marker_at
        self._drawn_length = -1
        if width != self.size.width or width <= 0:
            self.refresh(layout=True)
            return True
        self._lay_out(width)
        if len(self._lines) != len(before):
            self.refresh(layout=True)
        else:  # arranging the whole screen anew costs ten times as much as drawing a line
            changed = next((i for i, pair in enumerate(zip(before, self._lines, strict=True)) if pair[0] != pair[1]), 0)
            first = min([changed + 1, *(at[0] for at in (marked, self._marker_at) if at is not None)])
            self.refresh(Region(0, first, width, len(self._lines) + 1 - first))
        return True

    def finish(self) -> None:
        """No more text comes."""
        self._growing = False
        self.redraw()

    def show(self, view: View, colours: Colours) -> None:
        """Draw in another way."""
        if view != self._view or colours != self._colours:
            self._view, self._colours = view, colours
            self._body = Body(colours)
            self.redraw()

    def unfold(self) -> None:
        """Show or hide what was thought before the answer."""
        self._unfolded = not self._unfolded
        self._body.reset()
        self.redraw()

    def redraw(self) -> None:
        """Lay the text out anew; its height may change."""
        self._drawn_length = -1
        self.refresh(layout=True)

    def update_notes(self) -> None:
        """Draw head, marker and figures again after they were set."""
        self._strips.clear()
        self._drawn_length = -1
        self.refresh(layout=True)

    @property
    def figures(self) -> str:
        """The line below where there is room for all of it."""
        return "  ".join(text for _, text in self.took if text)

    @property
    def thinking(self) -> tuple[int, int] | None:
        """Where the text of a thought stands, from and to; None without one."""
        match = _THOUGHT.match(self.source)
        return None if match is None else match.span()

    def code_blocks(self) -> list[tuple[str, str]]:
        """Language and exact text of each block of code that is shown."""
        return code_blocks(self.source[self._folded() :])

    def line_of(self, place: int) -> int:
        """The line of this widget that shows a character of the source."""
        self._lay_out(self.size.width)
        found = 0
        for y, line in enumerate(self._lines, 1):
            if place in line.places:
                return y
            if NOWHERE < max(line.places, default=NOWHERE) < place:
                found = y  # of markup: the line before
        return found

    def place_at(self, x: int, y: int) -> int | None:
        """The character of the source that is shown at a cell of this widget."""
        self._lay_out(self.size.width)
        if x < GUTTER or not 0 <= y - 1 < len(self._lines):
            return None
        line = self._lines[y - 1]
        index = cell_to_character(line.text, x - GUTTER)
        return line.places[index] if 0 <= index < len(line.places) and line.places[index] != NOWHERE else None

    # What Textual asks.

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._lay_out(width)
        return 1 + len(self._lines) + len(self._below(width))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        self._lay_out(width)
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._strip(y, width)
        if self._marker_at is not None and y == self._marker_at[0] and self._view.plain_marker:
            index = self._marker_at[1]
            strip = _styled(strip, self._column(y, index), self._column(y, index + 1), Style(reverse=True))
        selection = self.text_selection
        if selection is not None and 0 < y <= len(self._lines) and (span := selection.get_span(y)) is not None:
            first, last = span
            style = self.screen.get_component_rich_style("screen--selection")
            end = width if last == -1 else self._column(y, last - GUTTER)
            strip = _styled(strip, self._column(y, first - GUTTER), end, style)
        return strip.crop_extend(0, width, self.rich_style).apply_style(self.rich_style).apply_offsets(0, y)

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The exact source of what is selected, whatever it was rendered to."""
        places = []
        for y, line in enumerate(self._lines, 1):
            span = selection.get_span(y)
            if span is None:
                continue
            start, end = span  # in characters, the gutter's too
            last = len(line.places) if end == -1 else max(0, end - GUTTER)
            places += [place for place in line.places[max(0, start - GUTTER) : last] if place != NOWHERE]
        if not places:
            return None
        return self.source[min(places) : max(places) + 1], "\n"

    def _lay_out(self, width: int) -> None:
        if (width, len(self.source)) == (self._drawn_width, self._drawn_length) or width <= 0:
            return
        if self._growing and width == self._drawn_width and self._drawn_length >= 0:
            return  # drawn when `settle` says so
        began = monotonic()
        inner = max(1, width - GUTTER)
        folded = self._folded()
        if self._view.raw or self._as_written:
            lines = raw_lines(self.source[folded:], inner)
        else:
            lines = self._body.lines(self.source[folded:], inner, growing=self._growing)
        if folded:
            lines = [*self._thought(), *(line.moved(folded) for line in lines)]
        same = 0
        while same < min(len(lines), len(self._lines)) and lines[same] == self._lines[same]:
            same += 1
        if width != self._drawn_width or not self._growing:
            same = 0
        self._strips = {y: strip for y, strip in self._strips.items() if 0 < y <= same}
        self._lines = lines
        self._drawn_width, self._drawn_length = width, len(self.source)
        self._marker_at = self._find_marker()
        self._drawn_at = monotonic()
        self._took_s = self._drawn_at - began

    def _folded(self) -> int:
        """How many characters of the source are folded away."""
        thinking = self.thinking
        hidden = thinking is not None and self._view.fold_thinking and not self._unfolded and not self._view.raw
        return thinking[1] if hidden and thinking is not None else 0

    def _thought(self) -> list[Line]:
        """The line that stands for a folded thought; none for one without a word."""
        match = _THOUGHT.match(self.source)
        if match is None or (match[2] and not match[1].strip()):
            return []
        text = "> thought; t shows it" if match[2] else "> thinking ... t shows it"
        return [Line((Segment(text, Style(dim=True)),), (NOWHERE,) * len(text))]

    def _below(self, width: int) -> list[str]:
        figures = fitted([(importance, label(text)) for importance, text in self.took], max(1, width - GUTTER))
        return [text for text in (label(self.note), figures) if text]

    def _strip(self, y: int, width: int) -> Strip:
        if y == 0:
            return self._head(width)
        if y > len(self._lines):
            below = self._below(width)
            text = below[y - 1 - len(self._lines)] if y - 1 - len(self._lines) < len(below) else ""
            return Strip([Segment(" " * GUTTER + text, Style.parse(self._colours.muted))])
        line = self._lines[y - 1]
        strip = Strip(line.segments)
        if line.kind == "code":
            shade = Style(bgcolor=self._colours.code_background)
            strip = _styled(strip.extend_cell_length(width - GUTTER), 0, width - GUTTER, shade)
        for start, end, style in self._marks(line):
            strip = _styled(strip, character_to_cell(line.text, start), character_to_cell(line.text, end), style)
        return Strip([Segment(self._shade(line) + " ", Style.parse(self._colours.muted)), *strip])

    def _head(self, width: int) -> Strip:
        right = "  ".join(part for part in (self.branch, self.when) if part)
        room = max(0, width - len(right) - 2)
        name = Strip([Segment(self.who, Style.parse(self._colours.accent) + Style(bold=True))]).crop_extend(
            0, room, None
        )
        return Strip([*name, Segment(f" {right} ", Style.parse(self._colours.muted))])

    def _shade(self, line: Line) -> str:
        """The gutter: how much of a line was guessed."""
        known = [at for at in line.places if at != NOWHERE]
        if self._view.tint != "gutter" or not self._authors or not known:
            return " "
        share = sum(self._author(at) > 0 for at in known) / len(known)
        return next(shade for up_to, shade in _SHADES if share <= up_to)

    def _marks(self, line: Line) -> list[tuple[int, int, Style]]:
        """Styles for ranges of characters of a line: tint, highlighted copy, plain marker."""
        marks = []
        if self._view.tint == "token" and self._authors:
            marks += [(start, end, self._tint(author)) for start, end, author in self._runs(line.places) if author]
        if self.highlighted is not None:
            first, last = self.highlighted
            inside = [i for i, place in enumerate(line.places) if first <= place < last]
            if inside:
                marks.append((inside[0], inside[-1] + 1, Style(reverse=True)))
        return marks

    def _find_marker(self) -> tuple[int, int] | None:
        """Where the first character from the marker on is shown; that is near the end, so look from there."""
        found = None
        for y in range(len(self._lines) if self.marker is not None else 0, 0, -1):
            places = self._lines[y - 1].places
            last = max(places, default=NOWHERE)
            if self.marker is None or NOWHERE < last < self.marker:
                break
            if last >= self.marker:
                found = y, next(i for i, place in enumerate(places) if place >= self.marker)
        return found

    def _column(self, y: int, index: int) -> int:
        """The column of this widget at which a character of a line begins."""
        return GUTTER + character_to_cell(self._lines[y - 1].text, index)

    def _runs(self, places: Sequence[int]) -> list[tuple[int, int, int]]:
        """Neighbouring characters of one author: start, end, author."""
        runs: list[tuple[int, int, int]] = []
        for i, place in enumerate(places):
            author = self._author(place)
            if runs and runs[-1][2] == author and runs[-1][1] == i:
                runs[-1] = (runs[-1][0], i + 1, author)
            else:
                runs.append((i, i + 1, author))
        return runs

    def _author(self, place: int) -> int:
        return self._authors[place] if 0 <= place < len(self._authors) else 0

    def _tint(self, author: int) -> Style:
        name = _AUTHORS[author]
        if name is Author.DRAFT:
            return Style(underline=True, color=self._colours.draft)
        return Style(italic=True, underline=name is Author.FILE, color=self._colours.lookup)


def _styled(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with a style on top from one column to another."""
    end = min(end, strip.cell_length)
    if start >= end:
        return strip
    over = Strip([Segment(s.text, (s.style or Style()) + style) for s in strip.crop(start, end)])
    return Strip.join([strip.crop(0, start), over, strip.crop(end)])
