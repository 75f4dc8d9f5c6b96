"""A chat as JSON: everything that the store knows of it, to be taken elsewhere and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from specchat.attachments import Attachment
from specchat.conversation import Role
from specchat.history.packing import pack_steps, unpack_steps
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.history.spans import spans_as_json, spans_from_json
from speculation.stats import Totals
from speculation.types import Finish, Step

SCHEMA = "specchat.chat/1"

_STEP = tuple(field.name for field in fields(Step))
_SINGLES = frozenset(("draft_s", "verify_s", "accept_s", "p_rejected", "p_chosen"))  # kept as 32-bit floats
_MOST = 2**63  # what SQLite calls an integer is smaller


def to_json(chat: ChatRecord) -> dict[str, Any]:
    """The chat as values that JSON has."""
    facts = {name: getattr(chat, name) for name in _names(ChatRecord) if name not in ("id", "turns")}
    return {"schema": SCHEMA, **facts, "turns": [_turn_to_json(turn) for turn in chat.turns]}


def from_json(found: Mapping[str, Any]) -> ChatRecord:
    """The chat that was written. Raises ValueError, whose text names the place, for anything else."""
    if found.get("schema") != SCHEMA:
        its = f"the schema is {found['schema']!r}" if "schema" in found else "there is no schema"
        raise ValueError(f"{its}, and this specchat reads {SCHEMA!r}")
    turns: list[TurnRecord] = []
    ids: set[int | None] = {None}
    for number, each in enumerate(_listed(found, "turns"), 1):
        with _in(f"turn {number}"):
            turn = _turn_from_json(each)
            if turn.parent not in ids or turn.id in ids or turn.id <= (turn.parent or 0):
                raise ValueError(f"its place, {turn.id} below {turn.parent}, is not in the chat")
            ids.add(turn.id)
            turns.append(turn)
    return ChatRecord(
        key=_text(found, "key", ""),
        created=_number(found, "created", 0.0),
        changed=_number(found, "changed", 0.0),
        title=_text(found, "title", ""),
        is_named=bool(found.get("is_named")),
        system=_text(found, "system", ""),
        model=_text(found, "model", ""),
        unsent=_text(found, "unsent", ""),
        settings=dict(found.get("settings") or {}),
        is_pinned=bool(found.get("is_pinned")),
        latest=_whole_or_none(found, "latest"),
        tip=_whole_or_none(found, "tip"),
        turns=tuple(turns),
    ).mended()


def _turn_to_json(turn: TurnRecord) -> dict[str, Any]:
    facts = {name: getattr(turn, name) for name in _names(TurnRecord)}
    return {**facts, "attachments": list(map(asdict, turn.attachments)), "parts": list(map(_part_to_json, turn.parts))}


def _turn_from_json(found: Mapping[str, Any]) -> TurnRecord:
    tokens = found.get("tokens")
    parts = []
    for number, part in enumerate(_listed(found, "parts"), 1):
        with _in(f"part {number}"):
            parts.append(_part_from_json(part))
    role = Role(_text(found, "role"))
    if role is Role.SYSTEM:
        raise ValueError("the system prompt is no turn")
    return TurnRecord(
        id=_whole(found, "id"),
        parent=_whole_or_none(found, "parent"),
        role=role,
        text=_text(found, "text"),
        tokens=None if tokens is None else _tokens(tokens),
        attachments=tuple(
            Attachment(_text(each, "name"), _text(each, "text")) for each in _listed(found, "attachments")
        ),
        created=_number(found, "created", 0.0),
        latest=_whole_or_none(found, "latest"),
        is_pinned=bool(found.get("is_pinned")),
        is_dropped=bool(found.get("is_dropped")),
        parts=tuple(parts),
    )


def _part_to_json(part: PartRecord) -> dict[str, Any]:
    facts = {name: getattr(part, name) for name in _names(PartRecord)}
    return {
        **facts,
        "about": asdict(part.about),
        "totals": asdict(part.totals),
        "steps": {"columns": _STEP, "rows": [_step_to_json(step) for step in unpack_steps(part.steps)]},
        "spans": spans_as_json(part.spans),
    }


def _part_from_json(found: Mapping[str, Any]) -> PartRecord:
    about, counted, steps = found["about"], found["totals"], found["steps"]
    first_token_s, plain_step_s, temperature = found["first_token_s"], found["plain_step_s"], about["temperature"]
    finish, seed, draft = found.get("finish"), found.get("seed"), about.get("draft")
    numbers: dict[str, Any] = {name: _number(counted, name) for name in ("draft_s", "verify_s", "accept_s", "plain_s")}
    counts: dict[str, Any] = {
        name: _whole(counted, name) for name in _names(Totals) if name not in (*numbers, "accepted_by")
    }
    return PartRecord(
        about=About(
            model=_text(about, "model", ""),
            draft=None if draft is None else _text(about, "draft"),
            guess=_text(about, "guess", ""),
            rule=_text(about, "rule", ""),
            temperature=None if temperature is None else _number(about, "temperature"),
        ),
        begun=_number(found, "begun", 0.0),
        ended=None if found.get("ended") is None else _number(found, "ended"),
        finish=None if finish is None else str(Finish(finish)),
        seed=None if seed is None else int(seed) % 2**64,
        **{name: _whole(found, name) for name in ("prompt_tokens", "reused_tokens", "read_tokens")},
        read_s=_number(found, "read_s", 0.0),
        first_token_s=None if first_token_s is None else _number(found, "first_token_s"),
        plain_step_s=None if plain_step_s is None else _number(found, "plain_step_s"),
        totals=Totals(
            **counts,
            **numbers,
            accepted_by={str(name): int(count) for name, count in counted["accepted_by"].items()},
        ),
        steps=pack_steps([_step_from_json(steps["columns"], row) for row in steps["rows"]]),
        spans=spans_from_json(found.get("spans")),
    )


def _step_to_json(step: Step) -> list[Any]:
    return [_short(getattr(step, name)) if name in _SINGLES else getattr(step, name) for name in _STEP]


def _step_from_json(columns: Sequence[str], row: Sequence[Any]) -> Step:
    values = dict(zip(columns, row, strict=True))
    finish, tokens, sources = values.get("finish"), _tokens(values["tokens"]), values.get("sources")
    if sources is not None:
        sources = tuple(None if each is None else _tokens([each])[0] for each in sources)
    return Step(
        **{**values, "tokens": tokens, "finish": None if finish is None else Finish(finish), "sources": sources}
    )


def _short(value: float | None) -> float | None:
    """A 32-bit float in nine digits, which say all of it."""
    return None if value is None else float(f"{value:.9g}")


def _tokens(found: Sequence[Any]) -> tuple[int, ...]:
    tokens = tuple(int(token) for token in found)
    if any(abs(token) >= 2**31 for token in tokens):
        raise ValueError("a token id is too large")
    return tokens


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _listed(found: Mapping[str, Any], key: str) -> list[Any]:
    value = found.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError(f"{key} must be a list of objects")
    return value


def _text(found: Mapping[str, Any], key: str, absent: str | None = None) -> str:
    value = found.get(key, absent)
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text")
    return value


def _number(found: Mapping[str, Any], key: str, absent: float | None = None) -> float:
    value = found.get(key, absent)
    if type(value) not in (int, float) or not abs(value) < _MOST:  # which leaves out NaN
        raise ValueError(f"{key} must be a number")
    return float(value)


def _whole(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key)
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"{key} must be a whole number")
    return value


def _whole_or_none(found: Mapping[str, Any], key: str) -> int | None:
    return None if found.get(key) is None else _whole(found, key)


@contextmanager
def _in(place: str) -> Iterator[None]:
    """What is wrong inside is said with its place."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{place}: {error.args[0]} is missing") from error
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError(f"{place}: {error}") from error
