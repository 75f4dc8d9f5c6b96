"""A file's contents replaced in one step: the old ones or the new ones, whatever happens, and all else as it was.

A new file beside takes the old one's name. Where that would lose something (another name of the same file, its owner,
an attribute), the bytes are replaced in place: a process that is killed meanwhile leaves a mixture, which `torn`
recognises, so that whoever kept both contents can finish it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from specchat.attachments import label
from specchat.rewrite.disk import Folder, Place, read_all, regular, write_all
from specchat.rewrite.errors import ChangedOnDisk, NotWritten

_NO_ATTRIBUTES = (errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP)
_CANNOT_KEEP = (errno.EPERM, errno.EACCES, *_NO_ATTRIBUTES)


class _NotAlike(Exception):
    """A file beside cannot be made like the old one."""


def replace_contents(place: Place, old: bytes, new: bytes, part: str, before_overwriting: Callable[[], None]) -> None:
    """Put `new` into a file that must still hold `old`. `part` is the name of the file beside, which must be free.

    Raises ChangedOnDisk and NotWritten; the file is then as it was. `before_overwriting` is called before the first
    byte is replaced in place.
    """
    name = label(str(place.named))
    try:
        with _folder(place, name) as folder:
            known = _check(folder, place, old, name)
            if known.st_nlink == 1 and _made_beside(folder, place.real.name, part, known, new):
                try:
                    again = _check(folder, place, old, name)
                    if (again.st_dev, again.st_ino) != (known.st_dev, known.st_ino):
                        raise ChangedOnDisk(f"{name} was replaced meanwhile; nothing was written")
                    folder.replace(part, place.real.name)
                except BaseException:
                    folder.remove(part)
                    raise
                _synced(folder)
            else:
                before_overwriting()
                _overwrite(folder, place.real.name, old, new, name)
    except OSError as error:
        raise NotWritten(f"cannot write {name}: {error.strerror or error}; it is as it was") from error


def check_file(place: Place, old: bytes) -> None:
    """Find out before the model works whether a file could be written. Raises as `replace_contents`."""
    name = label(str(place.named))
    try:
        with _folder(place, name) as folder:
            _check(folder, place, old, name)
    except OSError as error:
        raise NotWritten(f"cannot write {name}: {error.strerror or error}; it is as it was") from error


def contents(place: Place, most_bytes: int) -> bytes | None:
    """What the file holds now, cut at a limit; None where it is gone. Raises ChangedOnDisk for another kind of file."""
    name = label(str(place.named))
    try:
        with _folder(place, name) as folder, _opened(folder, place.real.name, os.O_RDONLY) as handle:
            regular(handle)
            return read_all(handle, most_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ChangedOnDisk(f"cannot read {name} again: {error.strerror or error}") from error


def torn(present: bytes, old: bytes, new: bytes) -> bool:
    """Whether bytes are what an interrupted replacement in place leaves of two contents, or its interrupted undoing."""
    return present not in (old, new) and (_on_the_way(present, old, new) or _on_the_way(present, new, old))


def finish_torn(place: Place, present: bytes, new: bytes) -> None:
    """Complete an interrupted replacement in place. Raises ChangedOnDisk and OSError."""
    name = label(str(place.named))
    with _folder(place, name) as folder:
        _check(folder, place, present, name)
        _overwrite(folder, place.real.name, present, new, name)


def remove_part(place: Place, part: str) -> None:
    """Take away the file beside that a killed process left. Raises ChangedOnDisk and OSError."""
    with _folder(place, label(str(place.named))) as folder:
        folder.remove(part)


@contextmanager
def _folder(place: Place, name: str) -> Iterator[Folder]:
    """The folder that held the file when it was read."""
    if os.path.realpath(place.named) != str(place.real):
        raise ChangedOnDisk(f"{name} leads to another file than it did; nothing was written")
    with Folder(place.real.parent) as folder:
        if folder.identity != place.folder:
            raise ChangedOnDisk(f"the folder of {name} is another one than it was; nothing was written")
        yield folder


@contextmanager
def _opened(folder: Folder, name: str, flags: int) -> Iterator[int]:
    handle = folder.open(name, flags)
    try:
        yield handle
    finally:
        os.close(handle)


def _check(folder: Folder, place: Place, old: bytes, name: str) -> os.stat_result:
    """What is known of the file, if it holds `old` and may be written."""
    try:
        # Opening for writing asks the system for leave, which a new file beside would not.
        with _opened(folder, place.real.name, os.O_RDWR) as handle:
            known = regular(handle)
            same = read_all(handle, len(old)) == old
    except FileNotFoundError as error:
        raise ChangedOnDisk(f"{name} is gone; nothing was written") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO):
            raise ChangedOnDisk(f"{name} is not the file that was read; nothing was written") from error
        raise
    if not same:
        raise ChangedOnDisk(f"{name} changed since it was read; nothing was written")
    if not known.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):  # which does not stop the superuser
        raise NotWritten(f"{name} is read-only; nothing was written")
    return known


def _made_beside(folder: Folder, name: str, part: str, known: os.stat_result, data: bytes) -> bool:
    """Make a file beside that is like the old one in all but its contents; False where that cannot be."""
    try:
        handle = folder.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except PermissionError:
        return False
    try:
        try:
            with _opened(folder, name, os.O_RDONLY) as original:
                _make_alike(handle, original, known)
            write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
    except _NotAlike:
        folder.remove(part)
        return False
    except BaseException:
        folder.remove(part)
        raise
    return True


def _make_alike(handle: int, original: int, known: os.stat_result) -> None:
    try:
        made = os.fstat(handle)
        if hasattr(os, "fchown") and (made.st_uid, made.st_gid) != (known.st_uid, known.st_gid):
            os.fchown(handle, known.st_uid, known.st_gid)
        _copy_attributes(handle, original)
        if hasattr(os, "fchmod"):  # after the owner, whose change clears some bits
            os.fchmod(handle, stat.S_IMODE(known.st_mode))
    except OSError as error:
        if error.errno in _CANNOT_KEEP:
            raise _NotAlike from error
        raise


def _copy_attributes(handle: int, original: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    wanted, present = _attributes(original), _attributes(handle)
    for name in present.keys() - wanted.keys():
        os.removexattr(handle, name)
    for name, value in wanted.items():
        if present.get(name) != value:
            os.setxattr(handle, name, value)


def _attributes(handle: int) -> dict[str, bytes]:
    try:
        return {name: os.getxattr(handle, name) for name in os.listxattr(handle)}
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return {}
        raise


def _overwrite(folder: Folder, name: str, old: bytes, new: bytes, shown: str) -> None:
    with _opened(folder, name, os.O_RDWR) as handle:
        try:
            _put(handle, len(old), new)
        except BaseException as error:
            try:
                _put(handle, os.fstat(handle).st_size, old)
            except OSError as again:
                reason = f"{error}, nor put it back: {again.strerror or again}"
                raise NotWritten(f"cannot write {shown}: {reason}; `specchat undo` has what it held") from error
            raise


def _put(handle: int, size: int, data: bytes) -> None:
    """Replace a file's bytes. What makes it grow comes first, so that a full disk is met before an old byte is lost."""
    if len(data) > size:
        write_all(handle, data[size:], size)
        os.fsync(handle)
    write_all(handle, data[:size])
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _on_the_way(present: bytes, old: bytes, new: bytes) -> bool:
    """Whether `_put` passes through these bytes."""
    room = min(len(old), len(new))
    if len(old) <= len(present) < len(new):
        return present[:room] == old and present[room:] == new[room : len(present)]
    longer = new if len(new) > len(old) else old
    if len(present) != len(longer) or present[room:] != longer[room:]:
        return False
    done = _common(present[:room], new)
    return present[done:room] == old[done:room]


def _synced(folder: Folder) -> None:
    """Wait for the disk. The new file has its name by now, so a refusal here is no failure to write."""
    try:
        folder.sync()
    except OSError:
        return


def _common(one: bytes, other: bytes) -> int:
    """How many bytes are the same at the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
