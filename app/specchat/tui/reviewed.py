"""A rewritten file as a review has it: its hunks, what was decided, and what speaks against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specchat.attachments import label
from specchat.rewrite.checks import Finding, Problem, check
from specchat.rewrite.flags import Flag
from specchat.rewrite.hunks import Decision, Hunk, Review
from specchat.rewrite.merge import Change
from specchat.rewrite.source import SourceFile

Check = Callable[[SourceFile, Sequence[Change]], Sequence[Finding]]

_OF_THE_FILE = frozenset((Problem.TRUNCATED, Problem.EMPTY, Problem.SHORTER, Problem.MAX_CHANGE))


@dataclass(frozen=True, slots=True)
class ReviewedFile:
    """A rewritten file and all that a review says of it."""

    review: Review
    flags: tuple[Flag, ...] = ()
    findings: tuple[Finding, ...] = ()
    facts: str = ""  # encoding, line ends, mode, such as "utf-8  CRLF  0644"
    part: str = ""  # the lines that the model was to write again, such as "lines 10-40"; "" for all
    remarks: tuple[str, ...] = ()  # what else is to be known of the file, each fit to be shown
    figures: str = ""  # one line: what the rewrite took
    unread_from: int | None = None  # the first old line, from 0, that was taken without the model having written it
    least_sure: Mapping[str, float] = field(default_factory=dict)  # hunk -> smallest probability of a word in it
    check: Check = check  # asked again when the hunks become others

    @property
    def name(self) -> str:
        """The file's name as one line that is fit to be shown."""
        return label(self.review.source.name)

    def of(self, decision: Decision) -> list[Hunk]:
        """The hunks with this decision, in the order of the file."""
        return [hunk for hunk in self.review.hunks if hunk.decision is decision]

    def flags_of(self, hunk: Hunk) -> list[Flag]:
        """The flags of a hunk."""
        return [flag for flag in self.flags if flag.hunk == hunk.id]

    def findings_of(self, hunk: Hunk) -> list[Finding]:
        """What was found at the lines of a hunk."""
        last = max(hunk.end, hunk.start + 1)
        return [each for each in self.findings if each.problem not in _OF_THE_FILE and hunk.start < each.line <= last]

    @property
    def findings_of_all(self) -> list[Finding]:
        """What was found at no hunk in particular."""
        return [each for each in self.findings if each.problem in _OF_THE_FILE]

    def holds(self, hunk: Hunk, text: str) -> bool:
        """Whether an old or a new line of a hunk holds a text, in either case."""
        lines = [*self.review.source.texts[hunk.start : hunk.end], *self.review.new_lines(hunk.id)]
        return any(text.casefold() in line.casefold() for line in lines)

    @property
    def kept_share(self) -> float:
        """The share of the old lines that no hunk touches, 0 to 1."""
        old = len(self.review.source.lines)
        return 1 - sum(hunk.removed for hunk in self.review.hunks) / old if old else 1.0

    def checked(self, hunks: Iterable[Hunk]) -> list[Finding]:
        """What stands against writing these hunks, which are in the order of the file."""
        cut_off = [each for each in self.findings if each.problem is Problem.TRUNCATED]
        changes = [each for hunk in hunks for each in hunk.changes]
        return [*cut_off, *self.check(self.review.source, changes)]

    def decided(self, decision: Decision, ids: Iterable[str]) -> ReviewedFile:
        """The file with another decision on some hunks."""
        wanted = set(ids)
        hunks = (replace(hunk, decision=decision) if hunk.id in wanted else hunk for hunk in self.review.hunks)
        return replace(self, review=replace(self.review, hunks=tuple(hunks)))

    def split(self, hunk: Hunk) -> ReviewedFile:
        """The file with a hunk in parts, the same one where it has none.

        What was said of the hunk is said of each part: which one it was about is not known.
        """
        review = self.review.split(hunk.id)
        if review is self.review:
            return self
        parts = [each.id for each in review.hunks if each.id.startswith(f"{hunk.id}.")]
        flags = [flag for flag in self.flags if flag.hunk != hunk.id]
        flags += [replace(flag, hunk=part) for part in parts for flag in self.flags_of(hunk)]
        sure = dict(self.least_sure)
        if (least := sure.pop(hunk.id, None)) is not None:
            sure |= dict.fromkeys(parts, least)
        return replace(self, review=review, flags=tuple(flags), least_sure=sure)

    def edited(self, hunk: str, lines: Sequence[str], flags: Iterable[Flag] = ()) -> ReviewedFile:
        """The file with other lines for a hunk; what the model thought of the old ones says nothing of these."""
        edited = replace(
            self,
            review=self.review.edit(hunk, lines),
            flags=(*(flag for flag in self.flags if flag.hunk != hunk), *(replace(flag, hunk=hunk) for flag in flags)),
            least_sure={key: least for key, least in self.least_sure.items() if key != hunk},
        )
        return replace(edited, findings=tuple(edited.checked(edited.review.hunks)))


@dataclass(frozen=True, slots=True)
class Selected:
    """The accepted hunks of one file."""

    number: int  # of the file, in the order in which the files were given; from 0
    review: Review
    hunks: tuple[str, ...]  # ids
    findings: tuple[Finding, ...] = ()  # what stands against writing just these hunks

    def result(self) -> bytes:
        """The file with these hunks. Raises OutputRefused for a character that it cannot hold."""
        return self.review.result(self.hunks)
