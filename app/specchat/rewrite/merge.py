"""Old bytes and new lines -> new bytes: a line that stays keeps its own bytes and end, whatever they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from specchat.rewrite.align import align
from specchat.rewrite.errors import OutputRefused
from specchat.rewrite.source import SourceFile

_LONGEST_RUN = 64  # lines that are compared to find a place


class FinalNewline(StrEnum):
    """Whether the last line of the result has an end."""

    KEEP = "keep"  # as in the old file
    YES = "yes"
    NO = "no"


class LineEnds(StrEnum):
    """The line ends of the result."""

    KEEP = "keep"  # each line its own
    LF = "lf"
    CRLF = "crlf"


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line that the old file does not have there."""

    text: str
    end: str


@dataclass(frozen=True, slots=True)
class Change:
    """Old lines [start, end), counted from 0, that are replaced by others."""

    start: int
    end: int
    lines: tuple[NewLine, ...]
    written: int | None  # index of the first new line in what the model wrote; None: not written by the model


def changes(source: SourceFile, lines: Sequence[str]) -> list[Change]:
    """What makes the old lines into the new ones, in order."""
    return [
        change(source, each.start, each.end, lines[each.new_start : each.new_end], each.new_start)
        for each in align(source.texts, lines)
    ]


def change(source: SourceFile, start: int, end: int, lines: Sequence[str], written: int | None = None) -> Change:
    """Replace old lines [start, end); the new ones take the line ends of those, or of the line before."""
    last = max(start, end - 1)
    before = start - 1 if start == end else start
    fresh = [
        NewLine(text, end_near(source, min(before + i, last) if end > start else before))
        for i, text in enumerate(lines)
    ]
    return Change(start, end, tuple(fresh), written)


def end_near(source: SourceFile, index: int) -> str:
    """The line end at an old line, or at the nearest one above, or that of most lines."""
    for at in range(min(max(0, index), len(source.lines) - 1), -1, -1):
        if end := source.lines[at].end:
            return end
    counted = Counter(line.end for line in source.lines if line.end)
    return counted.most_common(1)[0][0] if counted else "\n"


def merge(source: SourceFile, lines: Sequence[str]) -> bytes:
    """The file with the lines that the model wrote. Raises OutputRefused for a character that it cannot hold."""
    return applied(source, changes(source, lines))


def applied(
    source: SourceFile,
    wanted: Iterable[Change],
    final_newline: FinalNewline = FinalNewline.KEEP,
    ends: LineEnds = LineEnds.KEEP,
) -> bytes:
    """The file after some of its changes, which are given in order. Raises OutputRefused as `merge` does."""
    result: list[tuple[bytes, str]] = []  # a line's text and its end
    at = 0
    for each in wanted:
        result += _kept(source, at, each.start)
        result += [(_encoded(source, line.text, len(result) + i + 1), line.end) for i, line in enumerate(each.lines)]
        at = each.end
    result += _kept(source, at, len(source.lines))
    if ends is not LineEnds.KEEP:
        result = [(text, end and ("\n" if ends is LineEnds.LF else "\r\n")) for text, end in result]
    # Only the last line can do without an end; a file of no lines has no habit, so it gets one.
    keep = source.ends_with_newline or not source.lines
    wants_end = keep if final_newline is FinalNewline.KEEP else final_newline is FinalNewline.YES
    whole = [(text, end or _missing(source, ends)) for text, end in result]
    if whole and not wants_end and whole[-1][0]:  # an empty line is nothing but its end
        whole[-1] = (whole[-1][0], "")
    return source.mark + b"".join(text + end.encode(source.encoding) for text, end in whole)


def with_rest(old: Sequence[str], written: Sequence[str], near: int | None = None) -> tuple[list[str], int] | None:
    """The written lines, then the old ones behind the place that they have reached, and that place.

    The place is behind the longest run of old lines that the written ones end with, of equal ones that nearest to
    `near`; None where the last line is no old one. The last written line must be whole.
    """
    wanted = len(written) if near is None else near
    best: tuple[int, int, int] | None = None
    for place in range(1, len(old) + 1):
        run = 0
        while run < min(place, len(written), _LONGEST_RUN) and old[place - 1 - run] == written[-1 - run]:
            run += 1
        if run and (best is None or (run, -abs(place - wanted)) > best[:2]):
            best = (run, -abs(place - wanted), place)
    return None if best is None else ([*written, *old[best[2] :]], best[2])


def _kept(source: SourceFile, start: int, end: int) -> list[tuple[bytes, str]]:
    size = {mark: len(mark.encode(source.encoding)) for mark in ("\n", "\r", "\r\n", "")}
    return [(line.raw[: len(line.raw) - size[line.end]], line.end) for line in source.lines[start:end]]


def _missing(source: SourceFile, ends: LineEnds) -> str:
    if ends is LineEnds.KEEP:
        return end_near(source, len(source.lines) - 1)
    return "\n" if ends is LineEnds.LF else "\r\n"


def _encoded(source: SourceFile, text: str, number: int) -> bytes:
    try:
        return text.encode(source.encoding)
    except UnicodeEncodeError as error:
        character = f"U+{ord(text[error.start]):04X}"
        raise OutputRefused(
            f"{source.name} is {source.encoding}, which cannot hold {character} of line {number}; convert it to UTF-8"
        ) from error
