"""System calls on the files of one folder, which stays the same one whatever happens to its path meanwhile.

Raises OSError and says nothing to people.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

BLOCK = 1 << 20  # bytes read at once
PART = ".part"  # how a file ends that is not complete

_BY_HANDLE = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
# Never through a link, never waiting for the other end of a pipe, never inherited, bytes as they are.
_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file stood when it was read."""

    named: Path  # as the user named it, seen from the root
    real: Path  # with every link followed
    folder: tuple[int, int]  # device and inode of the folder that holds it


class Folder:
    """A folder that is held open where the system can do that, elsewhere its path. Names in it are never followed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if _BY_HANDLE else None
        try:
            known = os.stat(path if self._handle is None else self._handle)
        except OSError:
            self.close()
            raise
        self.identity = (known.st_dev, known.st_ino)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        if self._handle is not None:
            os.close(self._handle)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor; links and folders are refused."""
        return os.open(self._at(name), flags | _SAFE, mode, dir_fd=self._handle)

    def stat(self, name: str) -> os.stat_result:
        """What the name is itself, be it a link."""
        return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)

    def replace(self, source: str, target: str) -> None:
        """Give a file another's name, in one step."""
        os.replace(self._at(source), self._at(target), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which must be free; a new name where the system knows no second ones."""
        try:
            os.link(self._at(source), self._at(target), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            if self.has(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            self.replace(source, target)

    def has(self, name: str) -> bool:
        """Whether a name is taken, be it by a link to nothing."""
        try:
            self.stat(name)
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        try:
            os.unlink(self._at(name), dir_fd=self._handle)
        except FileNotFoundError:
            return

    def sync(self) -> None:
        """Wait until names are on the disk, where the system knows how."""
        if self._handle is not None:
            try:
                os.fsync(self._handle)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
                    raise

    def _at(self, name: str) -> str:
        if os.path.basename(name) != name or name in ("", os.curdir, os.pardir):
            raise ValueError(f"{name!r} is not the name of a file in a folder")
        return name if self._handle is not None else os.path.join(self.path, name)


def place_of(path: Path) -> Place:
    """Where a path leads now. Raises OSError."""
    named = Path(os.path.join(os.getcwd(), path))  # not normalised: behind a link ".." is elsewhere
    real = Path(os.path.realpath(named))
    with Folder(real.parent) as folder:
        return Place(named, real, folder.identity)


def regular(handle: int) -> os.stat_result:
    """What is known of an open file. Raises OSError for a device, a folder or a pipe."""
    known = os.fstat(handle)
    if stat.S_ISDIR(known.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(known.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return known


def read_all(handle: int, most_bytes: int) -> bytes:
    """What an open file holds, one byte more than `most_bytes` at most."""
    os.lseek(handle, 0, os.SEEK_SET)
    blocks: list[bytes] = []
    left = most_bytes + 1
    while left and (block := os.read(handle, min(left, BLOCK))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)


def write_all(handle: int, data: bytes, offset: int = 0) -> None:
    """Put bytes into an open file at an offset."""
    os.lseek(handle, offset, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


@contextmanager
def private_folder(path: Path) -> Iterator[Folder]:
    """A folder that only the user may read; it is made where it is missing. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o700)
    with Folder(path) as folder:
        yield folder


def create(folder: Folder, name: str, data: bytes) -> None:
    """Make a file that only the user may read, complete or not at all, and wait for the disk."""
    part = f".{name}.{secrets.token_hex(4)}{PART}"
    handle = folder.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        folder.replace(part, name)
    except BaseException:
        folder.remove(part)
        raise
    folder.sync()


def claim(handle: int) -> bool:
    """Hold an open file until it is closed; False where another process, or another part of this one, holds it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
