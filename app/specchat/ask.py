"""`specchat ask`: one question, the reply on stdout, the figures on stderr."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specchat.attachments import Attachment, read_attachment, text_of, with_attachments
from specchat.console import INTERRUPTED, ReadingBar, figures, on_interrupt, printable, say
from specchat.context_policy import CUT, Policy
from specchat.conversation import Message, Role
from specchat.errors import InputRefused
from specchat.fitting import fit_messages
from specchat.opening import close_session, open_session
from specchat.session import ChatSession, Reading, Reply, Wrote
from speculation.types import PLAIN, Finish


def ask(args: Namespace) -> int:
    """Answer once. Returns the exit code."""
    question = compose(args.prompt, [Path(name) for name in args.file], read_stdin())
    session = open_session(args)
    try:
        reply = _answer(session, question, shown=not args.json)
        for notice in session.notices:
            say(f"note: {notice}")
        if args.json:
            json.dump(as_json(session, reply), sys.stdout, ensure_ascii=False)
            print()
        elif not args.quiet:
            say(figures(reply))
        if reply.finish is Finish.CONTEXT:
            raise InputRefused(f"{CUT}; ask for less, attach less or use a larger context (--ctx)")
        return INTERRUPTED if reply.finish is None else 0
    finally:
        close_session(session)


def read_stdin() -> bytes | None:
    """What was piped in; None for a terminal or an empty pipe."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    return sys.stdin.buffer.read() or None


def compose(prompt: str | None, files: Sequence[Path], piped: bytes | None) -> str:
    """The message: the prompt, then each attachment under its name. Raises InputRefused."""
    attachments = [read_attachment(path) for path in files]
    if piped is not None:
        text = text_of(piped, "standard input")
        if prompt is None:
            prompt = text
        else:
            attachments.append(Attachment("standard input", text))
    if prompt is None or not prompt.strip():
        raise InputRefused('nothing to ask: give a prompt, as in `specchat ask "why is the sky blue"`, or pipe one in')
    return with_attachments(prompt, attachments)


def as_json(session: ChatSession, reply: Reply) -> dict[str, Any]:
    """The reply in the shape specchat.ask/1."""
    totals, engines = reply.totals, session.engines
    sources: dict[str, int] = {}
    for step in reply.steps:
        if step.accepted and step.guesser != PLAIN:
            source = step.guesser if step.source is None else "prompt" if step.source < reply.prompt_tokens else "reply"
            sources[source] = sources.get(source, 0) + step.accepted
    speed_up = reply.speed_up
    return {
        "schema": "specchat.ask/1",
        "model": engines.target.weights.name,
        "draft": None if engines.draft is None else engines.draft.weights.name,
        "text": reply.text,
        "finish": "interrupted" if reply.finish is None else str(reply.finish),
        "seed": reply.seed,
        "usage": {
            "prompt_tokens": reply.prompt_tokens,
            "cached_tokens": reply.reused_tokens,
            "output_tokens": totals.emitted,
        },
        "seconds": {
            "load": round(engines.load_s, 4),
            "prefill": round(reply.read_s, 4),
            "first_token": None if reply.first_token_s is None else round(reply.first_token_s, 4),
            "decode": round(totals.seconds, 4),
        },
        "speculation": {
            "guesser": str(session.guess),
            "rule": session.settings.rule,
            "steps": totals.steps,
            "drafted": totals.drafted,
            "checked": totals.examined,
            "accepted": totals.accepted,
            "tokens_per_step": _rounded(totals.tokens_per_step),
            "hit_rate": _rounded(totals.alpha),
            "free_share": _rounded(totals.accepted / totals.emitted if totals.emitted else None),
            "accepted_by_source": sources,
            "speedup": None
            if speed_up is None or reply.plain_step_s is None
            else {
                "value": round(speed_up, 3),
                "kind": "estimated",
                "plain_ms_per_token": round(reply.plain_step_s * 1000, 3),
            },
        },
    }


def _answer(session: ChatSession, question: str, *, shown: bool) -> Reply:
    messages = [*session.messages, Message(Role.USER, question)]
    fit_messages(session.engines, messages, Policy.STOP)  # which says more than the engine about what is too large
    clean = printable if sys.stdout.isatty() else str
    with ReadingBar() as bar, on_interrupt(session.stop):
        for event in session.reply(question):
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


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
