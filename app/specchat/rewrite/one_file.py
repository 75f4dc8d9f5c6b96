"""One file of a command line from its bytes to what becomes of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from specchat.attachments import label
from specchat.console import say
from specchat.dialogue import Dialogue
from specchat.errors import InputRefused, Refusal, in_one_line
from specchat.exit_codes import ExitCode
from specchat.rewrite.asking import agreed, ask_about
from specchat.rewrite.backups import check_backup
from specchat.rewrite.disk import place_of
from specchat.rewrite.endings import Converted
from specchat.rewrite.errors import ChangedOnDisk, NotWritten
from specchat.rewrite.forecast import forecast
from specchat.rewrite.hunks import Decision
from specchat.rewrite.inputs import Job, Mode
from specchat.rewrite.long import AnyRewriting, rewriting_of
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.partial import Partial
from specchat.rewrite.reasons import MOST_REASONS, accepted_doubts, doubts, several, told
from specchat.rewrite.refused import RefusedStore, unused
from specchat.rewrite.results import Result, Status
from specchat.rewrite.saving import saved
from specchat.rewrite.shown import drawing
from specchat.rewrite.source import SourceFile
from specchat.rewrite.telling import drained
from specchat.rewrite.undo import UndoStore
from specchat.rewrite.unfinished import Keeping, UnfinishedStore
from specchat.session import ContextFull
from specchat.template import TemplateError
from speculation.types import SpeculationError

_FORCE = "; --force takes such a change"


class OneFile:
    """Rewrites one file after the other on one session."""

    def __init__(
        self,
        job: Job,
        session: Dialogue,
        store: UndoStore,
        unfinished: UnfinishedStore,
        refused: RefusedStore,
        piped: bytes,
    ) -> None:
        self.enough = False  # whether the user wants no more questions
        self._given = job
        self._job = job  # of the present file, with the terms of a rewrite that it goes on with
        self._session = session
        self._store = store
        self._unfinished = unfinished
        self._not_used = refused
        self._piped = piped
        self._goes_on = ""  # how to go on with the present file, if it can be
        self._kept: Path | None = None  # where that stands which was not used of it

    def rewrite(self, name: str) -> Result:
        """Rewrite a file and do with it what was asked for."""
        self._goes_on, self._kept = "", None
        shown = label(name)
        try:
            partial = kept(self._given, self._unfinished, name)
            self._job = _on_terms_of(partial, self._given)
            source = self._job.read(name, self._piped, partial.encoding if partial is not None else None)
            shown = source.name
            if source.place is not None and source.outside(Path.cwd()) and source.place.named != source.place.real:
                say(f"note: {shown} is {source.place.real}")
            if source.place is not None and self._job.terms.backup_suffix is not None:
                check_backup(source.place, source.data, self._job.terms.backup_suffix)
            rewriting = self._planned(source, partial)
            keeping = Keeping(self._unfinished, rewriting, self._job.terms)
            if (
                sys.stderr.isatty()
                and rewriting.file_tokens
                and (expected := forecast(self._session, rewriting)) is not None
            ):
                say(f"{shown}: {expected}")
            result = self._decided(name, self._written(name, rewriting, keeping), keeping)
        except KeyboardInterrupt:
            said = f"{shown}: interrupted; nothing was written{self._goes_on}"
            result = Result(shown, Status.INTERRUPTED, ExitCode.INTERRUPTED, said)
        except (Refusal, SpeculationError, TemplateError) as error:
            result = failed(shown, error)
            result = replace(result, said=result.said + self._goes_on)
        return replace(result, path=name, kept=self._kept)

    def _planned(self, source: SourceFile, partial: Partial | None) -> AnyRewriting:
        job = self._job
        parts = job.where.parts(source)
        instruction = job.instruction
        if partial is not None:
            parts = list(partial.parts) if parts is None else parts
            instruction = instruction or partial.instruction
        return rewriting_of(
            self._session, source, instruction, parts, job.terms.guard, chunks=job.chunks, partial=partial
        )

    def _written(self, name: str, rewriting: AnyRewriting, keeping: Keeping) -> Outcome:
        """What the model writes; on a terminal, one that reached a limit may go on."""
        try:
            outcome = drained(rewriting, rewriting.run(), keeping)
        except Refusal:  # of a server, in the middle
            self._goes_on = self._going_on(name) if keeping.broken() else ""
            raise
        try:
            while self._job.mode is Mode.REVIEW and outcome.can_go_on and not outcome.interrupted:
                say(f"{rewriting.source.name}: {outcome.findings[0].reason}")
                if not agreed("go on with it?"):
                    break
                outcome = drained(rewriting, rewriting.go_on(), keeping)
        finally:
            self._goes_on = self._going_on(name) if keeping.end(outcome) else ""
        return outcome

    def _decided(self, name: str, outcome: Outcome, keeping: Keeping) -> Result:
        """What becomes of a rewrite. One that is interrupted now, or that the disk refuses, is not lost."""
        try:
            return self._judged(outcome)
        except (KeyboardInterrupt, NotWritten):
            self._goes_on = self._going_on(name) if keeping.broken() else ""
            raise

    def _going_on(self, name: str) -> str:
        shown = label(os.path.join(os.curdir, name) if name.startswith("-") else name)
        return f"; `specchat rewrite {shlex.quote(shown)} --continue` goes on"

    def _judged(self, outcome: Outcome) -> Result:
        """Decide what becomes of a rewrite. Raises what writing does."""
        source, mode = outcome.record.source, self._job.mode
        name = source.name
        if outcome.interrupted:
            way_out = self._goes_on or self._look(outcome)
            said = f"{name}: {outcome.findings[0].reason}; nothing was written{way_out}"
            return Result(name, Status.INTERRUPTED, ExitCode.INTERRUPTED, said, outcome)
        if reasons := self._against(outcome):
            return self._refused(outcome, reasons, way_out="" if outcome.data is None else _FORCE)
        if outcome.data is None:  # there was a finding, and no way to here
            return self._refused(outcome, ["it cannot be written"])
        data, converted = self._job.terms.endings.result(outcome.review, [hunk.id for hunk in outcome.review.hunks])
        if data == source.data:
            return Result(name, Status.UNCHANGED, 0, f"{name}: nothing to change", outcome, data=data)
        if mode is Mode.REVIEW:
            return self._reviewed(outcome)
        if mode is Mode.WRITE:
            return self._saved(outcome, data, converted)
        code = ExitCode.CHECK_FAILED if mode is Mode.CHECK else 0
        parts = [f"{name}: would change"] if mode is Mode.CHECK else []
        parts += [f"{name}: {converted}"] if converted else []
        return Result(name, Status.CHANGED, code, "; ".join(parts), outcome, data=data, converted=converted)

    def _against(self, outcome: Outcome) -> list[str]:
        """What stands against going on with a rewrite."""
        job = self._job
        reasons = [told(each) for each in outcome.findings if each.never]
        if reasons or job.force or job.mode is Mode.REVIEW:
            return reasons
        reasons = [told(each) for each in outcome.findings]
        if job.terms.strict or job.mode is Mode.WRITE:
            reasons += doubts(outcome)
        return reasons

    def _reviewed(self, outcome: Outcome) -> Result:
        source, job = outcome.record.source, self._job
        for each in outcome.findings[:MOST_REASONS]:
            say(f"{source.name}: {told(each)}")
        review, goes_on = ask_about(outcome.review, outcome.flags, drawing(job.shown))
        self.enough = not goes_on
        chosen = [each for hunk in review.hunks if hunk.decision is Decision.ACCEPTED for each in hunk.changes]
        data, converted = job.terms.endings.result(review)
        declined = Result(
            source.name, Status.DECLINED, ExitCode.DECLINED, f"{source.name}: nothing was written", outcome
        )
        if not chosen and not (converted and goes_on and _wants(source, converted)):
            return declined
        against = outcome.against(chosen)
        never = [each for each in against if each.never]
        flagged = job.terms.strict and not job.force and accepted_doubts(review, outcome)
        if never or (against and job.terms.strict and not job.force) or flagged:
            reasons = [*map(told, never or against), *(flagged or [])]
            return self._refused(outcome, reasons, data, way_out="" if never else _FORCE)
        if against and not job.force:
            say(f"{source.name}: {several(map(told, against))}")
            if not agreed("write it all the same?"):
                return declined
        return self._saved(outcome, data, converted)

    def _saved(self, outcome: Outcome, data: bytes, converted: Converted) -> Result:
        try:
            return saved(self._job, self._store, outcome, data, converted)
        except ChangedOnDisk:  # while the model wrote
            self._goes_on = self._look(outcome, data)
            raise

    def _refused(
        self, outcome: Outcome, reasons: Sequence[str], data: bytes | None = None, *, way_out: str = ""
    ) -> Result:
        """`data` is what was to be written, where it was found out already."""
        name = outcome.record.source.name
        said = f"{name}: not used: {several(reasons)}{self._goes_on}{self._look(outcome, data)}{way_out}"
        return Result(name, Status.REFUSED, ExitCode.OUTPUT, said, outcome)

    def _look(self, outcome: Outcome, data: bytes | None = None) -> str:
        """Keep what is not used, and say where."""
        self._kept = self._not_used.put(outcome.record.source.place, unused(outcome) if data is None else data)
        return "" if self._kept is None else f"; what the model wrote is in {self._kept}"


def kept(job: Job, unfinished: UnfinishedStore, name: str) -> Partial | None:
    """What is there to go on with. Raises InputRefused where nothing is and nothing says what to do."""
    if not job.goes_on:
        return None
    try:
        partial = unfinished.get(place_of(Path(name)))
    except (OSError, ValueError):  # reading it says why
        partial = None
    if partial is None and not job.instruction:
        raise InputRefused(f"no rewrite of {label(name)} was cut off, so there is none to go on with")
    return partial


def _on_terms_of(partial: Partial | None, job: Job) -> Job:
    return job if partial is None else replace(job, terms=job.terms.over(partial.terms))


def failed(name: str, error: Exception) -> Result:
    """The result of a file whose rewrite raised."""
    code = getattr(error, "exit_code", ExitCode.INPUT if isinstance(error, ContextFull) else ExitCode.MODEL)
    said = in_one_line(error)
    return Result(name, Status.FAILED, code, said if name in said else f"{name}: {said}")


def _wants(source: SourceFile, converted: Converted) -> bool:
    """Whether line ends are to be changed although nothing else is."""
    return agreed(f"{source.name}: {converted}; write that?")
