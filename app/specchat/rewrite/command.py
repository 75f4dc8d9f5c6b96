"""`specchat rewrite`: files in, changes out; nothing is written that was not agreed to."""

from __future__ import annotations

from argparse import Namespace

from specchat.attachments import label
from specchat.console import say
from specchat.errors import Refusal
from specchat.opening import close_session, open_session
from specchat.rewrite.dry_run import dry_run
from specchat.rewrite.inputs import Job, Mode, job_of, read_piped
from specchat.rewrite.one_file import OneFile, failed
from specchat.rewrite.results import Result, Status, exit_code
from specchat.rewrite.telling import tell, tell_end
from specchat.rewrite.undo import UndoStore, undo_folder
from specchat.session import ChatSession


def rewrite(args: Namespace) -> int:
    """Rewrite files as the arguments say. Returns the exit code."""
    job = job_of(args)
    piped = read_piped() if "-" in job.names else b""
    if job.mode is Mode.DRY_RUN:
        return dry_run(args, job, piped)
    if job.names and len(early := _unreadable(job, piped)) == len(job.names):  # no model is loaded for nothing
        for result in early:
            tell(result, job, None)
        return _ended(early, job)
    if not job.names:
        return _ended([], job)
    session = open_session(args)
    try:
        return _ended(_rewritten(job, session, piped), job)
    finally:
        close_session(session)


def _rewritten(job: Job, session: ChatSession, piped: bytes) -> list[Result]:
    """What became of each file; a failure of one does not stop the others."""
    store = UndoStore(undo_folder())
    one_file = OneFile(job, session, store, piped)
    results: list[Result] = []
    for name in job.names:
        result = one_file.rewrite(name)
        results.append(result)
        tell(result, job, session)
        if result.status is Status.INTERRUPTED or one_file.enough:
            break
    for notice in session.notices:
        say(f"note: {notice}")
    if any(result.undo_id for result in results):
        store.prune()
    return results


def _unreadable(job: Job, piped: bytes) -> list[Result]:
    found = []
    for name in job.names:
        try:
            job.read(name, piped)
        except Refusal as error:
            found.append(failed(label(name), error))
    return found


def _ended(results: list[Result], job: Job) -> int:
    tell_end(results, job)
    return exit_code(results)
