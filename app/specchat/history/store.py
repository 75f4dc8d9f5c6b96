"""All chats of the user: listed, searched, opened, renamed, deleted. One connection, for any thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from specchat.history import rows
from specchat.history.database import is_damage, is_of_file, open_database, patiently, refusals
from specchat.history.errors import NoSuchChat
from specchat.history.records import ChatRecord, ChatSummary, Hit
from specchat.history.schema import reading, writing
from specchat.history.search import discard_index, forget, prepare_index, search, title_filter

_T = TypeVar("_T")

_SUMMARY = """SELECT chats.id, title, chats.created, changed,
    (SELECT count(*) FROM turns WHERE turns.chat = chats.id),
    chats.model,
    (SELECT 1.0 * sum(emitted) / nullif(sum(steps), 0) FROM turns CROSS JOIN replies ON replies.turn = turns.row
     WHERE turns.chat = chats.id),
    chats.pinned FROM chats"""
_IN_ORDER = "ORDER BY chats.pinned DESC, changed DESC, chats.id DESC"


class Store:
    """The chats of one file. Every method may raise StoreRefused."""

    def __init__(self, path: Path, connection: sqlite3.Connection, notices: list[str]) -> None:
        """See `open`."""
        self.path = path
        self.notices = notices  # what the user should know of how it was opened
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """The store in a file, which is made where there is none. A damaged one is set aside, with a notice."""
        connection, notices = open_database(path)
        try:
            with refusals(path):
                try:
                    patiently(lambda: prepare_index(connection))
                except sqlite3.DatabaseError as error:
                    if is_of_file(error) or not is_damage(error):
                        raise
                    discard_index(connection)
                    prepare_index(connection)
                with suppress(sqlite3.OperationalError):  # somebody is writing: the next one to open it does this
                    if connection.execute("SELECT 1 FROM pieces").fetchone():
                        with writing(connection):
                            rows.fold_pieces(connection)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection, notices)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def chats(self, limit: int = -1, offset: int = 0, query: str = "") -> list[ChatSummary]:
        """Chats whose titles hold all words of a query: pinned ones first, then the newest. -1: all of them."""
        condition, values = title_filter(query)
        with self._reads() as connection:
            found = connection.execute(
                f"{_SUMMARY} WHERE {condition} {_IN_ORDER} LIMIT ? OFFSET ?", (*values, limit, offset)
            )
            return [_summary(each) for each in found]

    def count(self) -> int:
        """How many chats there are."""
        with self._reads() as connection:
            number: int = connection.execute("SELECT count(*) FROM chats").fetchone()[0]
            return number

    def summary(self, chat_id: int) -> ChatSummary:
        """One chat as in a list. Raises NoSuchChat."""
        with self._reads() as connection:
            found = connection.execute(f"{_SUMMARY} WHERE chats.id = ?", (chat_id,)).fetchone()
        if found is None:
            raise NoSuchChat(str(chat_id))
        return _summary(found)

    def search(self, query: str, limit: int = 50) -> list[Hit]:
        """Titles and messages that hold all words of a query, or words that begin so; the newest first."""
        with self._reads() as connection:
            return search(connection, query, limit)

    def load(self, chat_id: int) -> ChatRecord:
        """A chat with everything. Raises NoSuchChat."""
        with self._reads() as connection, reading(connection):
            found = rows.read_chat(connection, chat_id)
        if found is None:
            raise NoSuchChat(str(chat_id))
        return found

    def put(self, record: ChatRecord) -> int:
        """Store a chat that came from elsewhere, or that was deleted; its new id."""
        return self._writes(lambda connection: rows.insert_chat(connection, record))

    def put_new(self, records: Iterable[ChatRecord]) -> int:
        """Store chats in one transaction, but for those whose key is here already; how many were new."""

        def put(connection: sqlite3.Connection) -> int:
            known = "SELECT 1 FROM chats WHERE key = ?"
            new = 0
            for record in records:
                if not record.key or not connection.execute(known, (record.key,)).fetchone():
                    rows.insert_chat(connection, record)
                    new += 1
            return new

        return self._writes(put)

    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat a title. Raises NoSuchChat."""

        def change(connection: sqlite3.Connection) -> int:
            values = (rows.storable(title), chat_id)
            return connection.execute("UPDATE chats SET title = ?, named = 1 WHERE id = ?", values).rowcount

        if not self._writes(change):
            raise NoSuchChat(str(chat_id))

    def pin(self, chat_id: int, *, is_pinned: bool) -> None:
        """Keep a chat on top of the list, or no longer."""
        self._writes(
            lambda connection: connection.execute("UPDATE chats SET pinned = ? WHERE id = ?", (is_pinned, chat_id))
        )

    def delete(self, chat_ids: Iterable[int]) -> int:
        """Delete chats for good, so that their words are no longer in the file; how many there were."""
        wanted = [(chat_id,) for chat_id in chat_ids]

        def delete(connection: sqlite3.Connection) -> int:
            deleted = connection.executemany("DELETE FROM chats WHERE id = ?", wanted).rowcount
            forget(connection)
            return deleted

        count = self._writes(delete)
        with self._lock, refusals(self.path), suppress(sqlite3.OperationalError):  # another process reads the journal
            self._connection.execute("PRAGMA incremental_vacuum").fetchall()
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return count

    def keys(self, chat_ids: Iterable[int]) -> list[str]:
        """What the chats of some ids are called in every store; ids without a chat are left out."""
        with self._lock, refusals(self.path):
            found = (
                self._connection.execute("SELECT key FROM chats WHERE id = ?", (chat_id,)).fetchone()
                for chat_id in chat_ids
            )
            return [str(row[0]) for row in found if row is not None]

    def older_than(self, moment: float) -> list[ChatSummary]:
        """Chats that nobody has changed since a moment, in seconds since 1970; pinned ones are left out."""
        with self._reads() as connection:
            found = connection.execute(f"{_SUMMARY} WHERE changed < ? AND NOT chats.pinned {_IN_ORDER}", (moment,))
            return [_summary(each) for each in found]

    def write(self, action: Callable[[sqlite3.Connection], _T], *, is_synced: bool) -> _T:
        """Do something in one transaction; `is_synced` waits for the disk. Raises sqlite3.Error."""
        with self._lock:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}")
            with writing(self._connection):
                return action(self._connection)

    def read(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do something that changes nothing, with the store in one state."""
        with self._reads() as connection, reading(connection):
            return action(connection)

    def _writes(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        with refusals(self.path):
            return patiently(lambda: self.write(action, is_synced=True))

    @contextmanager
    def _reads(self) -> Iterator[sqlite3.Connection]:
        with self._lock, refusals(self.path):
            yield self._connection


def _summary(found: Sequence[Any]) -> ChatSummary:
    chat_id, title, created, changed, messages, model, tokens_per_step, pinned = found
    return ChatSummary(chat_id, title, created, changed, messages, model, tokens_per_step, bool(pinned))
