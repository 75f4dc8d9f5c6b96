"""What became of a rewrite: the lines, the hunks, what stands against writing them, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from specchat.rewrite.checks import Finding, Problem, Rails
from specchat.rewrite.errors import OutputRefused
from specchat.rewrite.extract import Extracted, extract
from specchat.rewrite.flags import Flag, Rejection, flags
from specchat.rewrite.hunks import Review
from specchat.rewrite.merge import Change, with_rest
from specchat.rewrite.part import Around, Part, changes_in, checked, reviewed
from specchat.rewrite.partial import Piece, piece_of
from specchat.rewrite.prompt import Asked
from specchat.rewrite.seams import seam_findings, without_repeats
from specchat.rewrite.source import SourceFile, split_lines
from specchat.rewrite.took import Took
from specchat.session import Reply
from speculation.stats import Totals, totals
from speculation.types import Finish, Step

_CUT = {
    Finish.LENGTH: "the limit of tokens was reached",
    Finish.CONTEXT: "the context is full",
    None: "it was stopped",
}


@dataclass(frozen=True, slots=True)
class Record:
    """What was asked and what the model wrote, before it is judged."""

    source: SourceFile
    part: Part
    asked: Asked
    instruction: str
    guard: Rails
    text: str
    rejected: tuple[Rejection, ...]
    finish: Finish | None  # None: stopped
    steps: tuple[Step, ...]
    replies: tuple[Reply, ...]  # one for each run
    plain_step_s: float | None
    around: Around = field(default_factory=Around)
    before: Took = field(default_factory=Took)  # in runs that ended
    parts: tuple[Part, ...] = ()  # that were written on their own; none: the whole part at once

    @property
    def old(self) -> Sequence[str]:
        """The lines that were to be written again."""
        return self.source.texts[self.part.start : self.part.end]

    def against(self, found: Sequence[Change]) -> list[Finding]:
        """What stands against changes of the file, by line."""
        parts = self.parts or (self.part,)
        findings = checked(self.source, parts, found, self.guard)
        findings += seam_findings(self.source, parts, found)
        return sorted(findings, key=lambda finding: finding.line)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rewrite that ended, or that ended too early."""

    record: Record
    written: Extracted
    lines: tuple[str, ...]  # of the part, as they would be
    review: Review  # nothing decided
    findings: tuple[Finding, ...]
    flags: tuple[Flag, ...]
    unread_from: int | None  # the first old line that was taken without the model having written it
    complete: bool

    @property
    def data(self) -> bytes | None:
        """The file with every change; None where that must not be written."""
        if any(finding.never for finding in self.findings):
            return None
        try:
            return self.review.result([hunk.id for hunk in self.review.hunks])
        except OutputRefused:
            return None

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it."""
        return not self.complete and self.record.finish is None

    @property
    def can_go_on(self) -> bool:
        """Whether `Rewriting.go_on` can write more."""
        return not self.complete and self.record.finish is not Finish.CONTEXT

    @property
    def changed_lines(self) -> int:
        """Lines that go or come, whichever are more in each change."""
        found = (each for hunk in self.review.hunks for each in hunk.changes)
        return sum(max(each.end - each.start, len(each.lines)) for each in found)

    def against(self, found: Sequence[Change]) -> list[Finding]:
        """What stands against making only these of the changes, or others in their place."""
        return self.record.against(found)

    @property
    def piece(self) -> Piece:
        """All lines of the part as what was written of it."""
        return piece_of(self.record.part, self.lines, self.written.offsets, self.record.rejected)

    @property
    def totals(self) -> Totals:
        """The figures of all its steps, those before an interruption too."""
        return self.record.before.totals + totals(self.record.steps)

    @property
    def seconds(self) -> float:
        """Reading and writing."""
        took = self.record.before.and_then(totals(self.record.steps), self.record.replies)
        return took.read_s + took.totals.seconds

    @property
    def plain_seconds(self) -> float | None:
        """An estimate of what plain decoding would have taken, reading included."""
        if self.record.plain_step_s is None:
            return None
        return self.seconds + self.totals.emitted * self.record.plain_step_s - self.totals.seconds


def completed(record: Record, unread_from: int | None = None) -> Outcome:
    """A rewrite that came to its end, or, from an old line of the part on, was given the rest of the file."""
    if unread_from is None:
        written = extract(record.text, record.asked, record.old, record.finish)
        written = without_repeats(written, record.old, record.around)
        return _judged(record, written, written.lines, None, complete=True)
    written, lines, place = _with_rest(record, unread_from)
    return _judged(record, written, lines, place, complete=True)


def cut_off(record: Record, reached: int) -> Outcome:
    """A rewrite that ended too early, near an old line of the part: what it changed so far, never to be written."""
    written, lines, place = _with_rest(record, reached)
    return unfinished(_judged(record, written, lines, place, complete=False))


def unfinished(outcome: Outcome) -> Outcome:
    """The outcome of a rewrite that did not come to its end, with the finding that says so."""
    record, place = outcome.record, outcome.unread_from or 0
    why = _CUT.get(record.finish, "it ended")
    reason = f"the rewrite is not complete: {why} at line {place} of {len(record.source.lines)}"
    finding = Finding(Problem.TRUNCATED, max(1, place), reason)
    return replace(outcome, findings=(finding, *outcome.findings))


def settled(record: Record, reached: int, written: int) -> Piece | None:
    """What is done up to an old line of the part, behind so many whole lines of the reply; None for nothing."""
    end = 0
    for _ in range(written):
        end = record.text.index("\n", end) + 1
    if reached == 0:
        return None
    found = without_repeats(_whole_lines(record, end), record.old, record.around)
    done = Part(record.part.start, record.part.start + reached)
    return piece_of(done, found.lines, found.offsets, [each for each in record.rejected if each.start < end])


def joined_up(record: Record, pieces: Sequence[Piece], unread_from: int | None, *, complete: bool) -> Outcome:
    """The outcome of a rewrite in pieces, which are in order; lines between and behind them are as they were."""
    lines: list[str] = []
    offsets: list[int] = []
    found: list[Change] = []
    rejected: list[Rejection] = []
    at, size = record.part.start, 0

    def keep(until: int) -> None:
        lines.extend(record.source.texts[at:until])
        offsets.extend([size] * (until - at))

    for piece in pieces:
        keep(piece.part.start)
        base = len(lines)
        found += [
            replace(each, written=base + (each.written or 0))
            for each in changes_in(record.source, piece.part, piece.lines)
        ]
        lines += piece.lines
        offsets += [size + offset for offset in piece.offsets]
        rejected += [replace(each, start=size + each.start, end=size + each.end) for each in piece.rejected]
        at, size = piece.part.end, size + piece.size
    keep(record.part.end)
    written = Extracted(tuple(lines), tuple(offsets), (), complete, complete)
    record = replace(record, rejected=tuple(rejected))
    outcome = _reviewed(record, written, written.lines, found, unread_from, complete=complete)
    return outcome if complete else unfinished(outcome)


def _with_rest(record: Record, reached: int) -> tuple[Extracted, tuple[str, ...], int]:
    """What was written, that with the rest of the part as it was, and the old line that the rest begins with."""
    written = without_repeats(_whole_lines(record), record.old, record.around)
    rest = with_rest(record.old, written.lines, reached)
    lines, place = rest or ([*written.lines, *record.old[reached:]], reached)
    return written, tuple(lines), record.part.start + place


def _whole_lines(record: Record, until: int | None = None) -> Extracted:
    """What was written up to a place, or up to the last line end."""
    end = record.text.rfind("\n") + 1 if until is None else until
    found = extract(record.text[:end], record.asked, record.old, None)
    if found.stripped or not found.offsets or not found.offsets[0]:
        return found
    # Blank lines at the beginning, which a reply may have in front of its first mark; this one was begun with it.
    blank = split_lines(record.text[: found.offsets[0]])
    ends = accumulate(len(text) + len(end) for text, end in blank)
    lines, offsets = (*(text for text, _ in blank), *found.lines), (0, *ends, *found.offsets[1:])
    return replace(found, lines=lines, offsets=offsets)


def _judged(
    record: Record, written: Extracted, lines: tuple[str, ...], unread_from: int | None, *, complete: bool
) -> Outcome:
    found = changes_in(record.source, record.part, lines)
    return _reviewed(record, written, lines, found, unread_from, complete=complete)


def _reviewed(
    record: Record,
    written: Extracted,
    lines: tuple[str, ...],
    found: Sequence[Change],
    unread_from: int | None,
    *,
    complete: bool,
) -> Outcome:
    review = reviewed(record.source, found)
    return Outcome(
        record=record,
        written=written,
        lines=lines,
        review=review,
        findings=tuple(record.against(found)),
        flags=tuple(flags(record.source, review.hunks, written, record.rejected, record.instruction)),
        unread_from=unread_from,
        complete=complete,
    )
