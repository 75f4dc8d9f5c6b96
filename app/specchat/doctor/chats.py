"""Whether the store of chats is sound. It is only read, and no word of it is shown."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from specchat.console import size
from specchat.doctor.finding import Finding, note, ok, problem
from specchat.doctor.storage import can_be_written
from specchat.history.schema import APPLICATION, MIGRATIONS, version_of

_BUSY_S = 5.0  # that another specchat is waited for


def check_chats(path: Path) -> Iterator[Finding]:
    """Kind, version and soundness of the store; those that were set aside as damaged."""
    for aside in sorted(path.parent.glob(f"{path.name}.damaged-*")):
        if not aside.name.endswith(("-wal", "-shm")):
            said = f"a damaged store was set aside: {aside} ({size(aside.stat().st_size)})"
            yield note("chats", said, "sqlite3's .recover may save what is in it; delete it when you miss nothing")
    if not path.exists():
        if can_be_written(path.parent):
            yield ok("chats", "none are kept yet", chats=0)
        else:
            advice = "set SPECCHAT_DATA_DIR to a folder that you may write to"
            yield problem("chats", f"none can be kept: nothing can be written into {path.parent}", advice)
        return
    if not path.is_file():
        yield problem("chats", f"{path} is not a file, so no chats are kept", "move it away")
        return
    n_bytes = path.stat().st_size
    # Not as a path: a URI alone can say that nothing is to be written.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)) as store:
        try:
            yield _looked_into(store, path, n_bytes)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                said = f"{path} cannot be read: {error}"
                yield problem("chats", said, "look at the modes of the file and its folder, or wait for what holds it")
            else:
                yield _damaged(path, str(error))


def _looked_into(store: sqlite3.Connection, path: Path, n_bytes: int) -> Finding:
    if store.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        if n_bytes == 0:
            return ok("chats", "none are kept yet", chats=0)
        advice = "set SPECCHAT_DATA_DIR to another folder"
        return problem("chats", f"{path} is no store of chats; specchat leaves it as it is", advice)
    version = version_of(store)
    if version > len(MIGRATIONS):
        said = f"{path} is of a newer specchat (version {version}, this one knows {len(MIGRATIONS)})"
        return problem("chats", said, "update specchat, or set SPECCHAT_DATA_DIR to another folder")
    said = store.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        return _damaged(path, "its pages contradict each other")
    count = store.execute("SELECT count(*) FROM chats").fetchone()[0]
    many = "1 chat" if count == 1 else f"{count} chats"
    return ok("chats", f"{many}, {size(n_bytes)}, sound", chats=count, bytes=n_bytes, version=version)


def _damaged(path: Path, why: str) -> Finding:
    advice = "the next start sets it aside and begins a new one; nothing is deleted"
    return problem("chats", f"{path} is damaged: {why}", advice)
