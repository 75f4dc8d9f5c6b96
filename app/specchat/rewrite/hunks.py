"""The changes of a file as hunks that are accepted, rejected, split and edited one by one; each step is a new value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from specchat.rewrite.align import align
from specchat.rewrite.merge import Change, FinalNewline, LineEnds, applied, change, changes
from specchat.rewrite.source import SourceFile, joined

APART = 2  # most unchanged lines between changes of one hunk
_MOST_PAIRS = 40_000  # comparisons of lines to find which new line stands for which old one

_WORD = re.compile(r"\w+|\s|.", re.DOTALL)


class Decision(StrEnum):
    """What the user says to a hunk."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changes that stand together."""

    id: str  # "2"; its parts are "2.1", "2.2"
    start: int  # old lines [start, end), with the unchanged ones between the changes
    end: int
    changes: tuple[Change, ...]
    decision: Decision = Decision.OPEN

    @property
    def removed(self) -> int:
        """Old lines that go."""
        return sum(each.end - each.start for each in self.changes)

    @property
    def added(self) -> int:
        """New lines that come."""
        return sum(len(each.lines) for each in self.changes)


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of one line that differ."""

    line: int  # of the old file, or of the change's new lines; counted from 0
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Review:
    """A file, the hunks of its rewrite, and what was decided. Raises KeyError for an id that no hunk has."""

    source: SourceFile
    hunks: tuple[Hunk, ...]

    def find(self, hunk_id: str) -> Hunk:
        """The hunk with an id."""
        for hunk in self.hunks:
            if hunk.id == hunk_id:
                return hunk
        raise KeyError(hunk_id)

    def decide(self, decision: Decision, hunk_ids: Iterable[str]) -> Review:
        """Accept, reject or reopen hunks."""
        wanted = {self.find(hunk_id).id for hunk_id in hunk_ids}
        hunks = (replace(hunk, decision=decision) if hunk.id in wanted else hunk for hunk in self.hunks)
        return replace(self, hunks=tuple(hunks))

    def split(self, hunk_id: str) -> Review:
        """Cut a hunk into its changes, or a lone change into lines; the same review where neither is possible."""
        hunk = self.find(hunk_id)
        parts = hunk.changes if len(hunk.changes) > 1 else _parts(self.source, hunk.changes[0]) if hunk.changes else ()
        if len(parts) < 2:
            return self
        cut = [
            Hunk(f"{hunk.id}.{i}", part.start, part.end, (part,), hunk.decision)
            for i, part in enumerate(parts, start=1)
        ]
        return self._with(hunk, cut)

    def edit(self, hunk_id: str, lines: Sequence[str]) -> Review:
        """Put other lines in the place of a hunk's: what the user typed, or the model wrote anew."""
        hunk = self.find(hunk_id)
        found = [
            change(self.source, hunk.start + each.start, hunk.start + each.end, lines[each.new_start : each.new_end])
            for each in align(self.source.texts[hunk.start : hunk.end], lines)
        ]
        return self._with(hunk, [replace(hunk, changes=tuple(found), decision=Decision.OPEN)])

    def new_lines(self, hunk_id: str) -> list[str]:
        """The lines of a hunk as they would be, with the unchanged ones between: what `edit` begins with."""
        hunk = self.find(hunk_id)
        lines: list[str] = []
        at = hunk.start
        for each in hunk.changes:
            lines += [*self.source.texts[at : each.start], *(line.text for line in each.lines)]
            at = each.end
        return [*lines, *self.source.texts[at : hunk.end]]

    def result(
        self,
        hunk_ids: Iterable[str] | None = None,
        final_newline: FinalNewline = FinalNewline.KEEP,
        ends: LineEnds = LineEnds.KEEP,
    ) -> bytes:
        """The file with some hunks; None: those that were accepted. Raises OutputRefused as `merge` does."""
        if hunk_ids is None:
            wanted = {hunk.id for hunk in self.hunks if hunk.decision is Decision.ACCEPTED}
        else:
            wanted = {self.find(hunk_id).id for hunk_id in hunk_ids}
        chosen = [each for hunk in self.hunks if hunk.id in wanted for each in hunk.changes]
        return applied(self.source, chosen, final_newline, ends)

    def _with(self, hunk: Hunk, others: Iterable[Hunk]) -> Review:
        at = self.hunks.index(hunk)
        return replace(self, hunks=(*self.hunks[:at], *others, *self.hunks[at + 1 :]))


def review(source: SourceFile, lines: Sequence[str]) -> Review:
    """The rewrite of a file as hunks, nothing decided."""
    groups: list[list[Change]] = []
    for each in changes(source, lines):
        if groups and each.start - groups[-1][-1].end <= APART:
            groups[-1].append(each)
        else:
            groups.append([each])
    hunks = (Hunk(str(i), group[0].start, group[-1].end, tuple(group)) for i, group in enumerate(groups, start=1))
    return Review(source, tuple(hunks))


def marks(source: SourceFile, each: Change) -> tuple[list[Mark], list[Mark]]:
    """The words that differ in the old and in the new lines of a change, at most one mark for neighbours."""
    old = source.texts[each.start : each.end]
    new = [line.text for line in each.lines]
    old_words, new_words = _WORD.findall(joined(old)), _WORD.findall(joined(new))
    old_at, new_at = _places(old_words), _places(new_words)
    differing = align(old_words, new_words)
    return (
        _marks(old, [(old_at[found.start], old_at[found.end]) for found in differing], each.start),
        _marks(new, [(new_at[found.new_start], new_at[found.new_end]) for found in differing], 0),
    )


def _places(words: Sequence[str]) -> list[int]:
    places = [0]
    for word in words:
        places.append(places[-1] + len(word))
    return places


def _marks(lines: Sequence[str], spans: Iterable[tuple[int, int]], first: int) -> list[Mark]:
    """Spans of the joined lines as marks of each line; line ends take none."""
    found: list[Mark] = []
    line, begun = 0, 0
    for start, end in spans:
        while line < len(lines) and begun + len(lines[line]) < start:
            begun += len(lines[line]) + 1
            line += 1
        at, at_begun = line, begun
        while at < len(lines) and at_begun < end:
            mark = Mark(first + at, max(0, start - at_begun), min(len(lines[at]), end - at_begun))
            if mark.start < mark.end:
                found.append(mark)
            at_begun += len(lines[at]) + 1
            at += 1
    return found


def _parts(source: SourceFile, each: Change) -> list[Change]:
    """A change cut into pairs of an old and a new line, and the lines that have no partner."""
    size, new_size = each.end - each.start, len(each.lines)
    paired = min(size, new_size)
    # The shorter side stands where it is most like the longer one.
    offset = _likeliest(source.texts[each.start : each.end], [line.text for line in each.lines])
    old_first, new_first = (offset, 0) if size > new_size else (0, offset)
    parts: list[Change] = []

    def part(start: int, end: int, new_start: int, new_end: int) -> None:
        written = None if each.written is None else each.written + new_start
        parts.append(Change(each.start + start, each.start + end, each.lines[new_start:new_end], written))

    for i in range(old_first):
        part(i, i + 1, 0, 0)
    for i in range(new_first):
        part(0, 0, i, i + 1)
    for i in range(paired):
        part(old_first + i, old_first + i + 1, new_first + i, new_first + i + 1)
    for i in range(old_first + paired, size):
        part(i, i + 1, new_size, new_size)
    for i in range(new_first + paired, new_size):
        part(size, size, i, i + 1)
    return parts


def _likeliest(old: Sequence[str], new: Sequence[str]) -> int:
    """How far the shorter of two lists is to be moved along the longer so that its lines meet like ones."""
    short, long = sorted((old, new), key=len)
    room = len(long) - len(short)
    if not short or (room + 1) * len(short) > _MOST_PAIRS:
        return 0
    words = {line: set(_WORD.findall(line)) - {" "} for line in (*old, *new)}

    def likeness(offset: int) -> float:
        pairs = ((words[line], words[long[offset + i]]) for i, line in enumerate(short))
        return sum(len(one & other) / (len(one | other) or 1) for one, other in pairs)

    return max(range(room + 1), key=lambda offset: (likeness(offset), -offset))
