"""A hunk and the lines around it as rows of a diff, unified or side by side; knows no widget and no colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from specchat.console import printable
from specchat.rewrite.hunks import Hunk, Mark, marks
from specchat.rewrite.merge import Change
from specchat.rewrite.source import SourceFile
from specchat.tui.lines import raw_lines
from specchat.tui.reviewed import ReviewedFile

CONTEXT = 60  # rows on each side of the hunk that can be scrolled to
TAB = 4  # columns
MOST_MARKED = 40_000  # characters of a change whose words are compared: more would hold up the screen

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of the old or the new file."""

    sign: str  # " ", "-" or "+"
    number: int  # from 1
    text: str  # fit to be shown, tabs expanded
    marks: Spans = ()  # characters of the text that differ


@dataclass(frozen=True, slots=True)
class Row:
    """One cell, or an old and a new one side by side, either of which may be missing; or a remark."""

    cells: tuple[Cell | None, ...]
    hunk: str = ""  # id; "" outside of hunks
    remark: str = ""


def rows_around(file: ReviewedFile, hunk: Hunk | None, *, side_by_side: bool) -> list[Row]:
    """The rows of a hunk and up to CONTEXT of those before and behind it; without a hunk, those where the file begins.

    Only the hunk's own words are compared.
    """
    source, hunks = file.review.source, file.review.hunks
    n_lines = len(source.lines)
    at = next((i for i, each in enumerate(hunks) if hunk is not None and each.id == hunk.id), -1)
    grown = sum(each.added - each.removed for each in hunks[: max(0, at)])
    if hunk is None or at < 0:
        return list(_context(source, 0, min(n_lines, CONTEXT), 0, side_by_side=side_by_side))
    draw = _Drawing(source, side_by_side)
    own = [*draw.hunk(hunk, grown, compare=True)] or [Row((), hunk.id, "no change is left in this hunk")]
    before: list[Row] = []
    top, i, shift = hunk.start, at - 1, grown
    while len(before) < CONTEXT and (top > 0 or i >= 0):
        neighbour = hunks[i] if i >= 0 else None
        low = max(0, top - CONTEXT, 0 if neighbour is None else neighbour.end)
        before = [*_context(source, low, top, shift, side_by_side=side_by_side), *before]
        top = low
        if neighbour is not None and neighbour.end == low:
            shift -= neighbour.added - neighbour.removed
            before = [*draw.hunk(neighbour, shift), *before]
            top, i = neighbour.start, i - 1
    behind: list[Row] = []
    bottom, i, shift = hunk.end, at + 1, grown + hunk.added - hunk.removed
    while len(behind) < CONTEXT and (bottom < n_lines or i < len(hunks)):
        neighbour = hunks[i] if i < len(hunks) else None
        high = min(n_lines, bottom + CONTEXT, n_lines if neighbour is None else neighbour.start)
        behind += _context(source, bottom, high, shift, side_by_side=side_by_side)
        bottom = high
        if neighbour is not None and neighbour.start == high:
            behind += draw.hunk(neighbour, shift)
            shift += neighbour.added - neighbour.removed
            bottom, i = neighbour.end, i + 1
    rows = [*before[-CONTEXT:], *own, *behind[:CONTEXT]]
    return rows if file.unread_from is None else list(_with_unread(rows, file.unread_from))


def cut(text: str, width: int) -> list[tuple[int, int]]:
    """Where a text is broken into lines of some columns: behind blanks, or anywhere where a word is too long."""
    if len(text) <= width and text.isascii():
        return [(0, len(text))]
    pieces, at = [], 0
    for line in raw_lines(text, width):
        pieces.append((at, at + len(line.places)))
        at += len(line.places)
    return pieces


@dataclass(frozen=True, slots=True)
class _Drawing:
    source: SourceFile
    side_by_side: bool

    def hunk(self, hunk: Hunk, grown: int, *, compare: bool = False) -> Iterator[Row]:
        """The rows of a hunk; `grown` is how many more lines the new file has before it."""
        at = hunk.start
        for each in hunk.changes:
            for row in _context(self.source, at, each.start, grown, side_by_side=self.side_by_side):
                yield replace(row, hunk=hunk.id)
            yield from self._change(each, grown, hunk.id, compare=compare)
            grown += len(each.lines) - (each.end - each.start)
            at = each.end
        for row in _context(self.source, at, hunk.end, grown, side_by_side=self.side_by_side):
            yield replace(row, hunk=hunk.id)

    def _change(self, each: Change, grown: int, hunk: str, *, compare: bool) -> Iterator[Row]:
        texts = self.source.texts[each.start : each.end]
        new = [line.text for line in each.lines]
        gone: list[Mark] = []
        come: list[Mark] = []
        if compare and texts and new and sum(map(len, texts)) + sum(map(len, new)) <= MOST_MARKED:
            gone, come = marks(self.source, each)
        old_spans, new_spans = _by_line(gone), _by_line(come)
        olds = [_cell("-", i, text, old_spans.get(i, ())) for i, text in enumerate(texts, each.start)]
        news = [_cell("+", each.start + grown + i, text, new_spans.get(i, ())) for i, text in enumerate(new)]
        if not self.side_by_side:
            for cell in (*olds, *news):
                yield Row((cell,), hunk)
            return
        for i in range(max(len(olds), len(news))):
            yield Row((olds[i] if i < len(olds) else None, news[i] if i < len(news) else None), hunk)


def _context(source: SourceFile, start: int, end: int, grown: int, *, side_by_side: bool) -> Iterator[Row]:
    for i in range(start, end):
        cell = _cell(" ", i, source.texts[i])
        yield Row((cell, replace(cell, number=cell.number + grown)) if side_by_side else (cell,))


def _with_unread(rows: Sequence[Row], first: int) -> Iterator[Row]:
    """The rows with a remark before the first old line, counted from 0, that the model did not write."""
    said = False
    for row in rows:
        cell = row.cells[0] if row.cells else None
        if not said and cell is not None and cell.sign != "+" and cell.number > first:
            said = True
            yield Row((), "", "copied on your word from here on, not read by the model")
        yield row


def _by_line(found: Sequence[Mark]) -> dict[int, Spans]:
    spans: dict[int, Spans] = {}
    for mark in found:
        spans[mark.line] = (*spans.get(mark.line, ()), (mark.start, mark.end))
    return spans


def _cell(sign: str, index: int, text: str, spans: Spans = ()) -> Cell:
    """A line as it is shown: nothing in it steers the terminal, tabs become blanks, and the marks move with it.

    Where only blanks differ they are drawn, because nobody can see them otherwise.
    """
    shown = printable(text)
    spans = tuple(_trimmed(shown, span) for span in spans)
    for start, end in spans:
        if not shown[start:end].strip(" \t"):
            shown = shown[:start] + shown[start:end].replace(" ", "\u00b7").replace("\t", "\u2192") + shown[end:]
    if "\t" not in shown and "\t" not in text:
        return Cell(sign, index + 1, shown, spans)
    places = [0]  # of each character in the expanded text
    parts: list[str] = []
    for character, original in zip(shown, text, strict=True):
        size = TAB - places[-1] % TAB if original == "\t" else 1
        parts.append(character.replace("\t", " ") + " " * (size - 1))
        places.append(places[-1] + size)
    return Cell(sign, index + 1, "".join(parts), tuple((places[start], places[end]) for start, end in spans))


def _trimmed(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """A span without the blanks around it, unless it is nothing else."""
    start, end = span
    marked = text[start:end]
    if not marked.strip(" \t"):
        return span
    return end - len(marked.lstrip(" \t")), start + len(marked.rstrip(" \t"))
