"""One file of a command line from its bytes to what becomes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from specchat.attachments import label
from specchat.console import say
from specchat.errors import Refusal
from specchat.rewrite.asking import agreed, ask_about
from specchat.rewrite.checks import Finding
from specchat.rewrite.forecast import forecast
from specchat.rewrite.generate import Rewriting
from specchat.rewrite.hunks import Decision, Review
from specchat.rewrite.inputs import Job, Mode
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.part import checked, part_of
from specchat.rewrite.results import (
    DECLINED,
    INPUT,
    INTERRUPTED,
    MODEL,
    REFUSED,
    SOME_FAILED,
    WOULD_CHANGE,
    Result,
    Status,
)
from specchat.rewrite.source import SourceFile
from specchat.rewrite.telling import drained
from specchat.rewrite.undo import UndoStore
from specchat.session import ChatSession, ContextFull
from specchat.template import TemplateError
from speculation.types import SpeculationError

_MOST_REASONS = 4  # that are spelled out
_WAY_OUT = "look at it without --write, or take it with --force"


class OneFile:
    """Rewrites one file after the other on one session."""

    def __init__(self, job: Job, session: ChatSession, store: UndoStore, piped: bytes) -> None:
        self.enough = False  # whether the user wants no more questions
        self._job = job
        self._session = session
        self._store = store
        self._piped = piped

    def rewrite(self, name: str) -> Result:
        """Rewrite a file and do with it what was asked for."""
        shown = label(name)
        try:
            source = self._job.read(name, self._piped)
            shown = source.name
            if source.place is not None and source.outside(Path.cwd()) and source.place.named != source.place.real:
                say(f"note: {shown} is {source.place.real}")
            part = None if self._job.lines is None else part_of(source, self._job.lines)
            rewriting = Rewriting(self._session, source, self._job.instruction, part, self._job.guard)
            if sys.stderr.isatty() and (expected := forecast(self._session, rewriting)) is not None:
                say(f"{shown}: {expected}")
            return self._judged(source, self._written(rewriting))
        except (Refusal, SpeculationError, TemplateError) as error:
            return failed(shown, error)

    def _written(self, rewriting: Rewriting) -> Outcome:
        """What the model writes; on a terminal, one that reached a limit may go on."""
        outcome = drained(rewriting, rewriting.run())
        while self._job.mode is Mode.REVIEW and outcome.can_go_on and not outcome.interrupted:
            say(f"{rewriting.source.name}: {outcome.findings[0].reason}")
            if not agreed("go on with it?"):
                break
            outcome = drained(rewriting, rewriting.go_on())
        return outcome

    def _judged(self, source: SourceFile, outcome: Outcome) -> Result:
        """Decide what becomes of a rewrite. Raises what writing does."""
        name, mode = source.name, self._job.mode
        if outcome.interrupted:
            said = f"{name}: {outcome.findings[0].reason}; nothing was written"
            return Result(name, Status.INTERRUPTED, INTERRUPTED, said, outcome)
        if reasons := self._against(outcome):
            return _refused(outcome, reasons)
        data = outcome.data
        if data is None or not outcome.review.hunks:  # without data there was a finding, and no way to here
            return Result(name, Status.UNCHANGED, 0, f"{name}: nothing to change", outcome, data=source.data)
        if mode is Mode.REVIEW:
            return self._reviewed(source, outcome)
        if mode is Mode.WRITE:
            return self._saved(source, outcome, data)
        code = WOULD_CHANGE if mode is Mode.CHECK else 0
        said = f"{name}: would change" if mode is Mode.CHECK else ""
        return Result(name, Status.CHANGED, code, said, outcome, data=data)

    def _against(self, outcome: Outcome) -> list[str]:
        """What stands against going on with a rewrite."""
        job = self._job
        reasons = [_told(each) for each in outcome.findings if each.never]
        if reasons or job.force or job.mode is Mode.REVIEW:
            return reasons
        reasons = [_told(each) for each in outcome.findings]
        if job.strict or job.mode is Mode.WRITE:
            reasons += [f"line {each.line}: {each.kind}: {each.reason}" for each in outcome.flags]
        return reasons

    def _reviewed(self, source: SourceFile, outcome: Outcome) -> Result:
        for each in outcome.findings[:_MOST_REASONS]:
            say(f"{source.name}: {_told(each)}")
        review, goes_on = ask_about(outcome.review, outcome.flags)
        self.enough = not goes_on
        chosen = [each for hunk in review.hunks if hunk.decision is Decision.ACCEPTED for each in hunk.changes]
        declined = Result(source.name, Status.DECLINED, DECLINED, f"{source.name}: nothing was written", outcome)
        if not chosen:
            return declined
        against = checked(source, outcome.record.part, chosen, self._job.guard)
        never = [each for each in against if each.never]
        flagged = self._job.strict and not self._job.force and _accepted_flags(review, outcome)
        if never or (against and self._job.strict and not self._job.force) or flagged:
            return _refused(outcome, [*map(_told, never or against), *(flagged or [])])
        if against and not self._job.force:
            say(f"{source.name}: {_several(map(_told, against))}")
            if not agreed("write it all the same?"):
                return declined
        return self._saved(source, outcome, review.result())

    def _saved(self, source: SourceFile, outcome: Outcome, data: bytes) -> Result:
        name, place = source.name, source.place
        assert place is not None  # standard input is never written
        entry = self._store.save(source, data, self._job.instruction)
        if entry is None:
            return Result(name, Status.UNCHANGED, 0, f"{name}: nothing to change", outcome, data=data)
        undo_id: str | None = entry.id
        if not self._job.keeps_backup:
            self._store.forget(entry)
            undo_id = None
        problem = _run_after(self._job.after, place.named)
        said = f"{name}: written" + (f", but {problem}" if problem else "")
        if undo_id is not None:
            said += f"; `specchat undo {undo_id}` takes it back"
        return Result(name, Status.WRITTEN, SOME_FAILED if problem else 0, said, outcome, undo_id, data)


def failed(name: str, error: Exception) -> Result:
    """The result of a file whose rewrite raised."""
    code = getattr(error, "exit_code", INPUT if isinstance(error, ContextFull) else MODEL)
    said = " ".join(str(error).split())
    return Result(name, Status.FAILED, code, said if name in said else f"{name}: {said}")


def _refused(outcome: Outcome, reasons: Sequence[str]) -> Result:
    name = outcome.record.source.name
    way_out = "" if outcome.data is None else f"; {_WAY_OUT}"
    return Result(name, Status.REFUSED, REFUSED, f"{name}: not used: {_several(reasons)}{way_out}", outcome)


def _accepted_flags(review: Review, outcome: Outcome) -> list[str]:
    accepted = [hunk.id for hunk in review.hunks if hunk.decision is Decision.ACCEPTED]
    return [
        f"line {flag.line}: {flag.kind}: {flag.reason}"
        for flag in outcome.flags
        if any(hunk_id == flag.hunk or hunk_id.startswith(f"{flag.hunk}.") for hunk_id in accepted)
    ]


def _told(finding: Finding) -> str:
    return f"line {finding.line}: {finding.reason}"


def _several(reasons: Iterable[str]) -> str:
    found = list(dict.fromkeys(reasons))
    more = f"; and {len(found) - _MOST_REASONS} more" if len(found) > _MOST_REASONS else ""
    return "; ".join(found[:_MOST_REASONS]) + more


def _run_after(command: Sequence[str], path: Path) -> str:
    """Run what the user wants to run behind a write; what went wrong, or nothing."""
    if not command:
        return ""
    words = [word.replace("{}", str(path)) for word in command]
    try:
        # Its output is for people: standard output carries the result of this command alone.
        code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode
    except (OSError, ValueError) as error:
        return f"{label(words[0])} cannot run: {getattr(error, 'strerror', None) or error}"
    return f"{label(words[0])} ended with {code}" if code else ""
