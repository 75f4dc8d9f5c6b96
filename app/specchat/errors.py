"""Refusals that are meant for people: one line of text and the exit code of the command."""

from __future__ import annotations

from specchat.exit_codes import ExitCode


class Refusal(Exception):
    """Base of errors whose text is shown as it is."""

    exit_code: int = ExitCode.CHECK_FAILED


class UsageError(Refusal):
    """An option or setting with a value that cannot be used."""

    exit_code = ExitCode.USAGE


class InputRefused(Refusal):
    """A prompt or attachment that cannot be used; the text names it and says why."""

    exit_code = ExitCode.INPUT


class NotHere(Refusal):
    """A model that has to be fetched first, and nobody to ask; the text says how."""

    exit_code = ExitCode.MODEL


class NoGuesser(NotHere, ValueError):
    """A guesser that was chosen and is not loaded; the text says how to have it."""


class Declined(Refusal):
    """The user said no; the text repeats what was not done."""

    exit_code = ExitCode.DECLINED


def in_one_line(error: Exception) -> str:
    """An error as one line for people; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
