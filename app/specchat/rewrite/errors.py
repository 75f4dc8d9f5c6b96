"""Refusals of a rewrite: what the model wrote, or what became of the file meanwhile."""

from __future__ import annotations

from specchat.errors import Refusal
from specchat.exit_codes import ExitCode


class OutputRefused(Refusal):
    """What the model wrote is not put into the file; the text says why."""

    exit_code = ExitCode.OUTPUT


class NotWritten(OutputRefused):
    """The disk refused; the file is as it was."""


class NotKept(NotWritten):
    """The copies to undo with cannot be kept."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(f"cannot keep a copy of {name} to undo with: {error.strerror or error}; nothing was written")


class ChangedOnDisk(Refusal):
    """The file is not what was read; nothing was written."""

    exit_code = ExitCode.CHANGED_ON_DISK
