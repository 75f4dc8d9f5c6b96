"""What was agreed to goes to the disk: a copy beside, the write, the command behind it, and the way back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from specchat.console import can_ask, on_interrupt
from specchat.errors import Refusal
from specchat.exit_codes import ExitCode
from specchat.rewrite.after import AfterFail, Failure, run_after
from specchat.rewrite.asking import agreed
from specchat.rewrite.backups import backup_path, make_backup
from specchat.rewrite.endings import Converted
from specchat.rewrite.inputs import Job
from specchat.rewrite.journal import Entry
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.results import Result, Status
from specchat.rewrite.undo import UndoStore


def saved(job: Job, store: UndoStore, outcome: Outcome, data: bytes, converted: Converted) -> Result:
    """Write a file and do what comes behind a write. Raises NotWritten, ChangedOnDisk; the file is then as it was."""
    source = outcome.record.source
    place, name = source.place, source.name
    assert place is not None  # standard input is never written
    suffix = job.terms.backup_suffix
    interrupts: list[Failure] = []
    with on_interrupt(lambda: interrupts.append(Failure("it was interrupted", interrupted=True))):
        made = suffix is not None and make_backup(place, source.data, suffix)
        try:
            entry = store.save(source, data, job.instruction or outcome.record.instruction)
        except BaseException:
            if made and suffix is not None:
                with suppress(OSError):
                    backup_path(place, suffix).unlink()
            raise
    if entry is None:
        return Result(name, Status.UNCHANGED, 0, f"{name}: nothing to change", outcome, data=data)
    failure = next(iter(interrupts), None) or run_after(job.after, place.named)
    wants_back = False
    if failure is not None:
        try:
            wants_back = _wants_back(job, name, failure)
        except KeyboardInterrupt:
            failure = replace(failure, interrupted=True)
    if failure is not None and wants_back:
        return _taken_back(job, store, entry, failure, outcome)
    said = f"{name}: written" + (f" ({converted})" if converted else "")
    if suffix is not None:
        said += f", the old one is {name}{suffix}"
    said += f", but {failure.reason}" if failure else ""
    if job.terms.keeps_backup:
        said += f"; `specchat undo {entry.id}` takes it back"
    else:
        store.forget(entry)
    code = 0 if failure is None else ExitCode.INTERRUPTED if failure.interrupted else ExitCode.SOME_FAILED
    undo_id = entry.id if job.terms.keeps_backup else None
    return Result(name, Status.WRITTEN, code, said, outcome, undo_id, data, converted=converted)


def _wants_back(job: Job, name: str, failure: Failure) -> bool:
    """Whether the old file is wanted again behind a command that failed."""
    if job.after_fail is AfterFail.ASK and not failure.interrupted and can_ask():
        return agreed(f"{name}: {failure.reason}; take the change back?")
    return job.after_fail is AfterFail.UNDO


def _taken_back(job: Job, store: UndoStore, entry: Entry, failure: Failure, outcome: Outcome) -> Result:
    """Put the old file back."""
    name = outcome.record.source.name
    code = ExitCode.INTERRUPTED if failure.interrupted else ExitCode.OUTPUT
    try:
        back = store.restore(entry)
    except Refusal as error:
        said = f"{name}: {failure.reason}, and the change could not be taken back: {error}"
        return Result(name, Status.WRITTEN, code, said, outcome, entry.id)
    said = f"{name}: {failure.reason}, so it is as it was before"
    if job.terms.keeps_backup:
        said += f"; `specchat undo {back.id}` brings the change back"
    else:
        for each in (back, entry):
            store.forget(each)
    return Result(name, Status.UNDONE, code, said, outcome)
