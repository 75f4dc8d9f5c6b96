"""`specchat ask`: one question, the reply on stdout, the figures on stderr."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from specchat.attachments import Attachment, read_attachment, text_of
from specchat.console import ReadingBar, figures, on_interrupt, printable, say
from specchat.context_policy import CUT, Policy
from specchat.conversation import Role
from specchat.dialogue import Dialogue
from specchat.errors import InputRefused
from specchat.exactness import INEXACT
from specchat.exit_codes import ExitCode
from specchat.history.keeper import Keeper
from specchat.history.wanted import kept_in
from specchat.opening import close_session, open_session
from specchat.remote.errors import RemoteError
from specchat.remote.figures import ServerFigures
from specchat.remote.telling import as_json as server_figures
from specchat.session import Reading, Reply, Wrote
from specchat.talk import Talk
from speculation.types import Finish


def ask(args: Namespace) -> int:
    """Answer once. Returns the exit code."""
    question, attachments = compose(args.prompt, [Path(name) for name in args.file], read_stdin())
    keeper = Keeper(kept_in(args), lambda text: say(f"note: {text}"))
    session = open_session(args)
    try:
        talk = Talk(session, keeper, sources=args.chosen.settings.guess.sources)
        talk.ask(question, attachments, Policy.STOP)  # which says more than the engine about what is too large
        try:
            reply = _answer(session, talk, shown=not args.json)
        except RemoteError as error:
            _tell_of_failure(session, str(error), as_json=args.json)
            raise
        for notice in [*session.notices, *([] if reply.exact else [INEXACT])]:
            say(f"note: {notice}")
        if args.json:
            json.dump(as_json(session, reply), sys.stdout, ensure_ascii=False)
            print()
        elif not args.quiet:
            say(figures(reply))
        if reply.finish is Finish.CONTEXT:
            raise InputRefused(f"{CUT}; ask for less, attach less or use a larger context (--ctx)")
        return ExitCode.INTERRUPTED if reply.finish is None else 0
    finally:
        keeper.finish()
        close_session(session)


def read_stdin() -> bytes | None:
    """What was piped in; None for a terminal or an empty pipe."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    return sys.stdin.buffer.read() or None


def compose(prompt: str | None, files: Sequence[Path], piped: bytes | None) -> tuple[str, list[Attachment]]:
    """The question and what is attached to it. Raises InputRefused."""
    attachments = [read_attachment(path) for path in files]
    if piped is not None:
        text = text_of(piped, "standard input")
        if prompt is None:
            prompt = text
        else:
            attachments.append(Attachment("standard input", text))
    if prompt is None or not prompt.strip():
        raise InputRefused('nothing to ask: give a prompt, as in `specchat ask "why is the sky blue"`, or pipe one in')
    return prompt, attachments


def as_json(session: Dialogue, reply: Reply) -> dict[str, Any]:
    """The reply in the shape specchat.ask/1."""
    if reply.server is not None:
        return _far_as_json(session, reply)
    totals = reply.totals
    speed_up = reply.speed_up
    return {
        "schema": "specchat.ask/1",
        "model": session.model.name,
        "draft": session.model.draft_name,
        "text": reply.text,
        "finish": "interrupted" if reply.finish is None else str(reply.finish),
        "seed": reply.seed,
        "usage": {
            "prompt_tokens": reply.prompt_tokens,
            "cached_tokens": reply.reused_tokens,
            "output_tokens": totals.emitted,
        },
        "seconds": {
            "load": round(session.model.load_s, 4),
            "prefill": round(reply.read_s, 4),
            "first_token": None if reply.first_token_s is None else round(reply.first_token_s, 4),
            "decode": round(totals.seconds, 4),
        },
        "speculation": {
            "guesser": str(session.guess),
            "rule": session.settings.rule,
            "exact": reply.exact,
            "steps": totals.steps,
            "drafted": totals.drafted,
            "checked": totals.examined,
            "accepted": totals.accepted,
            "tokens_per_step": _rounded(totals.tokens_per_step),
            "hit_rate": _rounded(totals.alpha),
            "free_share": _rounded(totals.accepted / totals.emitted if totals.emitted else None),
            "accepted_by_source": Counter(_sources(reply)),
            "speedup": None
            if speed_up is None or reply.plain_step_s is None
            else {
                "value": round(speed_up, 3),
                "kind": "estimated",
                "plain_ms_per_token": round(reply.plain_step_s * 1000, 3),
            },
        },
    }


def _sources(reply: Reply) -> Iterator[str]:
    """Where each accepted token is from: the prompt or the reply, or who proposed what is no copy."""
    for step in reply.steps:
        for at in map(step.source_of, range(step.accepted)):
            yield step.guesser if at is None else "prompt" if at < reply.prompt_tokens else "reply"


def _answer(session: Dialogue, talk: Talk, *, shown: bool) -> Reply:
    clean = printable if sys.stdout.isatty() else str
    with ReadingBar() as bar, on_interrupt(session.stop), closing(talk.answer()) as events:
        for event in events:
            if isinstance(event, Reading):
                bar.show(event)
            elif isinstance(event, Wrote):
                bar.stop()
                if shown and event.text:
                    sys.stdout.write(clean(event.text))
                    sys.stdout.flush()
            else:
                reply = event
    if shown and not reply.text.endswith("\n"):
        print(flush=True)
    return reply


def _far_as_json(session: Dialogue, reply: Reply) -> dict[str, Any]:
    """The same of a server, with null for what it does not report."""
    figures = reply.server or ServerFigures()
    return {
        "schema": "specchat.ask/1",
        "model": session.model.name,
        "draft": figures.draft_model,
        "endpoint": session.model.where,
        "text": reply.text,
        "finish": "interrupted" if reply.finish is None else str(reply.finish),
        "seed": reply.seed,
        "usage": {
            "prompt_tokens": figures.prompt_tokens,
            "cached_tokens": figures.cached_tokens,
            "output_tokens": figures.output_tokens,
        },
        "seconds": {
            "load": round(session.model.load_s, 4),
            "prefill": _rounded(figures.read_s),
            "first_token": _rounded(reply.first_token_s),
            "decode": _rounded(figures.write_s),
        },
        "speculation": server_figures([reply]),
    }


def _tell_of_failure(session: Dialogue, why: str, *, as_json: bool) -> None:
    """Print what came of a reply before a server broke off; its text is on the screen already unless it is JSON."""
    said = session.messages[-1] if session.messages else None
    text = said.text if said is not None and said.role is Role.ASSISTANT else ""
    if as_json:
        found = {"schema": "specchat.ask/1", "model": session.model.name, "endpoint": session.model.where}
        json.dump({**found, "text": text, "finish": "failed", "error": why}, sys.stdout, ensure_ascii=False)
        print()
    elif text and not text.endswith("\n"):
        print(flush=True)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
