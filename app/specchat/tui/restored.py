"""A stored chat on its way to the screen: what is shown beside its words, as when it was written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from specchat.chat import Chat, Turn
from specchat.exactness import INEXACT_RULES
from specchat.history.telling import moment
from specchat.tui.notes import Shown, reply_figures

if TYPE_CHECKING:
    from specchat.history.records import ChatRecord

UNFINISHED = "not finished: specchat ended while it was written"


@dataclass(frozen=True, slots=True)
class Opened:
    """A chat that was loaded."""

    chat: Chat
    record: ChatRecord
    shown: Mapping[int, Shown]  # by the id of the turn


def opened(record: ChatRecord, today: datetime) -> Opened:
    """The chat of a record. Takes long for a long one, and loads the engine's classes: not for the screen's thread."""
    from specchat.history.restore import to_chat

    chat, titles = to_chat(record), model_titles()
    replies = {turn.id: turn.reply for turn in chat.turns}
    shown = {}
    for turn in record.turns:
        one = Shown(_when(turn.created, today))
        if turn.parts:
            model, reply = turn.parts[-1].about.model, replies[turn.id]
            one.who, one.spans, one.continued = titles.get(model, model), turn.spans, len(turn.parts) > 1
            one.took = reply_figures(reply) if reply is not None and turn.is_finished else [(0, UNFINISHED)]
        shown[turn.id] = one
    return Opened(chat, record, shown)


def record_of(chat: Chat, shown: Mapping[Turn, Shown]) -> ChatRecord:
    """A chat that is not stored, as if it were, to be exported."""
    from specchat.history.keeping import part_of
    from specchat.history.packing import pack_steps
    from specchat.history.records import About, ChatRecord, TurnRecord

    turns, latest = [], chat.latest
    for turn in chat.turns:
        beside, parts = shown.get(turn, Shown("")), []
        if turn.reply is not None:
            part = part_of(turn.reply, beside.spans, time.time())
            about = About(beside.who, rule="" if turn.reply.exact else INEXACT_RULES[0])
            parts = [replace(part, about=about, steps=pack_steps(turn.reply.steps))]
        turns.append(
            TurnRecord(
                turn.id, turn.parent, turn.role, turn.text, turn.tokens, turn.attachments,
                latest=latest.get(turn.id), is_pinned=turn.is_pinned, is_dropped=turn.is_dropped, parts=tuple(parts),
            )
        )  # fmt: skip
    tip = None if chat.tip is None else chat.tip.id
    return ChatRecord(
        title=chat.title, is_named=bool(chat.named), system=chat.system, latest=latest.get(None), tip=tip,
        turns=tuple(turns),
    )  # fmt: skip


def model_titles() -> dict[str, str]:
    """What the catalogue calls the models whose files are named so; empty where it cannot be read."""
    from specchat.catalogue import CatalogueError
    from specchat.shelf import Shelf

    with suppress(CatalogueError):
        models = Shelf(lambda _: None).catalogue.models
        names = {model.file.name.removesuffix(".gguf"): model.title for model in models}
        return {model.id: model.title for model in models} | names
    return {}


def _when(seconds: float, today: datetime) -> str:
    """The time of a message, with its day unless that is today."""
    text = moment(seconds)
    return text.removeprefix(f"{today:%Y-%m-%d} ") if seconds else ""
