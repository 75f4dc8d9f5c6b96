"""Figures of replies by hand, and chats that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specchat.attachments import Attachment
from specchat.conversation import Role
from specchat.history.packing import pack_steps
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.provenance import Span
from specchat.statistics.figures import Cell, Counts, ReplyFigures, Work
from speculation.stats import totals
from speculation.types import PLAIN, Step

PLAIN_S = 0.1  # seconds of a plain step in all of these


def cell(
    steps: int, tokens: int, seconds: float, guesser: str = "draft", work: Work = Work.CODE, examined: int = 0
) -> Cell:
    return Cell(work, guesser, Counts(steps, tokens, examined or tokens, max(0, tokens - steps), seconds))


def plain(steps: int, work: Work = Work.CODE) -> Cell:
    """Plain steps at their usual price."""
    return Cell(work, PLAIN, Counts(steps, steps, 0, 0, steps * PLAIN_S))


def reply(
    number: int,
    *cells: Cell,
    guess: str = "auto",
    draft: str | None = "small",
    temperature: float | None = 0.7,
    ended: float = 1e9,
    model: str = "big",
    plain_step_s: float | None = PLAIN_S,
) -> ReplyFigures:
    return ReplyFigures(number, ended, model, draft, guess, temperature, plain_step_s, cells)


def step(guesser: str = PLAIN, accepted: int = 0, drafted: int = 0, seconds: float = PLAIN_S, token: int = 1) -> Step:
    examined = min(accepted + 1, drafted)
    return Step(guesser, drafted, examined, accepted, (token,) * (accepted + 1), 100, 0.0, seconds, 0.0)


def part(steps: Sequence[Step], about: About, ended: float = 1e9, spans: Iterable[Span] = ()) -> PartRecord:
    return PartRecord(
        about,
        ended - 1.0,
        ended,
        plain_step_s=PLAIN_S,
        totals=totals(steps),
        steps=pack_steps(steps),
        spans=tuple(spans),
    )


def chat(
    question: str,
    answer: str,
    *parts: PartRecord,
    tokens: Sequence[int] | None = None,
    attachments: Sequence[Attachment] = (),
) -> ChatRecord:
    """A chat of one question and its reply."""
    asked = TurnRecord(1, None, Role.USER, question, attachments=tuple(attachments), latest=2)
    said = TurnRecord(2, 1, Role.ASSISTANT, answer, None if tokens is None else tuple(tokens), parts=parts)
    changed = max((part.ended or 0.0 for part in parts), default=0.0)
    return ChatRecord(title=question[:20], changed=changed, latest=1, tip=2, turns=(asked, said))
