"""The command line. Commands are imported when they are called: `specchat --help` loads no engine."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from time import perf_counter

from specchat.errors import UsageError
from specchat.exit_codes import ExitCode
from specchat.parser import commands_of, parser
from specchat.rewrite.options import take_words

APP, LINES = "specchat.tui.command:run", "specchat.plain:chat"

DEFAULTS: dict[str, object] = {
    "command": None,
    "call": LINES,
    "yes": False,
    "resume": None,
    "private": False,
    "endpoint": None,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors that have a name become one line on stderr and an exit code."""
    try:
        args = parsed(sys.argv[1:] if argv is None else argv)
    except UsageError as error:
        return _fail(str(error), error.exit_code)
    except OSError as error:  # of help
        return _unwritten(error)
    _mend_streams()
    from specchat.crash import threads_watched
    from specchat.logs import log_path, note, opened_log

    command, started = args.command or "chat", perf_counter()
    with opened_log(log_path()), threads_watched(command):
        code = _called(args, command)
        note(f"command.{command}", seconds=perf_counter() - started, code=code)
    return code


def parsed(given: Sequence[str]) -> Namespace:
    """What the words of a command line ask for. Raises UsageError for a wrong command, SystemExit for wrong options."""
    words, command_line = list(given), parser()
    commands = commands_of(command_line)
    if words and not words[0].startswith("-") and words[0] not in commands:
        if not words[0].endswith(".gguf"):
            near = difflib.get_close_matches(words[0], commands, 1)
            hint = f"; did you mean {near[0]}?" if near else f'; to ask something: specchat ask "{words[0]}"'
            raise UsageError(f"no command is named {words[0]!r}{hint}")
        words.insert(0, "--model")
    args, rest = command_line.parse_known_args(words)
    if rest := take_words(args, rest):
        commands.get(args.command, command_line).error(f"unrecognized arguments: {' '.join(rest)}")
    args.given = dict(vars(args))  # what was asked for, apart from what is so by default
    for name, value in DEFAULTS.items():
        if not hasattr(args, name):
            setattr(args, name, value)
    return args


def _called(args: Namespace, command: str) -> int:
    """Call the function that a command stands for. Returns the exit code, whatever happens."""
    try:
        _settle(args)
        module, _, function = args.call.partition(":")
        code: int = getattr(importlib.import_module(module), function)(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except OSError as error:  # what a command reads it answers for itself, so this is its output
        return _unwritten(error)
    except Exception as error:
        exit_code = _exit_code(error)
        if exit_code is None:
            from specchat.crash import tell

            return tell(error, command)
        return _fail(str(error), exit_code)


def _unwritten(error: OSError) -> int:
    """The exit code of a command whose output cannot be written; where the reader left there is nothing to say."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
        return ExitCode.BROKEN_PIPE
    return _fail(f"cannot write the output: {error.strerror or error}", ExitCode.OUTPUT)


def _settle(args: Namespace) -> None:
    """Give a command its settings, and a chat its front end. Raises UsageError, also for a file that is wrong."""
    from specchat.settings.reading import working_folder
    from specchat.settings.taking import take_settings

    take_settings(args, os.environ, working_folder())
    if (chosen := getattr(args, "chosen", None)) is None:
        return
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if args.call in (APP, LINES):
        args.call = LINES if args.plain or not on_terminal else APP
    if args.call == APP:
        return  # which tells by itself, and goes on without a file that is wrong
    if chosen.problem is not None:
        raise chosen.problem
    from specchat.console import say

    for notice in chosen.notices:
        say(f"note: {notice}")


def _mend_streams() -> None:
    """Streams that are closed or that cannot spell a character must not end a chat with a traceback."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 # it stays open as long as the process
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _exit_code(error: Exception) -> int | None:
    """The exit code of an error that is meant for people; None for a fault of ours."""
    from specchat.template import TemplateError
    from speculation.engine import ContextFull
    from speculation.types import Interrupted, SpeculationError

    declared = getattr(error, "exit_code", None)
    if isinstance(declared, int):
        return declared
    if isinstance(error, Interrupted):
        return ExitCode.INTERRUPTED
    if isinstance(error, ContextFull):
        return ExitCode.INPUT
    return ExitCode.MODEL if isinstance(error, SpeculationError | TemplateError) else None


def _fail(text: str, code: int) -> int:
    from specchat.console import say

    say(f"specchat: {' '.join(text.split())}")
    return code
