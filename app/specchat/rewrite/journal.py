"""What was written where, and what stood there before: files that are complete or not there, whenever a process ends.

Copies of contents are named by their SHA-256, entries by random ids. Nobody but the user may read them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from specchat.rewrite.disk import PART, Folder, claim, create, private_folder, read_all, regular

ORPHAN_S = 3600.0  # how long what no entry names may be part of an entry that is being made
MOST_BYTES = 64 << 20  # of a copy: more than any file that is rewritten

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_ENTRY = re.compile(r"([0-9a-f]{8})\.json\Z")


class State(StrEnum):
    """How far a write came."""

    PENDING = "pending"  # the file holds the old contents or the new ones
    OVERWRITING = "overwriting"  # ... or a mixture
    DONE = "done"
    UNCLEAR = "unclear"  # interrupted, and then somebody else changed the file


@dataclass(frozen=True, slots=True)
class Entry:
    """One write."""

    id: str
    named: str  # the path as the user gave it, seen from the root
    real: str  # ... with links followed
    written: float  # seconds since 1970
    old: str  # SHA-256 of the contents before
    new: str  # ... and after
    title: str  # the request, for people
    undoes: str | None  # id of the entry whose write this one takes back
    state: State

    @property
    def part(self) -> str:
        """The name of the file beside, while the write goes on."""
        return f".specchat-{self.id}{PART}"


@dataclass(frozen=True, slots=True)
class Past:
    """One write, as a list shows it."""

    entry: Entry
    undone: bool


class Journal:
    """Entries and copies in a folder of the user's own, which is made when something is put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, data: bytes) -> str:
        """Keep a copy; its SHA-256. Raises OSError."""
        digest = digest_of(data)
        with self._opened("copies") as folder:
            if _held(folder, digest) == data:
                os.utime(self.folder / "copies" / digest)  # so that it is no orphan for a while
            else:
                create(folder, digest, data)
        return digest

    def check_room(self, n_bytes: int) -> None:
        """Find out whether so much can be kept. Raises OSError."""
        name = f".room-{new_id()}{PART}"
        with self._opened("copies") as folder:
            create(folder, name, bytes(n_bytes))
            folder.remove(name)

    def copy(self, digest: str) -> bytes | None:
        """The contents with a SHA-256; None where no sound copy is kept."""
        if _DIGEST.match(digest) is None:
            return None
        try:
            with self._opened("copies") as folder:
                data = _held(folder, digest)
        except OSError:
            return None
        return data if data is not None and digest_of(data) == digest else None

    def put(self, entry: Entry) -> None:
        """Write an entry, or what became of it. Raises OSError."""
        with self._opened("entries") as folder:
            create(folder, f"{entry.id}.json", json.dumps(asdict(entry), indent=1).encode())

    def drop(self, entry: Entry) -> None:
        """Forget an entry. Raises OSError."""
        with self._opened("entries") as folder:
            folder.remove(f"{entry.id}.json")

    def entries(self) -> list[Entry]:
        """All that can be read, the newest first."""
        if not (self.folder / "entries").is_dir():
            return []
        try:
            with self._opened("entries") as folder:
                names = [match[1] for name in os.listdir(folder.path) if (match := _ENTRY.match(name))]
                found = [entry for name in names if (entry := _read(folder, name)) is not None]
        except OSError:
            return []
        return sorted(found, key=lambda entry: (entry.written, entry.id), reverse=True)

    @contextmanager
    def claimed(self, entry_id: str) -> Iterator[Entry | None]:
        """Work on an entry and keep other processes off it; None for the entry where it is not there or another works.

        Raises OSError.
        """
        lock = f"{entry_id}.lock"
        with self._opened("entries") as folder:
            handle = folder.open(lock, os.O_RDWR | os.O_CREAT)
            mine = False
            try:
                mine = claim(handle)
                yield _read(folder, entry_id) if mine else None
            finally:
                os.close(handle)
                # Whoever waits for this lock finds the entry finished, so that it may go while they hold it.
                if mine:
                    with suppress(OSError):
                        folder.remove(lock)

    def sweep(self, now: float) -> None:
        """Remove the copies that no entry names, and what killed processes left half written."""
        named = {digest for entry in self.entries() for digest in (entry.old, entry.new)}
        for kind in ("copies", "entries"):
            try:
                with self._opened(kind) as folder:
                    for name in os.listdir(self.folder / kind):
                        useless = name.endswith((PART, ".lock")) or (kind == "copies" and name not in named)
                        if useless and now - folder.stat(name).st_mtime > ORPHAN_S:
                            folder.remove(name)
            except OSError:
                continue

    @contextmanager
    def _opened(self, kind: str) -> Iterator[Folder]:
        with private_folder(self.folder), private_folder(self.folder / kind) as folder:
            yield folder


def new_id() -> str:
    """A name for an entry."""
    return secrets.token_hex(4)


def digest_of(data: bytes) -> str:
    """The SHA-256 of contents."""
    return hashlib.sha256(data).hexdigest()


def _held(folder: Folder, name: str) -> bytes | None:
    try:
        handle = folder.open(name, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        regular(handle)
        return read_all(handle, MOST_BYTES)
    finally:
        os.close(handle)


def _read(folder: Folder, entry_id: str) -> Entry | None:
    try:
        facts = json.loads(_held(folder, f"{entry_id}.json") or b"")
        entry = Entry(**{**facts, "state": State(facts["state"]), "written": float(facts["written"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return entry if entry.id == entry_id else None
