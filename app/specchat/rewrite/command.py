"""`specchat rewrite`: files in, changes out; nothing is written that was not agreed to."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace

from specchat.attachments import label
from specchat.console import end_interrupts, printable, say
from specchat.dialogue import Dialogue
from specchat.errors import InputRefused, Refusal, UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import refused_folder, undo_folder, unfinished_folder
from specchat.opening import close_session, open_session
from specchat.rewrite.choosing import check_folder
from specchat.rewrite.dry_run import dry_run
from specchat.rewrite.inputs import Job, Mode, job_of, read_piped
from specchat.rewrite.one_file import OneFile, failed, kept
from specchat.rewrite.recipes import Recipe, load_recipes
from specchat.rewrite.refused import RefusedStore
from specchat.rewrite.results import Result, Status, exit_code
from specchat.rewrite.telling import tell, tell_end
from specchat.rewrite.undo import UndoStore
from specchat.rewrite.unfinished import UnfinishedStore
from specchat.rewrite.write import check_file


@end_interrupts()
def rewrite(args: Namespace) -> int:
    """Rewrite files as the arguments say. Returns the exit code."""
    if args.recipes:
        return list_recipes(as_json=args.json)
    check_folder()
    job = job_of(args)
    store, unfinished = UndoStore(undo_folder()), UnfinishedStore(unfinished_folder())
    refused = RefusedStore(refused_folder())
    store.prune()  # which settles first what a killed process left
    unfinished.prune()
    refused.prune()
    piped = read_piped() if "-" in job.names else b""
    if job.mode is Mode.DRY_RUN:
        return dry_run(args, job, piped)
    early = _without_model(job, store, unfinished, piped)
    if not job.names or (early and len(early) == len(job.names)):  # no model is loaded for nothing
        for result in early.values():
            tell(result, job, None)
        return _ended(list(early.values()), job)
    session = open_session(args)
    try:
        one_file = OneFile(job, session, store, unfinished, refused, piped)
        return _ended(_rewritten(job, session, one_file, early), job)
    finally:
        close_session(session)


def list_recipes(*, as_json: bool) -> int:
    """Print the recipes, with their variables. Returns the exit code."""
    recipes = load_recipes(lambda problem: say(f"note: {problem}"))
    width = max(len(recipe.name) for recipe in recipes)
    for recipe in recipes:
        if as_json:
            variables = {variable.name: variable.default for variable in recipe.variables}
            found = {"name": recipe.name, "description": recipe.description, "instruction": recipe.instruction}
            print(json.dumps({**found, "variables": variables}))
        else:
            print(printable(f"{recipe.name:<{width}}  {recipe.description}{_variables(recipe)}"))
    return 0


def _variables(recipe: Recipe) -> str:
    told = [
        f"{each.name}=..." if each.default is None else f"{each.name}={' '.join(each.default.split())!r}"
        for each in recipe.variables
    ]
    return f"; -p {' -p '.join(told)}" if told else ""


def _rewritten(job: Job, session: Dialogue, one_file: OneFile, early: dict[str, Result]) -> list[Result]:
    """What became of each file; a failure of one does not stop the others."""
    results: list[Result] = []
    for name in job.names:
        result = early.get(name) or one_file.rewrite(name)
        results.append(result)
        tell(result, job, session)
        if result.code == ExitCode.INTERRUPTED or one_file.enough:
            break
    for notice in session.notices:
        say(f"note: {notice}")
    return results


def _without_model(job: Job, store: UndoStore, unfinished: UnfinishedStore, piped: bytes) -> dict[str, Result]:
    """The files that need no model: those that cannot be read or written, and of several those with no part."""
    found: dict[str, Result] = {}
    for name in job.names:
        source = None
        try:
            partial = kept(job, unfinished, name)
            source = job.read(name, piped, None if partial is None else partial.encoding)
            if job.mode.writes and source.place is not None:
                check_file(source.place, source.data)
                store.check_room(source.place, source.data)
            job.where.parts(source)
            job.terms.guard.on(source)
        except UsageError:
            raise
        except Refusal as error:
            result = failed(label(name), error)
            # Of several it is no failure that one is a text in which nothing is meant.
            if source is not None and len(job.names) > 1 and isinstance(error, InputRefused):
                result = Result(source.name, Status.UNCHANGED, 0, result.said)
            found[name] = replace(result, path=name)
    return found


def _ended(results: list[Result], job: Job) -> int:
    tell_end(results, job)
    return exit_code(results)
