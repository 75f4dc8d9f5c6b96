"""`specchat rewrite --dry-run`: which files, how long they are, and what rewriting them would take."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from specchat.attachments import label
from specchat.dialogue import Dialogue
from specchat.errors import Refusal
from specchat.opening import close_session, open_session
from specchat.repositories import is_spec
from specchat.rewrite.forecast import forecast, told
from specchat.rewrite.inputs import Job
from specchat.rewrite.long import rewriting_of
from specchat.rewrite.one_file import failed
from specchat.rewrite.part import Part, whole
from specchat.rewrite.results import SCHEMA, Result, Status, exit_code
from specchat.rewrite.source import SourceFile, joined
from specchat.rewrite.telling import tell, tell_end
from specchat.shelf import Shelf, is_path

_TOKEN_CHARACTERS = 3.5  # of most texts, where no vocabulary is at hand


def dry_run(args: Namespace, job: Job, piped: bytes) -> int:
    """Print the plan. A model that is here is loaded for its vocabulary and prices, but writes nothing."""
    session = open_session(args) if job.names and _is_here(args) else None
    results: list[Result] = []
    try:
        for name in job.names:
            try:
                source = job.read(name, piped)
                parts = job.where.parts(source) or [whole(source)]
                _tell_plan(_plan(session, job, source, parts), job)
                results.append(Result(source.name, Status.PLANNED, 0))
            except Refusal as error:
                results.append(failed(label(name), error))
                tell(results[-1], job, session)
    finally:
        if session is not None:
            close_session(session)
    tell_end(results, job)
    return exit_code(results)


def _plan(session: Dialogue | None, job: Job, source: SourceFile, parts: Sequence[Part]) -> dict[str, Any]:
    """The plan of one file. Raises InputRefused where it does not fit the context."""
    lines = sum(part.end - part.start for part in parts)
    found: dict[str, Any] = {"schema": SCHEMA, "type": "plan", "path": source.name, "encoding": source.encoding}
    found |= {"lines": lines, "tokens": None, "context_tokens": None, "exact": session is not None}
    if session is None:
        texts = [text for part in parts for text in source.texts[part.start : part.end]]
        found["tokens"] = round(len(joined(texts)) / _TOKEN_CHARACTERS)
        return found
    rewriting = rewriting_of(session, source, job.instruction, parts, job.terms.guard, chunks=job.chunks)
    found |= {"tokens": rewriting.file_tokens, "context_tokens": rewriting.needed_tokens, "chunks": rewriting.chunks}
    if (expected := forecast(session, rewriting)) is not None:
        found["seconds"] = {"unchanged": round(expected.unchanged_s, 2), "changed": round(expected.changed_s, 2)}
    return found


def _tell_plan(plan: dict[str, Any], job: Job) -> None:
    if job.as_json:
        print(json.dumps(plan, ensure_ascii=False))
        return
    about = "" if plan["exact"] else "about "
    text = f"{plan['path']}: {plan['encoding']}, {plan['lines']} lines, {about}{plan['tokens']} tokens"
    if plan.get("chunks", 1) > 1:
        text += f" in {plan['chunks']} parts"
    if seconds := plan.get("seconds"):
        text += f"; about {told(seconds['unchanged'])} if little changes, {told(seconds['changed'])} if all of it does"
    print(text)


def _is_here(args: Namespace) -> bool:
    """Whether the model can be loaded without fetching anything; a server is not asked for a plan."""
    if args.endpoint is not None:
        return False
    shelf = Shelf()
    target = args.model or shelf.catalogue.default_target
    if is_path(target):
        return os.path.exists(os.path.expanduser(target))
    return not is_spec(target) and shelf.store.has(shelf.catalogue.find(target))
