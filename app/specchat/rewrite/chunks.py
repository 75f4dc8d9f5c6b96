"""Where a long file may be cut: between sections, definitions and paragraphs, so that each piece fits the context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from specchat.rewrite.part import Part

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_QUOTES = re.compile(r'"""|\'\'\'')
_HEADING = re.compile(r"#{1,6}[ \t]|\\(?:part|chapter|(?:sub)*section|begin\{document\})\b|={2,}[ \t]?\S")
_DEFINITION = re.compile(
    r"(?:@|(?:async |export |default |public |private |protected |static |abstract |final |pub(?:\([^)]*\))? |unsafe |"
    r"extern |inline |const )*(?:def|class|function|func|fn|impl|struct|enum|union|trait|interface|module|namespace|"
    r"type|typedef|macro_rules!|sub|package)\b)"
)
_SMALLEST, _LARGEST = 0.5, 1.25  # of an even share, between which a piece looks for a good place to end
_INSIDE = 8.0  # what a cut inside a fence or a string costs; a place that is off by an even share costs 2
_ANYWHERE = 4.0


def split(lines: Sequence[str], part: Part, tokens: Sequence[int], room: int) -> list[Part]:
    """A part as pieces of at most `room` tokens, if no line of it alone has more; blank lines between them are in none.

    `tokens` has the number of each line of the part.
    """
    reached = [0, *accumulate(tokens)]
    costs = [cost for _, cost in zip(tokens, _costs(lines[part.start : part.end]), strict=True)]
    found: list[Part] = []
    at, size = 0, len(tokens)
    while at < size:
        left = reached[size] - reached[at]
        share = left / -(-left // max(1, room)) if left else 1.0
        end = size if left <= room else _end(reached, costs, at, share, room)
        found.append(Part(part.start + at, part.start + end))
        at = end
    return list(_without_blanks(lines, found))


def _end(reached: Sequence[int], costs: Sequence[float], at: int, share: float, room: int) -> int:
    """The best place for a piece that begins at a line to end; it has one line at least."""
    best, best_cost = at + 1, float("inf")
    for end in range(at + 1, len(costs)):
        tokens = reached[end] - reached[at]
        if tokens > room:
            break
        off = abs(tokens - share) / share
        near = _SMALLEST * share <= tokens <= _LARGEST * share
        cost = costs[end] + 2 * off + (0 if near else 2 * _INSIDE)
        if cost < best_cost:
            best, best_cost = end, cost
    return best


def _costs(lines: Sequence[str]) -> Iterator[float]:
    """For each line, how bad a cut in front of it is."""
    inside = _inside(lines)
    for i, line in enumerate(lines):
        before = lines[i - 1] if i else ""
        yield _place_cost(before, line) + (_INSIDE if inside[i] else 0.0)


def _place_cost(before: str, line: str) -> float:
    blank, closed = not before.strip(), before.startswith(("}", ")", "]", "\\end"))
    begins = _HEADING.match(line) is not None or _DEFINITION.match(line) is not None
    if not line.strip():
        return _ANYWHERE if blank else 1.5  # the line behind the blank ones is as good, and they are in no piece
    if blank or closed:
        return 0.0 if begins else 1.0 if not line[0].isspace() else 2.0
    return 2.0 if begins and not before.startswith(("@", "#", "//", "/*", " *")) else _ANYWHERE


def _inside(lines: Sequence[str]) -> list[bool]:
    """Whether a cut in front of a line is in the middle of a fence or of a string of many lines.

    What is never closed says nothing, so it counts as not opened.
    """
    inside = [False] * len(lines)
    opened: tuple[str, int] | None = None  # the mark, and its line
    for i, line in enumerate(lines):
        if opened is not None and opened[0][0] in "`~":
            closing = _FENCE.match(line)
            if closing is not None and closing[1].startswith(opened[0]) and not line.strip(f" {opened[0][0]}"):
                inside[opened[1] + 1 : i + 1] = [True] * (i - opened[1])
                opened = None
            continue
        if opened is None and (fence := _FENCE.match(line)) is not None:
            opened = (fence[1], i)
            continue
        for found in _QUOTES.finditer(line):
            if opened is None:
                opened = (found[0], i)
            elif opened[0] == found[0]:
                inside[opened[1] + 1 : i + 1] = [True] * (i - opened[1])
                opened = None
    return inside


def _without_blanks(lines: Sequence[str], parts: Sequence[Part]) -> Iterator[Part]:
    """Parts without the blank lines at their common ends; those that have no other lines are left out."""
    for i, part in enumerate(parts):
        start, end = part.start, part.end
        while i > 0 and start < end and not lines[start].strip():
            start += 1
        while i < len(parts) - 1 and start < end and not lines[end - 1].strip():
            end -= 1
        if start < end:
            yield Part(start, end)
