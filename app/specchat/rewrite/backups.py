"""A copy beside the file that is rewritten, for people who want to see it there; the undo store needs none."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

from specchat.attachments import label
from specchat.errors import UsageError
from specchat.rewrite.disk import PART, Folder, Place, read_all, regular, write_all
from specchat.rewrite.errors import ChangedOnDisk, NotWritten
from specchat.rewrite.journal import ORPHAN_S, new_id

_MOST_SUFFIX = 32  # characters
_PART = re.compile(r"\.specchat-[0-9a-f]{8}\.part")


def checked_suffix(suffix: str) -> str:
    """A suffix that keeps the copy beside the file. Raises UsageError."""
    separators = {os.sep, os.altsep or os.sep, "/", "\\"}
    if not suffix or len(suffix) > _MOST_SUFFIX or ".." in suffix or not suffix.isprintable() or suffix.isspace():
        raise UsageError(f"--backup-suffix {label(suffix)} is no ending of a name; it must be like .orig")
    if separators & set(suffix) or suffix.endswith(PART):
        raise UsageError(f"--backup-suffix {label(suffix)} is no ending of a name; it must be like .orig")
    return suffix


def backup_path(place: Place, suffix: str) -> Path:
    """Where the copy of a file is: beside the name that the user gave, also where that is a link."""
    return place.named.with_name(place.named.name + suffix)


def check_backup(place: Place, data: bytes, suffix: str) -> None:
    """Find out before the model works whether the copy can be made. Raises NotWritten."""
    path = backup_path(place, suffix)
    try:
        with Folder(path.parent) as folder:
            _is_there(folder, path, data)
    except OSError as error:
        raise _refusal(path, error) from error


def make_backup(place: Place, data: bytes, suffix: str) -> bool:
    """Copy a file's contents, with its mode; False where the copy is there already.

    Raises NotWritten, also for another file of that name, and ChangedOnDisk where the path leads elsewhere by now.
    """
    path = backup_path(place, suffix)
    if os.path.realpath(place.named) != str(place.real):
        raise ChangedOnDisk(f"{label(str(place.named))} leads to another file than it did; nothing was written")
    part = f".specchat-{new_id()}{PART}"
    try:
        with Folder(path.parent) as folder:
            if _is_there(folder, path, data):
                return False
            _sweep(folder)
            try:
                _write(folder, part, data, stat.S_IMODE(os.stat(place.real).st_mode))
                folder.link(part, path.name)  # which replaces nothing
            finally:
                folder.remove(part)
            return True
    except OSError as error:
        raise _refusal(path, error) from error


def _sweep(folder: Folder) -> None:
    """Remove what killed processes left there, of this kind and of writes that nobody remembers any more."""
    for name in filter(_PART.fullmatch, os.listdir(folder.path)):
        with suppress(OSError):
            if time.time() - folder.stat(name).st_mtime > ORPHAN_S:
                folder.remove(name)


def _write(folder: Folder, name: str, data: bytes, mode: int) -> None:
    handle = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(handle, data)
        if hasattr(os, "fchmod"):
            os.fchmod(handle, mode & 0o777)
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_there(folder: Folder, path: Path, data: bytes) -> bool:
    try:
        handle = folder.open(path.name, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        regular(handle)
        same = read_all(handle, len(data)) == data
    finally:
        os.close(handle)
    if not same:
        name = label(str(path))
        raise NotWritten(f"{name} is there already and holds something else; nothing was written")
    return True


def _refusal(path: Path, error: OSError) -> NotWritten:
    name = label(str(path))
    return NotWritten(f"cannot make the copy {name}: {error.strerror or error}; nothing was written")
