"""Refusals of a rewrite: what the model wrote, or what became of the file meanwhile."""

from __future__ import annotations

from specchat.errors import Refusal
from specchat.exit_codes import ExitCode


class OutputRefused(Refusal):
    """What the model wrote is not put into the file; the text says why."""

    exit_code = ExitCode.OUTPUT


class NotWritten(OutputRefused):
    """The disk refused; the file is as it was."""


class ChangedOnDisk(Refusal):
    """The file is not what was read; nothing was written."""

    exit_code = ExitCode.CHANGED_ON_DISK
