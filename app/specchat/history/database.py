"""The file of the store: private, opened by several processes at once, set aside when it is damaged, never deleted."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from specchat.attachments import label
from specchat.history.errors import StoreRefused
from specchat.history.schema import APPLICATION, MIGRATIONS, migrate, version_of
from specchat.history.search import discard_index
from specchat.partfile import locked
from specchat.transfer import DownloadError

BUSY_S = 10.0  # longest wait for another process; each of its writes takes milliseconds
_RETRY_S = 0.02
_BESIDE = ("-wal", "-shm")  # SQLite's own files, which hold what is not yet in the main one
_SETTINGS = (
    "PRAGMA auto_vacuum = INCREMENTAL",  # holds for a new file only
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is deleted is overwritten, not only forgotten
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cell_size_check = ON",
    f"PRAGMA journal_size_limit = {8 << 20}",
    "PRAGMA cache_size = -16000",
)

_T = TypeVar("_T")


def open_database(path: Path) -> tuple[sqlite3.Connection, list[str]]:
    """A connection to an up-to-date store, which is made where there is none, and what the user should know.

    Any thread may use the connection, one at a time. A damaged store is moved out of the way, and an empty one takes
    its place. Raises StoreRefused.
    """
    with refusals(path):
        try:
            return _ready(path), []
        except sqlite3.DatabaseError as error:
            if not is_of_file(error):
                raise
        with locked(path.with_name(f"{path.name}.lock"), "is being opened by another specchat; try again", BUSY_S):
            try:
                return _ready(path), []  # another process has set it right meanwhile
            except sqlite3.DatabaseError as error:
                if not is_of_file(error):
                    raise
            aside = _set_aside(path)
            return _ready(path), [f"the store of chats was damaged; it was moved to {label(str(aside))}"]


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Errors of the disk or of SQLite become a StoreRefused; damage is looked into when the store is next opened."""
    try:
        yield
    except sqlite3.Error as error:
        if is_damage(error):
            with suppress(OSError):
                _suspicion(path).touch(mode=0o600)
            raise StoreRefused(path, f"is damaged ({error}); the next start looks into it") from error
        raise StoreRefused(path, f"cannot be used: {error}") from error
    except DownloadError as error:  # the lock's
        raise StoreRefused(path, str(error)) from error
    except OSError as error:
        raise StoreRefused(path, f"cannot be used: {error.strerror or error}") from error


def patiently(action: Callable[[], _T]) -> _T:
    """Try again while another process is in the way, some of which SQLite does not wait for by itself."""
    latest = time.monotonic() + BUSY_S
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= latest:
                raise
        time.sleep(_RETRY_S)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file, or only its index of words, is not what SQLite wrote."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_of_file(error: sqlite3.Error) -> bool:
    """Whether an error means damage of more than the index."""
    return is_damage(error) and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_CORRUPT_VTAB


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of an extended code says which kind


def _ready(path: Path) -> sqlite3.Connection:
    _make_private(path)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        patiently(lambda: _prepare(connection, path))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    if _suspicion(path).exists():
        discard_index(connection)  # which costs nothing but time, and may be all that is damaged
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            error = sqlite3.DatabaseError(found)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        _suspicion(path).unlink(missing_ok=True)
    version = version_of(connection)
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreRefused(path, "is no store of chats; it was left as it is")
    if version > len(MIGRATIONS):
        raise StoreRefused(
            path,
            f"was written by a newer specchat (version {version} of the store, this one knows {len(MIGRATIONS)}); "
            "update specchat, or set SPECCHAT_DATA_DIR to another folder",
        )
    for setting in _SETTINGS:
        connection.execute(setting)
    migrate(connection)


def _make_private(path: Path) -> None:
    """The folder and the file are the user's alone; SQLite gives the files beside it the same mode."""
    folder = path.parent
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for each in (path, *(path.with_name(path.name + end) for end in _BESIDE)):
        with suppress(FileNotFoundError):
            if stat.S_IMODE(each.stat().st_mode) & 0o077:
                each.chmod(0o600)


def _set_aside(path: Path) -> Path:
    """Move a damaged store; where it is now."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{count}")
    # The main file last: alone, the others would be taken for the journal of the new store.
    for end in (*_BESIDE, ""):
        with suppress(FileNotFoundError):
            os.replace(path.with_name(path.name + end), aside.with_name(aside.name + end))
    _suspicion(path).unlink(missing_ok=True)
    return aside


def _suspicion(path: Path) -> Path:
    return path.with_name(f"{path.name}.suspect")
