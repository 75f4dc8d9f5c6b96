"""What became of a rewrite: the lines, the hunks, what stands against writing them, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specchat.rewrite.checks import Finding, Problem, Rails
from specchat.rewrite.errors import OutputRefused
from specchat.rewrite.extract import Extracted, extract
from specchat.rewrite.flags import Flag, Rejection, flags
from specchat.rewrite.hunks import Review
from specchat.rewrite.merge import with_rest
from specchat.rewrite.part import Part, changes_in, checked, reviewed
from specchat.rewrite.prompt import Asked
from specchat.rewrite.source import SourceFile
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

    @property
    def old(self) -> Sequence[str]:
        """The lines that were to be written again."""
        return self.source.texts[self.part.start : self.part.end]


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

    @property
    def totals(self) -> Totals:
        """The figures of all its steps."""
        return totals(self.record.steps)

    @property
    def seconds(self) -> float:
        """Reading and writing."""
        return sum(reply.read_s for reply in self.record.replies) + self.totals.seconds

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
        return _judged(record, written, written.lines, None, complete=True)
    written = _whole_lines(record)
    rest = with_rest(record.old, written.lines, unread_from)
    lines, place = rest or ([*written.lines, *record.old[unread_from:]], unread_from)
    return _judged(record, written, tuple(lines), record.part.start + place, complete=True)


def cut_off(record: Record, reached: int) -> Outcome:
    """A rewrite that ended too early, near an old line of the part: what it changed so far, never to be written."""
    written = _whole_lines(record)
    rest = with_rest(record.old, written.lines, reached)
    lines, place = rest or ([*written.lines, *record.old[reached:]], reached)
    outcome = _judged(record, written, tuple(lines), record.part.start + place, complete=False)
    why = _CUT.get(record.finish, "it ended")
    reason = f"the rewrite is not complete: {why} at line {record.part.start + place} of {len(record.source.lines)}"
    finding = Finding(Problem.TRUNCATED, max(1, record.part.start + place), reason)
    return replace(outcome, findings=(finding, *outcome.findings))


def _whole_lines(record: Record) -> Extracted:
    """What was written up to the last line end."""
    return extract(record.text[: record.text.rfind("\n") + 1], record.asked, record.old, None)


def _judged(
    record: Record, written: Extracted, lines: tuple[str, ...], unread_from: int | None, *, complete: bool
) -> Outcome:
    found = changes_in(record.source, record.part, lines)
    review = reviewed(record.source, found)
    return Outcome(
        record=record,
        written=written,
        lines=lines,
        review=review,
        findings=tuple(checked(record.source, record.part, found, record.guard)),
        flags=tuple(flags(record.source, review.hunks, written, record.rejected, record.instruction)),
        unread_from=unread_from,
        complete=complete,
    )
