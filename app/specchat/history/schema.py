"""The tables of the store, as the steps that lead from each version to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

APPLICATION = 0x73706368  # "spch": whose file this is

Migration = Sequence[str]  # statements that one transaction holds

_FIRST: Migration = (
    f"PRAGMA application_id = {APPLICATION}",
    # Ids are never given again: another process may still mean the chat that had one.
    """CREATE TABLE chats (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        created REAL NOT NULL,
        changed REAL NOT NULL,
        title TEXT NOT NULL,
        named INTEGER NOT NULL,
        system TEXT NOT NULL,
        model TEXT NOT NULL,
        unsent TEXT NOT NULL,
        settings TEXT NOT NULL,
        pinned INTEGER NOT NULL,
        latest INTEGER,
        tip INTEGER
    )""",
    "CREATE INDEX chats_in_order ON chats (pinned DESC, changed DESC, id DESC)",
    """CREATE TABLE turns (
        row INTEGER PRIMARY KEY AUTOINCREMENT,
        chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
        id INTEGER NOT NULL,
        parent INTEGER,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        tokens BLOB,
        attachments TEXT,
        created REAL NOT NULL,
        latest INTEGER,
        pinned INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        UNIQUE (chat, id)
    )""",
    "CREATE INDEX turns_below ON turns (chat, parent)",
    """CREATE TABLE replies (
        turn INTEGER NOT NULL REFERENCES turns ON DELETE CASCADE,
        part INTEGER NOT NULL,
        model TEXT NOT NULL,
        draft TEXT,
        guess TEXT NOT NULL,
        rule TEXT NOT NULL,
        temperature REAL,
        begun REAL NOT NULL,
        ended REAL,
        finish TEXT,
        seed INTEGER,
        prompt_tokens INTEGER NOT NULL,
        reused_tokens INTEGER NOT NULL,
        read_tokens INTEGER NOT NULL,
        read_s REAL NOT NULL,
        first_token_s REAL,
        plain_step_s REAL,
        steps INTEGER NOT NULL,
        emitted INTEGER NOT NULL,
        drafted INTEGER NOT NULL,
        examined INTEGER NOT NULL,
        accepted INTEGER NOT NULL,
        draft_s REAL NOT NULL,
        verify_s REAL NOT NULL,
        accept_s REAL NOT NULL,
        plain_steps INTEGER NOT NULL,
        plain_s REAL NOT NULL,
        accepted_by TEXT NOT NULL,
        spans TEXT,
        packed BLOB NOT NULL,
        PRIMARY KEY (turn, part)
    )""",
    # So that a list of chats need not read rows that hold packed steps.
    "CREATE INDEX replies_in_short ON replies (turn, steps, emitted)",
    # What is being written, a row a step; it goes into the two tables above when the reply ends.
    """CREATE TABLE pieces (
        turn INTEGER NOT NULL,
        part INTEGER NOT NULL,
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        packed BLOB,
        PRIMARY KEY (turn, part, number),
        FOREIGN KEY (turn, part) REFERENCES replies ON DELETE CASCADE
    ) WITHOUT ROWID""",
)

_SPANS_OF_PIECES: Migration = ("ALTER TABLE pieces ADD COLUMN spans TEXT",)  # who proposed what a step wrote

MIGRATIONS: tuple[Migration, ...] = (_FIRST, _SPANS_OF_PIECES)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a store; 0 for an empty file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring a store up to date, each step whole or not at all; another process may be doing the same."""
    while version_of(connection) < len(migrations):
        with writing(connection):
            version = version_of(connection)  # now that nobody else can change it
            if version < len(migrations):
                for statement in migrations[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that waits for other writers at its beginning, not in the middle."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
            connection.execute("ROLLBACK")
        raise


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """Several statements that see the store in one state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")
