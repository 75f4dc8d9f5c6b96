"""The figures of kept replies, read from the store a few hundred at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from specchat.history.packing import StepColumns, step_columns
from specchat.history.store import Store
from specchat.statistics.figures import Cell, Counts, ReplyFigures, Work
from specchat.statistics.kinds import is_rewriting, works_of_steps

_AT_ONCE = 256  # replies that are read together
_FILTER = "replies.ended >= :since AND replies.steps > 0 AND (:model IS NULL OR replies.model = :model)"
_PAGE = f"""SELECT replies.turn, replies.part, replies.ended, replies.model, draft, guess, temperature, plain_step_s,
    spans, packed, turns.text, turns.chat, turns.parent
    FROM replies JOIN turns ON turns.row = replies.turn
    WHERE (replies.turn, replies.part) > (:turn, :part) AND {_FILTER}
    ORDER BY replies.turn, replies.part LIMIT {_AT_ONCE}"""


def count_replies(store: Store, since: float = 0.0, model: str | None = None) -> int:
    """How many rows `read_figures` will look at. Raises StoreRefused."""
    statement = f"SELECT count(*) FROM replies WHERE {_FILTER}"
    return store.read(lambda connection: _number(connection, statement, {"since": since, "model": model}))


def read_figures(
    store: Store,
    since: float = 0.0,
    model: str | None = None,
    on_read: Callable[[int], object] = lambda _: None,
) -> Iterator[ReplyFigures]:
    """The figures of all replies that ended since a moment, in seconds since 1970, written by `model` if it is given.

    `on_read` hears how many rows were read, again and again. Steps that cannot be read are left out: they may be of a
    newer specchat. Raises StoreRefused.
    """
    turn, part = -1, -1
    while True:
        values = {"turn": turn, "part": part, "since": since, "model": model}
        page = store.read(lambda connection, values=values: _page(connection, values))  # type: ignore[misc]
        for found, question in page:
            if (figures := _figures(found, question)) is not None:
                yield figures
        on_read(len(page))
        if len(page) < _AT_ONCE:
            return
        turn, part = page[-1][0][:2]


def _page(connection: sqlite3.Connection, values: dict[str, Any]) -> list[tuple[Any, str]]:
    found = connection.execute(_PAGE, values).fetchall()
    return [(row, _question(connection, row[-2], row[-1], len(row[-3]))) for row in found]


def _question(connection: sqlite3.Connection, chat: int, parent: int | None, reply_length: int) -> str:
    """What a reply answers, with attached files; empty where it is too short to be repeated by the reply."""
    asked = "SELECT text, attachments FROM turns WHERE chat = ? AND id = ?"
    found = connection.execute(asked, (chat, parent)).fetchone()
    if found is None or 2 * (len(found[0]) + len(found[1] or "")) < reply_length:
        return ""
    return "\n".join([found[0], *(text for _, text in (json.loads(found[1]) if found[1] else []))])


def _figures(found: Any, question: str) -> ReplyFigures | None:
    turn, _, ended, model, draft, guess, temperature, plain_step_s, spans, packed, text, _, _ = found
    try:
        columns = step_columns(packed)
        cells = _cells(columns, _works(text, question, columns, spans))
    except (ValueError, LookupError, TypeError):
        return None
    return ReplyFigures(turn, ended, model, draft, guess, temperature, plain_step_s, cells)


def _works(text: str, question: str, columns: StepColumns, spans: str | None) -> list[Work] | Work:
    if is_rewriting(question, text):
        return Work.REWRITING
    if "\n" not in text:
        return works_of_steps(text, columns.emitted, None)
    places = None if spans is None else [(step, start) for start, _, _, step, _ in json.loads(spans)["spans"]]
    return works_of_steps(text, columns.emitted, places)


def _cells(columns: StepColumns, works: list[Work] | Work) -> tuple[Cell, ...]:
    """A cell for each kind of text and guesser."""
    kinds = [works] if isinstance(works, Work) else list(dict.fromkeys(works))
    of_kind = 0 if isinstance(works, Work) else np.array([kinds.index(work) for work in works])
    cell = of_kind * len(columns.names) + columns.guesser
    n_cells = len(kinds) * len(columns.names)
    whole = (columns.emitted, columns.examined, columns.accepted)
    steps = np.bincount(cell, minlength=n_cells).tolist()
    tokens, examined, accepted = (np.bincount(cell, each, n_cells).astype(int).tolist() for each in whole)
    seconds = np.bincount(cell, columns.seconds, n_cells).tolist()
    return tuple(
        Cell(
            kinds[i // len(columns.names)],
            columns.names[i % len(columns.names)],
            Counts(steps[i], tokens[i], examined[i], accepted[i], seconds[i]),
        )
        for i in range(n_cells)
        if steps[i]
    )


def _number(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> int:
    number: int = connection.execute(statement, values).fetchone()[0]
    return number
