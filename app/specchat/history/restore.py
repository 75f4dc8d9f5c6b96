"""A stored chat as the one that the screen shows and goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specchat.chat import Chat, Turn
from specchat.history.packing import PackedSteps
from specchat.history.records import ChatRecord, PartRecord, TurnRecord
from speculation.types import Finish

if TYPE_CHECKING:
    from specchat.session import Reply


def to_chat(record: ChatRecord) -> Chat:
    """The chat with its branches, its path and the figures of its replies; steps are unpacked when looked at."""
    latest: dict[int | None, int] = {turn.id: turn.latest for turn in record.turns if turn.latest is not None}
    if record.latest is not None:
        latest[None] = record.latest
    chat = Chat.restored(record.system, map(_turn, record.turns), latest, record.tip)
    chat.named = record.title if record.is_named else ""
    return chat


def _turn(record: TurnRecord) -> Turn:
    return Turn(
        id=record.id,
        parent=record.parent,
        role=record.role,
        text=record.text,
        tokens=record.tokens,
        attachments=record.attachments,
        reply=_reply(record, record.parts[-1]) if record.parts else None,
        is_pinned=record.is_pinned,
        is_dropped=record.is_dropped,
    )


def _reply(turn: TurnRecord, part: PartRecord) -> Reply:
    from specchat.remote.figures import ServerFigures
    from specchat.session import Reply  # which loads the engine: lists and searches do without

    return Reply(
        text=turn.text,
        finish=None if part.finish is None else Finish(part.finish),
        seed=0 if part.seed is None else part.seed,
        totals=part.totals,
        steps=PackedSteps(part.steps),
        prompt_tokens=part.prompt_tokens,
        reused_tokens=part.reused_tokens,
        read_tokens=part.read_tokens,
        read_s=part.read_s,
        first_token_s=part.first_token_s,
        plain_step_s=part.plain_step_s,
        server=ServerFigures(prompt_tokens=part.prompt_tokens or None) if part.is_of_server else None,
        exact=all(each.is_exact for each in turn.parts),
    )
