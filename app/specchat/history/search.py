"""Finding words in messages and titles, by an index where SQLite has one, else by looking at every text."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from specchat.conversation import Role
from specchat.history.records import Hit
from specchat.history.schema import writing

MOST_TIDIED = 400  # times: each adds two levels to SQLite's index, which breaks at 2000 and is not to be mended then
SNIPPET_WORDS = 16  # of the index
SNIPPET_LENGTH = 100  # characters, where there is no index
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # no text holds these: they are no characters, by Unicode's own word
_MORE = "…"

# Writing without spaces between words, of which the index would make one word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)

_CHANGES = {
    "turns_indexed": "CREATE TRIGGER turns_indexed AFTER INSERT ON turns BEGIN "
    "INSERT INTO words (rowid, text) VALUES (new.row, new.text); END",
    "turns_changed": "CREATE TRIGGER turns_changed AFTER UPDATE OF text ON turns WHEN old.text IS NOT new.text BEGIN "
    "INSERT INTO words (words, rowid, text) VALUES ('delete', old.row, old.text); "
    "INSERT INTO words (rowid, text) VALUES (new.row, new.text); END",
    "turns_forgotten": "CREATE TRIGGER turns_forgotten AFTER DELETE ON turns BEGIN "
    "INSERT INTO words (words, rowid, text) VALUES ('delete', old.row, old.text); END",
}
_INDEX = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content = 'turns', content_rowid = 'row')"
_TIDIED = "CREATE TABLE IF NOT EXISTS tidied (times INTEGER NOT NULL)"  # since the index was made


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What somebody typed into a search."""

    phrases: tuple[str, ...]  # all must be there; each word in one is what the word begins with, if it is the last

    @classmethod
    def read(cls, query: str) -> _Wanted:
        """Words, and "several words" that must stand side by side."""
        found = (quoted or word for quoted, word in re.findall(r'"([^"]*)"?|([^\s"]+)', query))
        return cls(tuple(phrase for each in found if (phrase := " ".join(each.split()))))

    @property
    def is_indexed(self) -> bool:
        """Whether the index knows all of it as words."""
        return all(re.search(r"\w", phrase) and not _UNSPACED.search(phrase) for phrase in self.phrases)

    @property
    def match(self) -> str:
        """As the index is asked. Words that are being typed are beginnings of words."""
        return " ".join(f'"{phrase}"*' for phrase in self.phrases)

    @property
    def patterns(self) -> list[str]:
        """As every text is asked."""
        return ["%" + re.sub(r"([\\%_])", r"\\\1", phrase) + "%" for phrase in self.phrases]


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite can keep an index of words."""
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


def prepare_index(connection: sqlite3.Connection) -> None:
    """Make the index where there is none, or where a program without one has changed texts since."""
    if has_index(connection) == _is_kept(connection):
        return
    with writing(connection):
        if not has_index(connection):
            for name in _CHANGES:  # which would make every change fail; without them the index is known to be old
                connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        elif not _is_kept(connection):
            connection.execute(_INDEX)
            connection.execute(_TIDIED)
            _rebuild(connection)
            for name, change in _CHANGES.items():
                connection.execute(f"DROP TRIGGER IF EXISTS {name}")
                connection.execute(change)


def forget(connection: sqlite3.Connection) -> None:
    """Take the words of deleted texts out of the index, where they otherwise stay till it is tidied one day.

    That writes all of the index anew, which takes a second for 200,000 messages; only SQLite from 3.42 on could take
    out single words.
    """
    if not _is_kept(connection):
        return
    connection.execute("UPDATE tidied SET times = times + 1")
    if connection.execute("SELECT times FROM tidied").fetchone()[0] > MOST_TIDIED:
        _rebuild(connection)
    else:
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def discard_index(connection: sqlite3.Connection) -> None:
    """Forget the index, be it damaged, so that it is made anew; the texts are elsewhere."""
    with writing(connection):
        for name in _CHANGES:
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        try:
            connection.execute("DROP TABLE IF EXISTS words")
        except sqlite3.DatabaseError:  # then it is only a name and some tables
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("DELETE FROM sqlite_master WHERE name = 'words'")
            connection.execute("PRAGMA writable_schema = RESET")
            for part in ("data", "idx", "docsize", "config"):
                connection.execute(f"DROP TABLE IF EXISTS words_{part}")


def search(connection: sqlite3.Connection, query: str, limit: int) -> list[Hit]:
    """Titles, then messages, that hold all words of a query; the newest first."""
    wanted = _Wanted.read(query)
    if not wanted.phrases:
        return []
    found = list(_titles(connection, wanted, limit))
    messages = _indexed if wanted.is_indexed and _is_kept(connection) else _looked_at
    return [*found, *messages(connection, wanted, limit - len(found))]


def title_filter(query: str) -> tuple[str, list[str]]:
    """A condition on chats whose titles hold all words of a query, and its values."""
    patterns = _Wanted.read(query).patterns
    return " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(patterns)) or "1", patterns


def _rebuild(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
    connection.execute("DELETE FROM tidied")
    connection.execute("INSERT INTO tidied VALUES (0)")


def _is_kept(connection: sqlite3.Connection) -> bool:
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    return found >= set(_CHANGES)


def _titles(connection: sqlite3.Connection, wanted: _Wanted, limit: int) -> Iterator[Hit]:
    condition = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(wanted.patterns))
    for chat, title, changed in connection.execute(
        f"SELECT id, title, changed FROM chats WHERE {condition} ORDER BY changed DESC LIMIT ?",
        (*wanted.patterns, limit),
    ):
        yield Hit(chat, title, None, None, changed, title, tuple(_places(title, wanted.phrases)))


def _indexed(connection: sqlite3.Connection, wanted: _Wanted, limit: int) -> Iterator[Hit]:
    # Rows grow with time, and the index is in their order, so that it may stop as soon as there are enough.
    for row in connection.execute(
        f"""SELECT chats.id, chats.title, turns.id, turns.role, turns.created, snippet
        FROM (SELECT rowid AS found, snippet(words, 0, '{_OPEN}', '{_CLOSE}', '{_MORE}', {SNIPPET_WORDS}) AS snippet
              FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)
        JOIN turns ON turns.row = found JOIN chats ON chats.id = turns.chat ORDER BY found DESC""",
        (wanted.match, limit),
    ):
        snippet, marks = _unmarked(row[-1])
        yield _hit(row, snippet, marks)


def _looked_at(connection: sqlite3.Connection, wanted: _Wanted, limit: int) -> Iterator[Hit]:
    condition = " AND ".join(["text LIKE ? ESCAPE '\\'"] * len(wanted.patterns))
    for row in connection.execute(
        f"""SELECT chats.id, chats.title, turns.id, turns.role, turns.created, turns.text
        FROM turns JOIN chats ON chats.id = turns.chat WHERE {condition} ORDER BY turns.row DESC LIMIT ?""",
        (*wanted.patterns, limit),
    ):
        snippet = _cut(row[-1], wanted.phrases)
        yield _hit(row, snippet, tuple(_places(snippet, wanted.phrases)))


def _hit(found: Sequence[Any], snippet: str, marks: tuple[tuple[int, int], ...]) -> Hit:
    chat, title, turn, role, created, _ = found
    return Hit(chat, title, turn, Role(role), created, snippet, marks)


def _unmarked(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A snippet without the marks of the index, and where they stood."""
    pieces = re.split(f"[{_OPEN}{_CLOSE}]", marked)
    marks, at = [], 0
    for number, piece in enumerate(pieces):
        if number % 2:
            marks.append((at, at + len(piece)))
        at += len(piece)
    return "".join(pieces), tuple(marks)


def _cut(text: str, phrases: Sequence[str]) -> str:
    """A piece of a text around the first place of a phrase."""
    first = min((start for start, _ in _places(text, phrases)), default=0)
    start = max(0, first - SNIPPET_LENGTH // 3)
    end = start + SNIPPET_LENGTH
    return f"{_MORE if start else ''}{text[start:end]}{_MORE if end < len(text) else ''}"


def _places(text: str, phrases: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where any of the phrases stands, in either case."""
    any_phrase = "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    for found in re.finditer(any_phrase, text, re.IGNORECASE):
        yield found.span()
