"""One chat on its way into the store: what the writing thread knows of it. Two processes may write the same chat.

What another process wrote stays: a turn whose id is taken gets another, and becomes a branch. What another process
removed comes back when something is added below it.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specchat.history import rows
from specchat.history.packing import pack_steps
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.history.spans import with_turns
from specchat.provenance import Span
from speculation.types import Step


@dataclass(slots=True)
class _Place:
    """Where a turn stands in the store."""

    row: int  # never given to another turn
    id: int


@dataclass(slots=True)
class _Part:
    """A reply that is being written."""

    begun: PartRecord
    number: int
    pieces: int = 0


class Scribe:
    """Every method but `state` works inside a transaction of the caller, which may fail: then `restore` the state."""

    def __init__(self, chat: ChatRecord | None) -> None:
        """`chat`: as it was loaded; None: a new one."""
        self.chat_id = None if chat is None else chat.id
        self._facts = ChatRecord(key=secrets.token_hex(16)) if chat is None else replace(chat, turns=())
        self._known: dict[int, TurnRecord] = {} if chat is None else {turn.id: turn for turn in chat.turns}
        self._places: dict[int, _Place] = {}
        self._parts: dict[int, _Part] = {}
        self._unadopted = list(self._known)  # loaded, and not yet found in the store

    @property
    def key(self) -> str:
        """What the chat is called in every store."""
        return self._facts.key

    @property
    def state(self) -> tuple[Any, ...]:
        """What `restore` brings back."""
        parts = {turn: replace(part) for turn, part in self._parts.items()}
        return self.chat_id, self._facts, dict(self._known), dict(self._places), parts, self._unadopted

    def restore(self, state: tuple[Any, ...]) -> None:
        """As if nothing had been done since."""
        self.chat_id, self._facts, self._known, self._places, self._parts, self._unadopted = state

    def move(self) -> None:
        """The store is another one now, which knows nothing of this chat."""
        self.chat_id, self._places, self._unadopted = None, {}, []

    def save(
        self, connection: sqlite3.Connection, facts: ChatRecord, changed: Sequence[TurnRecord], removed: Sequence[int]
    ) -> None:
        """Take up changes of the chat; turns without their parts."""
        before, self._facts = self._known, replace(facts, key=self._facts.key)
        parts = {turn.id: before[turn.id].parts for turn in changed if turn.id in before}
        self._known = {**before, **{turn.id: replace(turn, parts=parts.get(turn.id, ())) for turn in changed}}
        chat_id = self._chat(connection)
        for turn in changed:
            self._placed(connection, turn.id)
        for turn in changed:  # now that all of them have their ids
            row = self._places[turn.id].row
            if turn.id not in before or _are_marks(before[turn.id], turn):
                rows.update_marks(connection, row, self._stored(turn))
            else:
                rows.update_turn(connection, row, self._stored(turn))
        for turn_id in sorted(removed, reverse=True):
            self._remove(connection, chat_id, turn_id)
        stored = replace(facts, latest=self._id(facts.latest), tip=self._id(facts.tip))
        rows.update_chat(connection, chat_id, stored)
        if not (self._known or facts.is_named or facts.is_pinned):  # the first question was taken back
            empty = "NOT EXISTS (SELECT 1 FROM turns WHERE chat = chats.id)"
            connection.execute(f"DELETE FROM chats WHERE id = ? AND {empty}", (chat_id,))

    def begin(self, connection: sqlite3.Connection, turn_id: int, about: About, now: float) -> None:
        """A reply is being written, or goes on."""
        if turn_id not in self._known:  # taken back
            return
        row = self._placed(connection, turn_id).row
        number = connection.execute("SELECT count(*) FROM replies WHERE turn = ?", (row,)).fetchone()[0]
        self._parts[turn_id] = _Part(PartRecord(about, begun=now), number)
        rows.put_part(connection, row, number, self._parts[turn_id].begun)

    def write(
        self, connection: sqlite3.Connection, turn_id: int, text: str, step: Step | None, spans: Sequence[Span]
    ) -> None:
        """The next piece of a reply."""
        if turn_id not in self._parts:
            return
        packed = None if step is None else pack_steps((step,))
        try:
            self._add_piece(connection, turn_id, text, packed, spans)
        except sqlite3.IntegrityError:  # another process has deleted the chat
            begun = self._parts[turn_id].begun
            self.begin(connection, turn_id, begun.about, begun.begun)
            self._add_piece(connection, turn_id, text, packed, spans)

    def end(self, connection: sqlite3.Connection, turn: TurnRecord, part: PartRecord, steps: Sequence[Step]) -> None:
        """A reply is finished; the turn has its whole text."""
        if turn.id not in self._parts:
            return
        chat_id = self._chat(connection)
        row = self._placed(connection, turn.id).row
        begun = self._parts.pop(turn.id)
        rows.update_turn(connection, row, self._stored(turn))
        spans = with_turns(part.spans, self._id)
        part = replace(part, about=begun.begun.about, begun=begun.begun.begun, steps=pack_steps(steps), spans=spans)
        rows.put_part(connection, row, begun.number, part)
        self._known[turn.id] = replace(turn, parts=(*self._known[turn.id].parts[: begun.number], part))
        connection.execute("UPDATE chats SET changed = ? WHERE id = ?", (part.ended, chat_id))

    def _add_piece(
        self, connection: sqlite3.Connection, turn_id: int, text: str, packed: bytes | None, spans: Sequence[Span]
    ) -> None:
        part, row = self._parts[turn_id], self._placed(connection, turn_id).row
        rows.insert_piece(connection, row, part.number, part.pieces, text, packed, with_turns(spans, self._id))
        part.pieces += 1

    def _chat(self, connection: sqlite3.Connection) -> int:
        """The id of the chat, which is stored if it is not, or no longer."""
        if self._unadopted:
            self._adopt(connection, {turn_id: turn_id for turn_id in self._unadopted})
            self._unadopted = []
        if connection.execute("SELECT 1 FROM chats WHERE id = ?", (self.chat_id,)).fetchone():
            assert self.chat_id is not None
            return self.chat_id
        found = connection.execute("SELECT id FROM chats WHERE key = ?", (self._facts.key,)).fetchone()
        stored, self._places = {turn_id: place.id for turn_id, place in self._places.items()}, {}
        if found is not None:  # deleted and put back
            self.chat_id = found[0]
            self._adopt(connection, stored)
        else:
            self.chat_id = rows.insert_chat(connection, replace(self._facts, latest=None, tip=None))
        for turn_id in sorted(self._known):
            place = self._places.get(turn_id) or self._placed(connection, turn_id)
            for number, part in enumerate(self._known[turn_id].parts):
                rows.put_part(connection, place.row, number, part)
        assert self.chat_id is not None
        return self.chat_id

    def _adopt(self, connection: sqlite3.Connection, stored: Mapping[int, int]) -> None:
        """Find turns by the ids that they have in the store."""
        rows_by_id = dict(connection.execute("SELECT id, row FROM turns WHERE chat = ?", (self.chat_id,)))
        self._places = {
            turn_id: _Place(rows_by_id[stored_id], stored_id)
            for turn_id, stored_id in stored.items()
            if stored_id in rows_by_id
        }

    def _placed(self, connection: sqlite3.Connection, turn_id: int) -> _Place:
        """Where a turn stands, which is stored if it is not, or no longer."""
        if (place := self._found(connection, turn_id)) is not None:
            return place
        chat_id = self._chat(connection)
        if (place := self._found(connection, turn_id)) is not None:  # it came back with the chat
            return place
        turn = self._known[turn_id]
        parent = None if turn.parent is None else self._placed(connection, turn.parent).id
        highest = connection.execute("SELECT max(id) FROM turns WHERE chat = ?", (chat_id,)).fetchone()[0] or 0
        taken = connection.execute("SELECT 1 FROM turns WHERE chat = ? AND id = ?", (chat_id, turn_id)).fetchone()
        stored_id = turn_id if not taken and turn_id > (parent or 0) else highest + 1
        # Its answers are not there yet; `save` and those who add them say which one is shown.
        row = rows.insert_turn(connection, chat_id, replace(turn, id=stored_id, parent=parent, latest=None))
        self._places[turn_id] = _Place(row, stored_id)
        return self._places[turn_id]

    def _found(self, connection: sqlite3.Connection, turn_id: int) -> _Place | None:
        place = self._places.get(turn_id)
        row = None if place is None else place.row
        return place if connection.execute("SELECT 1 FROM turns WHERE row = ?", (row,)).fetchone() else None

    def _remove(self, connection: sqlite3.Connection, chat_id: int, turn_id: int) -> None:
        """Remove a turn unless another process has added something below it."""
        self._known.pop(turn_id, None)
        self._parts.pop(turn_id, None)
        place = self._places.pop(turn_id, None)
        if place is not None:
            below = "SELECT 1 FROM turns WHERE chat = ? AND parent = ?"
            connection.execute(
                f"DELETE FROM turns WHERE row = ? AND NOT EXISTS ({below})", (place.row, chat_id, place.id)
            )

    def _stored(self, turn: TurnRecord) -> TurnRecord:
        """A turn as the store calls it and its answers."""
        return replace(turn, id=self._places[turn.id].id, latest=self._id(turn.latest))

    def _id(self, turn_id: int | None) -> int | None:
        place = None if turn_id is None else self._places.get(turn_id)
        return None if place is None else place.id


def _are_marks(before: TurnRecord, turn: TurnRecord) -> bool:
    """Whether nothing changed but what `rows.update_marks` writes."""
    marks = replace(before, latest=turn.latest, is_pinned=turn.is_pinned, is_dropped=turn.is_dropped)
    return replace(marks, parts=()) == turn
