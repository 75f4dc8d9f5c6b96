"""The part of a file that a rewrite may change, and what the model is told of the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specchat.attachments import label
from specchat.errors import InputRefused, UsageError
from specchat.rewrite.align import align
from specchat.rewrite.checks import Finding, Rails, check
from specchat.rewrite.hunks import APART, Hunk, Review
from specchat.rewrite.merge import Change, change
from specchat.rewrite.source import SourceFile, joined

_RANGE = re.compile(r"([0-9]{0,9}):([0-9]{0,9})|([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Part:
    """Old lines [start, end), counted from 0."""

    start: int
    end: int


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


def told_of(source: SourceFile, part: Part) -> str:
    """What the model is told of a file besides the lines that it writes."""
    name = "the text" if source.place is None else label(source.place.named.name)
    if part == whole(source):
        return "" if source.place is None else f"The file is called {name}."
    before, behind = source.texts[: part.start], source.texts[part.end :]
    told = [f"The file is lines {part.start + 1} to {part.end} of {name}; what stands around it is no part of it."]
    if before:
        told.append(f"Lines 1 to {part.start}, in front of it:\n{joined(before)}")
    if behind:
        told.append(f"Lines {part.end + 1} to {len(source.lines)}, behind it:\n{joined(behind)}")
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


def checked(source: SourceFile, part: Part, found: Sequence[Change], guard: Rails) -> list[Finding]:
    """What stands against changes: in the file by its guard rails, and in the part as if it were a file."""
    findings = check(source, found, guard)
    if part == whole(source):
        return findings
    known = {finding.problem for finding in findings}
    lines = source.lines[part.start : part.end]
    alone = replace(source, data=b"".join(line.raw for line in lines), mark=b"", lines=lines)
    moved = [replace(each, start=each.start - part.start, end=each.end - part.start) for each in found]
    findings += [
        replace(finding, line=finding.line + part.start)
        for finding in check(alone, moved)
        if finding.problem not in known
    ]
    return sorted(findings, key=lambda finding: finding.line)
