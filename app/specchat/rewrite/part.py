"""The part of a file that a rewrite may change, and what the model is told of the rest."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from specchat.attachments import label
from specchat.errors import InputRefused, UsageError
from specchat.rewrite.align import align
from specchat.rewrite.checks import Finding, Problem, Rails, check
from specchat.rewrite.expressions import Expression
from specchat.rewrite.hunks import APART, Hunk, Review
from specchat.rewrite.merge import Change, change
from specchat.rewrite.source import SourceFile, joined

_RANGE = re.compile(r"([0-9]{0,9}):([0-9]{0,9})|([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Part:
    """Old lines [start, end), counted from 0."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Around:
    """Lines that the model is shown around a part, and is not to write."""

    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    is_new: bool = False  # whether those before are as the rewrite has them, so that they have no numbers


def whole(source: SourceFile) -> Part:
    """All lines of a file."""
    return Part(0, len(source.lines))


def range_of(lines: str) -> tuple[int, int | None]:
    """The first and the last line, counted from 1, that a person names as "40:120", "40:", ":120" or "40".

    None for the last line is the end. Raises UsageError.
    """
    found = _RANGE.fullmatch(lines.strip())
    first, last = (found[1] or found[3], found[2] or found[3]) if found else ("", "")
    if found is None or not (first or last):
        raise UsageError(f"--lines is {label(lines)}; it must be two numbers of lines, such as 40:120")
    start, end = int(first or 1), int(last) if last else None
    if start < 1 or (end is not None and end < start):
        raise UsageError(f"--lines is {label(lines)}; lines count from 1, and the first comes first")
    return start, end


def part_of(source: SourceFile, lines: str) -> Part:
    """The part of a file that `lines` names. Raises UsageError, and InputRefused where the file has no such lines."""
    start, end = range_of(lines)
    if start > len(source.lines):
        raise InputRefused(f"{source.name} has {len(source.lines)} lines, so none is in --lines {label(lines)}")
    return Part(start - 1, len(source.lines) if end is None else min(end, len(source.lines)))


def part_between(source: SourceFile, start: Expression, end: Expression) -> Part:
    """The lines between the first one that an expression matches and the next that another matches.

    Raises InputRefused where there are no such lines, and as `Expression.lines`.
    """
    first = next(iter(start.lines(source.texts, source.name)), None)
    if first is None:
        raise InputRefused(f"no line of {source.name} matches {start}")
    last = next((i for i in end.lines(source.texts, source.name) if i > first), None)
    if last is None:
        raise InputRefused(f"no line of {source.name} behind line {first + 1} matches {end}")
    if last == first + 1:
        raise InputRefused(f"{source.name} has no line between lines {first + 1} and {last + 1}, which --between names")
    return Part(first + 1, last)


def parts_matching(source: SourceFile, wanted: Expression) -> list[Part]:
    """The paragraphs, which blank lines part, with a line that an expression matches. Raises as `part_between`."""
    lines = wanted.lines(source.texts, source.name)
    found = [part for part in paragraphs(source) if bisect_left(lines, part.start) < bisect_left(lines, part.end)]
    if not found:
        raise InputRefused(f"no line of {source.name} matches {wanted}")
    return found


def paragraphs(source: SourceFile) -> list[Part]:
    """Every run of lines that are not blank."""
    found: list[Part] = []
    for filled, lines in groupby(enumerate(source.texts), key=lambda each: each[1].strip() != ""):
        if filled:
            numbers = [number for number, _ in lines]
            found.append(Part(numbers[0], numbers[-1] + 1))
    return found


def all_around(source: SourceFile, part: Part) -> Around:
    """All other lines of a file."""
    return Around(source.texts[: part.start], source.texts[part.end :])


def told_of(source: SourceFile, part: Part, around: Around) -> str:
    """What the model is told of a file besides the lines that it writes."""
    name = "the text" if source.place is None else label(source.place.named.name)
    if part == whole(source):
        return "" if source.place is None else f"The file is called {name}."
    told = [f"The file is lines {part.start + 1} to {part.end} of {name}; what stands around it is no part of it."]
    if around.before:
        first = part.start + 1 - len(around.before)
        where = f"Lines {first} to {part.start}, in front of it"
        if around.is_new:
            where = "What stands in front of it, where the change is made already"
        told.append(f"{where}:\n{joined(around.before)}")
    if around.behind:
        last = part.end + len(around.behind)
        told.append(f"Lines {part.end + 1} to {last}, behind it:\n{joined(around.behind)}")
    return "\n\n".join(told)


def changes_in(source: SourceFile, part: Part, lines: Sequence[str]) -> list[Change]:
    """What makes the old lines of a part into new ones. Lines outside it are not even compared."""
    at = part.start
    return [
        change(source, at + each.start, at + each.end, lines[each.new_start : each.new_end], each.new_start)
        for each in align(source.texts[part.start : part.end], lines)
    ]


def reviewed(source: SourceFile, found: Sequence[Change]) -> Review:
    """Changes as hunks, nothing decided."""
    groups: list[list[Change]] = []
    for each in found:
        if groups and each.start - groups[-1][-1].end <= APART:
            groups[-1].append(each)
        else:
            groups.append([each])
    hunks = (Hunk(str(i), group[0].start, group[-1].end, tuple(group)) for i, group in enumerate(groups, start=1))
    return Review(source, tuple(hunks))


def checked(source: SourceFile, parts: Sequence[Part], found: Sequence[Change], guard: Rails) -> list[Finding]:
    """What stands against changes: in the file by its guard rails, and in each part as if it were a file."""
    findings = check(source, found, guard)
    if list(parts) == [whole(source)]:
        return findings
    known = {(finding.problem, finding.line) for finding in findings}
    of_all = {finding.problem for finding in findings} & {Problem.EMPTY, Problem.SHORTER}
    for part in parts:
        lines = source.lines[part.start : part.end]
        alone = replace(source, data=b"".join(line.raw for line in lines), mark=b"", lines=lines)
        moved = [
            replace(each, start=each.start - part.start, end=each.end - part.start)
            for each in found
            if part.start <= each.start and each.end <= part.end
        ]
        for finding in check(alone, moved) if moved else ():
            line = finding.line + part.start
            if finding.problem not in of_all and (finding.problem, line) not in known:
                reason = finding.reason.replace("of the file", "of this part")
                findings.append(replace(finding, line=line, reason=reason))
    return sorted(findings, key=lambda finding: finding.line)
