"""Records to rows and back. Statements only; whoever calls holds the transaction."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from specchat.attachments import Attachment
from specchat.conversation import Role
from specchat.history.packing import NO_STEPS, pack_steps, pack_tokens, unpack_steps, unpack_tokens
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.history.spans import spans_as_json, spans_from_json
from specchat.provenance import Span, clipped
from speculation.stats import Totals, totals

_CHAT = "key, created, changed, title, named, system, model, unsent, settings, pinned, latest, tip"
_TURN = "chat, id, parent, role, text, tokens, attachments, created, latest, pinned, dropped"
_PART = (
    "turn, part, model, draft, guess, rule, temperature, begun, ended, finish, seed, prompt_tokens, reused_tokens, "
    "read_tokens, read_s, first_token_s, plain_step_s, steps, emitted, drafted, examined, accepted, draft_s, verify_s, "
    "accept_s, plain_steps, plain_s, accepted_by, spans, packed"
)
_HALVES = re.compile("[\ud800-\udfff]")


class _Piece(NamedTuple):
    """What one step of a reply wrote."""

    text: str
    packed: bytes | None
    spans: str | None


def insert_chat(connection: sqlite3.Connection, chat: ChatRecord) -> int:
    """Store a chat with all its turns; its new id."""
    chat_id = _insert(connection, "chats", _CHAT, chat_values(chat))
    for turn in chat.turns:
        row = insert_turn(connection, chat_id, turn)
        for number, part in enumerate(turn.parts):
            put_part(connection, row, number, part)
    return chat_id


def chat_values(chat: ChatRecord) -> Sequence[Any]:
    """The columns of a chat, in their order."""
    settings = json.dumps(dict(chat.settings), ensure_ascii=True)
    return (
        chat.key or secrets.token_hex(16), chat.created, chat.changed, chat.title, chat.is_named, chat.system,
        chat.model, chat.unsent, settings, chat.is_pinned, chat.latest, chat.tip,
    )  # fmt: skip


def insert_turn(connection: sqlite3.Connection, chat_id: int, turn: TurnRecord) -> int:
    """Store a turn without its parts; its row."""
    return _insert(connection, "turns", _TURN, (chat_id, turn.id, turn.parent, str(turn.role), *_said(turn)))


def update_turn(connection: sqlite3.Connection, row: int, turn: TurnRecord) -> None:
    """Store what became of a turn: all but its place."""
    columns = _TURN.split(", ")[4:]
    changes = ", ".join(f"{column} = ?" for column in columns)
    connection.execute(f"UPDATE turns SET {changes} WHERE row = ?", (*map(storable, _said(turn)), row))


def update_marks(connection: sqlite3.Connection, row: int, turn: TurnRecord) -> None:
    """Store which answer of a turn is shown, and whether it stays in the prompt; text and files may be long."""
    connection.execute(
        "UPDATE turns SET latest = ?, pinned = ?, dropped = ? WHERE row = ?",
        (turn.latest, turn.is_pinned, turn.is_dropped, row),
    )


def update_chat(connection: sqlite3.Connection, chat_id: int, chat: ChatRecord) -> None:
    """Store what became of a chat, its turns left out."""
    columns = _CHAT.split(", ")[1:]
    changes = ", ".join(f"{column} = ?" for column in columns)
    values = map(storable, chat_values(chat)[1:])
    connection.execute(f"UPDATE chats SET {changes} WHERE id = ?", (*values, chat_id))


def put_part(connection: sqlite3.Connection, row: int, number: int, part: PartRecord) -> None:
    """Store what was written of a reply in one go, in place of what was known of it before."""
    about, counted = part.about, part.totals
    spans = spans_as_json(part.spans)
    values = (
        row, number, about.model, about.draft, about.guess, about.rule, about.temperature, part.begun, part.ended,
        part.finish, _signed(part.seed), part.prompt_tokens, part.reused_tokens, part.read_tokens, part.read_s,
        part.first_token_s, part.plain_step_s, counted.steps, counted.emitted, counted.drafted, counted.examined,
        counted.accepted, counted.draft_s, counted.verify_s, counted.accept_s, counted.plain_steps, counted.plain_s,
        json.dumps(counted.accepted_by), None if spans is None else json.dumps(spans, separators=(",", ":")),
        part.steps,
    )  # fmt: skip
    connection.execute("DELETE FROM replies WHERE turn = ? AND part = ?", (row, number))  # and its pieces with it
    _insert(connection, "replies", _PART, values)


def insert_piece(
    connection: sqlite3.Connection,
    row: int,
    part: int,
    number: int,
    text: str,
    packed: bytes | None,
    spans: Iterable[Span],
) -> None:
    """Store what one step of a reply wrote."""
    found = spans_as_json(spans)
    connection.execute(
        "INSERT INTO pieces (turn, part, number, text, packed, spans) VALUES (?, ?, ?, ?, ?, ?)",
        (row, part, number, storable(text), packed, None if found is None else json.dumps(found)),
    )


def read_chat(connection: sqlite3.Connection, chat_id: int) -> ChatRecord | None:
    """A chat with all its turns, what is being written included; None where there is none."""
    found = connection.execute(f"SELECT {_CHAT} FROM chats WHERE id = ?", (chat_id,)).fetchone()
    if found is None:
        return None
    key, created, changed, title, named, system, model, unsent, settings, pinned, latest, tip = found
    turns = _read_turns(connection, chat_id)
    return ChatRecord(
        chat_id, key, created, changed, title, bool(named), system, model, unsent, json.loads(settings), bool(pinned),
        latest, tip, turns,
    ).mended()  # fmt: skip


def _read_turns(connection: sqlite3.Connection, chat_id: int) -> tuple[TurnRecord, ...]:
    parts: dict[int, list[PartRecord]] = {}
    mine = "SELECT row FROM turns WHERE chat = ?"
    for found in connection.execute(
        f"SELECT {_PART} FROM replies WHERE turn IN ({mine}) ORDER BY turn, part", (chat_id,)
    ):
        parts.setdefault(found[0], []).append(_part(found))
    turns = {}
    for row, *found in connection.execute(f"SELECT row, {_TURN} FROM turns WHERE chat = ? ORDER BY id", (chat_id,)):
        turns[row] = _turn(found, parts.get(row, []))
    pieces = f"SELECT turn, text, packed, spans FROM pieces WHERE turn IN ({mine}) ORDER BY turn, part, number"
    texts: dict[int, list[_Piece]] = {}
    for row, *piece in connection.execute(pieces, (chat_id,)):
        texts.setdefault(row, []).append(_Piece(*piece))
    return tuple(_grown(turn, texts[row]) if row in texts else turn for row, turn in turns.items())


def fold_pieces(connection: sqlite3.Connection) -> None:
    """Put what stands in pieces into its turns, as a process that died had no time to.

    A chat reads the same before and after, so it does no harm when the writer lives.
    """
    for row, chat_id, turn_id in connection.execute(
        "SELECT row, chat, id FROM turns WHERE row IN (SELECT turn FROM pieces)"
    ).fetchall():
        turn = next(each for each in _read_turns(connection, chat_id) if each.id == turn_id)
        update_turn(connection, row, turn)
        put_part(connection, row, len(turn.parts) - 1, turn.parts[-1])


def _grown(turn: TurnRecord, pieces: Iterable[_Piece]) -> TurnRecord:
    """A reply with the pieces that its last part was written in."""
    text, last = turn.text, turn.parts[-1]
    steps, spans = list(unpack_steps(last.steps)), list(last.spans)
    for piece in pieces:
        text += piece.text
        steps.extend(unpack_steps(piece.packed or NO_STEPS))
        spans.extend(spans_from_json(json.loads(piece.spans)) if piece.spans else ())
    # Of the last characters some may have been held back.
    part = replace(last, steps=pack_steps(steps), totals=totals(steps), spans=tuple(clipped(spans, len(text))))
    # Without a vocabulary nobody can say whether the tokens spell the text.
    return replace(turn, text=text, tokens=None, parts=(*turn.parts[:-1], part))


def _turn(found: Sequence[Any], parts: Sequence[PartRecord]) -> TurnRecord:
    _, turn_id, parent, role, text, tokens, attachments, created, latest, pinned, dropped = found
    return TurnRecord(
        turn_id, parent, Role(role), text, None if tokens is None else unpack_tokens(tokens),
        tuple(Attachment(*each) for each in json.loads(attachments)) if attachments else (),
        created, latest, bool(pinned), bool(dropped), tuple(parts),
    )  # fmt: skip


def _part(found: Sequence[Any]) -> PartRecord:
    (
        _, _, model, draft, guess, rule, temperature, begun, ended, finish, seed, prompt_tokens, reused_tokens,
        read_tokens, read_s, first_token_s, plain_step_s, *counted, accepted_by, spans, packed,
    ) = found  # fmt: skip
    return PartRecord(
        About(model, draft, guess, rule, temperature), begun, ended, finish, None if seed is None else seed % 2**64,
        prompt_tokens, reused_tokens, read_tokens, read_s, first_token_s, plain_step_s,
        replace(Totals(*counted), accepted_by=json.loads(accepted_by)), packed,
        spans_from_json(json.loads(spans)) if spans else (),
    )  # fmt: skip


def _said(turn: TurnRecord) -> Sequence[Any]:
    tokens = None if turn.tokens is None else pack_tokens(turn.tokens)
    attachments = [[attachment.name, attachment.text] for attachment in turn.attachments]
    return (
        turn.text, tokens, json.dumps(attachments, ensure_ascii=False) if attachments else None, turn.created,
        turn.latest, turn.is_pinned, turn.is_dropped,
    )  # fmt: skip


def _insert(connection: sqlite3.Connection, table: str, columns: str, values: Sequence[Any]) -> int:
    marks = ", ".join("?" * len(values))
    row = connection.execute(
        f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(map(storable, values))
    ).lastrowid
    assert row is not None
    return row


def _signed(seed: int | None) -> int | None:
    """A seed as the integers of SQLite, which have a sign."""
    return None if seed is None else (seed + 2**63) % 2**64 - 2**63


def storable(value: Any) -> Any:
    """A value as SQLite takes it: halves of surrogate pairs, which UTF-8 has not, become U+FFFD."""
    return _HALVES.sub("\ufffd", value) if isinstance(value, str) and not value.isascii() else value
