"""What is said about stored chats and their messages, the same in every form."""

from __future__ import annotations

from datetime import datetime

from specchat.conversation import Role
from specchat.exactness import INEXACT
from specchat.history.records import TurnRecord
from speculation.stats import Totals
from speculation.types import Finish

_ENDS = {None: "stopped", Finish.LENGTH: "cut at the limit", Finish.CONTEXT: "the context was full"}


def who(turn: TurnRecord) -> str:
    """Who said it."""
    if turn.role is Role.USER:
        return "You"
    return (turn.parts[-1].about.model if turn.parts else "") or "Reply"


def figures(turn: TurnRecord) -> str:
    """One line that says what a reply took; empty where that is not known."""
    if not turn.parts:
        return ""
    if not turn.is_finished:
        return "not finished"
    last, counted = turn.parts[-1], Totals()
    for part in turn.parts:
        counted.emitted += part.totals.emitted
        counted.steps += part.totals.steps
        counted.accepted += part.totals.accepted
        counted.examined += part.totals.examined
        counted.verify_s += part.totals.seconds
    parts = [_ENDS.get(None if last.finish is None else Finish(last.finish), "")]
    of_server = all(part.is_of_server for part in turn.parts)
    parts.append("tokens not reported" if of_server else f"{counted.emitted} tokens")
    parts.append("" if counted.tokens_per_s is None else f"{counted.tokens_per_s:.1f} tokens/s")
    parts.append("" if counted.tokens_per_step is None else f"{counted.tokens_per_step:.2f} tokens/step")
    parts.append("" if counted.alpha is None else f"accepted {counted.alpha:.0%}")
    parts.append("" if last.seed is None else f"seed {last.seed}")
    parts.append("" if all(part.is_exact for part in turn.parts) else INEXACT)
    return ", ".join(part for part in parts if part)


def moment(seconds: float) -> str:
    """A time on the user's clock; what no calendar has becomes a dash."""
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M") if seconds else "-"
    except (ValueError, OverflowError, OSError):
        return "-"
