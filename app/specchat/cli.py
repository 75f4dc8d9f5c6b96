"""The command line. Commands are imported when they are called: `specchat --help` loads no engine."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence

from specchat.parser import parser
from specchat.rewrite.options import take_words

COMMANDS = ("ask", "bench", "chats", "models", "rewrite", "stats", "tune", "undo")
USAGE = 2
MODEL = 4
INPUT = 3
INTERRUPTED = 130
OUTPUT = 5
BROKEN_PIPE = 141

DEFAULTS: dict[str, object] = {
    "command": None,
    "call": "specchat.plain:chat",
    "plain": False,
    "model": None,
    "draft": None,
    "guess": "auto",
    "guess_max": None,
    "rule": "coupled",
    "system": None,
    "temp": 0.7,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "repeat_penalty": 1.0,
    "repeat_last_n": 64,
    "seed": None,
    "max_tokens": None,
    "stop": [],
    "on_full": None,
    "ctx": None,
    "cache_type": "f16",
    "threads": None,
    "yes": False,
    "resume": None,
    "private": False,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors that have a name become one line on stderr and an exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        if given[0].endswith(".gguf"):
            given.insert(0, "--model")
        else:
            near = difflib.get_close_matches(given[0], COMMANDS, 1)
            hint = f"; did you mean {near[0]}?" if near else f'; to ask something: specchat ask "{given[0]}"'
            return _fail(f"no command is named {given[0]!r}{hint}", USAGE)
    command_line = parser()
    args, rest = command_line.parse_known_args(given)
    if rest := take_words(args, rest):
        command_line.error(f"unrecognized arguments: {' '.join(rest)}")
    args.given = dict(vars(args))  # what was asked for, apart from what is so by default
    for name, value in DEFAULTS.items():
        if not hasattr(args, name):
            setattr(args, name, value)
    _mend_streams()
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if args.command is None and not args.plain and on_terminal:
        args.call = "specchat.tui.command:run"
    elif args.resume is not None and (args.plain or not on_terminal):
        return _fail("a chat goes on in the app, which needs a terminal; see also: specchat chats show", USAGE)
    module, _, function = args.call.partition(":")
    try:
        code: int = getattr(importlib.import_module(module), function)(args)
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left; nothing more can be said there
        return BROKEN_PIPE
    except OSError as error:  # what a command reads it answers for itself, so this is its output
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _fail(f"cannot write the output: {error.strerror or error}", OUTPUT)
    except Exception as error:
        exit_code = _exit_code(error)
        if exit_code is None:
            raise
        return _fail(str(error), exit_code)


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
        return INTERRUPTED
    if isinstance(error, ContextFull):
        return INPUT
    return MODEL if isinstance(error, SpeculationError | TemplateError) else None


def _fail(text: str, code: int) -> int:
    from specchat.console import say

    say(f"specchat: {' '.join(text.split())}")
    return code
