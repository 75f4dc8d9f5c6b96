"""The command that the user wants to run behind a write: a formatter, a linter, a test; and what its failure means."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specchat.attachments import label
from specchat.errors import UsageError


class AfterFail(StrEnum):
    """What becomes of a file when the command fails."""

    ASK = "ask"  # where nobody can be asked, it is kept
    KEEP = "keep"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command did not do what it should."""

    reason: str
    interrupted: bool = False


def command_of(text: str | None) -> tuple[str, ...]:
    """The words of a command line, which no shell sees. Raises UsageError."""
    if text is None:
        return ()
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--after: {error}") from error
    if not command:
        raise UsageError("--after is empty; it must name a command")
    return command


def run_after(command: Sequence[str], path: Path) -> Failure | None:
    """Run a command with the path in the place of {}; None where it did well, or where there is none."""
    if not command:
        return None
    words = [word.replace("{}", str(path)) for word in command]
    name = label(words[0])
    try:
        # Its output is for people: standard output carries the result of this command alone.
        code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode
    except KeyboardInterrupt:
        return Failure(f"{name} was interrupted", interrupted=True)
    except (OSError, ValueError) as error:
        return Failure(f"{name} cannot run: {getattr(error, 'strerror', None) or error}")
    return Failure(f"{name} ended with {code}") if code else None
