"""A chat that is kept: what changes in it, and the replies that are written, are handed to whoever writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specchat.chat import Chat, Turn
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.history.scribe import Scribe
from specchat.provenance import Span
from speculation.types import Step

if TYPE_CHECKING:  # which loads the engine
    from specchat.session import Reply


@dataclass(frozen=True, slots=True)
class Action:
    """Something to write."""

    run: Callable[[sqlite3.Connection], object]
    scribe: Scribe | None = None  # whose state changes with it
    is_synced: bool = True  # whether it must survive a power cut, not only the end of the process


class KeptChat:
    """A chat and what is stored of it. To be used in the thread that changes the chat."""

    def __init__(
        self,
        chat: Chat,
        scribe: Scribe,
        record: ChatRecord | None,
        do: Callable[[Action], None],
        clock: Callable[[], float],
    ) -> None:
        """`record` is what the chat was made from; `do` writes, later, in order."""
        self.chat = chat
        self._scribe = scribe
        self._do = do
        self._clock = clock
        self._facts = ChatRecord() if record is None else replace(record, turns=())
        self._saved = {} if record is None else {turn.id: replace(turn, parts=()) for turn in record.turns}
        self._writing: set[int] = set()

    @property
    def id(self) -> int | None:
        """The id in the store; None while nothing is stored."""
        return self._scribe.chat_id

    @property
    def key(self) -> str:
        """What the chat is called in every store."""
        return self._scribe.key

    def note(
        self,
        *,
        unsent: str | None = None,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        is_pinned: bool | None = None,
    ) -> None:
        """Keep what stands beside the messages: what is being typed, the model, settings as JSON has them, a pin."""
        facts = self._facts
        self._save(
            replace(
                facts,
                unsent=facts.unsent if unsent is None else unsent,
                model=facts.model if model is None else model,
                settings=facts.settings if settings is None else dict(settings),
                is_pinned=facts.is_pinned if is_pinned is None else is_pinned,
            )
        )

    def save(self) -> None:
        """Keep what has changed since the last time: messages, branches, system prompt, title. Nothing without any."""
        self._save(self._facts)

    def _save(self, noted: ChatRecord) -> None:
        now = self._clock()
        latest = self.chat.latest
        turns = {turn.id: self._record(turn, latest.get(turn.id), now) for turn in self.chat.turns}
        changed = [turn for turn in turns.values() if self._saved.get(turn.id) != turn]
        removed = [turn_id for turn_id in self._saved if turn_id not in turns]
        tip = self.chat.tip
        facts = replace(
            noted,
            created=noted.created or now,
            changed=now if removed or any(turn.id not in self._saved for turn in changed) else noted.changed,
            title=self.chat.title,
            is_named=bool(self.chat.named),
            system=self.chat.system,
            latest=latest.get(None),
            tip=None if tip is None else tip.id,
        )
        if not (changed or removed or (turns and facts != self._facts)):
            self._facts = noted
            return
        self._facts, self._saved = facts, turns
        self._writing -= set(removed)
        scribe = self._scribe
        self._do(Action(lambda connection: scribe.save(connection, facts, changed, removed), scribe))

    def begin_reply(self, turn: Turn, about: About) -> Writing:
        """A reply is going to be written, or to go on."""
        self.save()
        self._writing.add(turn.id)
        now, scribe, turn_id = self._clock(), self._scribe, turn.id
        self._do(Action(lambda connection: scribe.begin(connection, turn_id, about, now), scribe))
        return Writing(self, turn_id, self._do, scribe)

    def end_reply(self, turn: Turn, reply: Reply | None, spans: Iterable[Span]) -> None:
        """See `Writing.end`."""
        self._writing.discard(turn.id)
        now = self._clock()
        record = self._record(turn, self.chat.latest.get(turn.id), now)
        self._saved[turn.id] = record
        part = part_of(reply, spans, now)
        steps, scribe = () if reply is None else reply.steps, self._scribe
        self._do(Action(lambda connection: scribe.end(connection, record, part, steps), scribe))
        self._facts = replace(self._facts, changed=now)
        self.save()

    def _record(self, turn: Turn, latest: int | None, now: float) -> TurnRecord:
        saved = self._saved.get(turn.id)
        # What is being written goes its own way, piece by piece.
        text, tokens = (saved.text, saved.tokens) if saved and turn.id in self._writing else (turn.text, turn.tokens)
        return TurnRecord(
            id=turn.id,
            parent=turn.parent,
            role=turn.role,
            text=text,
            tokens=tokens,
            attachments=turn.attachments,
            created=now if saved is None else saved.created,
            latest=latest,
            is_pinned=turn.is_pinned,
            is_dropped=turn.is_dropped,
        )


def part_of(reply: Reply | None, spans: Iterable[Span], ended: float) -> PartRecord:
    """What a reply took, as it is stored, but for its steps and who wrote it; None: it went wrong."""
    part = PartRecord(ended=ended, spans=tuple(spans))
    if reply is None:
        return part
    return replace(
        part,
        finish=None if reply.finish is None else str(reply.finish),
        seed=reply.seed,
        prompt_tokens=reply.prompt_tokens,
        reused_tokens=reply.reused_tokens,
        read_tokens=reply.read_tokens,
        read_s=reply.read_s,
        first_token_s=reply.first_token_s,
        plain_step_s=reply.plain_step_s,
        totals=deepcopy(reply.totals),
    )


class Writing:
    """A reply that is being written."""

    def __init__(self, kept: KeptChat, turn_id: int, do: Callable[[Action], None], scribe: Scribe) -> None:
        self._kept = kept
        self._turn_id = turn_id
        self._do = do
        self._scribe = scribe

    def step(self, text: str, step: Step | None, spans: Sequence[Span] = ()) -> None:
        """Keep what a step wrote, and who proposed it. Callable from any thread; takes microseconds."""
        turn_id, scribe = self._turn_id, self._scribe
        self._do(
            Action(lambda connection: scribe.write(connection, turn_id, text, step, spans), scribe, is_synced=False)
        )

    def end(self, turn: Turn, reply: Reply | None, spans: Iterable[Span] = ()) -> None:
        """Keep the turn as it is now, with figures and provenance; None: it went wrong. In the chat's thread."""
        self._kept.end_reply(turn, reply, spans)
