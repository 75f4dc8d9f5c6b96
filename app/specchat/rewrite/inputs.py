"""From words of a command line to files: what is to be rewritten, how, and what is to become of it."""

from __future__ import annotations

import glob
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specchat.attachments import label
from specchat.console import can_ask, say
from specchat.errors import InputRefused, UsageError
from specchat.rewrite.checks import Rails, rails
from specchat.rewrite.part import range_of
from specchat.rewrite.source import MOST_BYTES, SourceFile, read_source, source_of

STANDARD_INPUT = "standard input"
_MOST_NAMES = 16 << 20  # bytes of a list of files


class Mode(StrEnum):
    """What becomes of a rewrite."""

    REVIEW = "review"
    WRITE = "write"
    DIFF = "diff"
    STDOUT = "stdout"
    CHECK = "check"
    DRY_RUN = "dry-run"

    @property
    def writes(self) -> bool:
        """Whether files may change."""
        return self in (Mode.REVIEW, Mode.WRITE)


@dataclass(frozen=True, slots=True)
class Job:
    """What a command line asks for."""

    names: tuple[str, ...]  # of files; "-" is standard input
    instruction: str
    mode: Mode
    guard: Rails
    lines: str | None
    encoding: str | None
    after: tuple[str, ...]  # a command to run after writing
    strict: bool
    force: bool
    keeps_backup: bool
    as_json: bool

    def read(self, name: str, piped: bytes) -> SourceFile:
        """A file as it is now. Raises InputRefused, and UsageError for an encoding that does not exist."""
        if name == "-":
            return source_of(piped, STANDARD_INPUT, None, self.encoding)
        return read_source(Path(name), self.encoding)


def job_of(args: Namespace) -> Job:
    """What the arguments ask for; lists of files are read. Raises UsageError, InputRefused."""
    words = list(args.words)
    instruction = words.pop().strip() if words else ""
    names = [*_expanded(words), *_listed(args)]
    names = list({os.path.realpath(name) if name != "-" else name: name for name in reversed(names)}.values())[::-1]
    if not instruction or not (names or args.files_from):
        raise UsageError('name the files, then say what to do: specchat rewrite notes.md "fix the spelling"')
    if os.path.isfile(instruction):
        raise UsageError(f"the last word says what to do, but {label(instruction)} is a file")
    mode = _mode(args, names)
    if "-" in names and (len(names) > 1 or mode.writes):
        raise UsageError("- is standard input: it stands alone, and its result goes to standard output")
    if len(names) > 1 and (args.lines is not None or mode is Mode.STDOUT):
        raise UsageError(f"{'--lines' if args.lines is not None else '--stdout'} takes one file")
    if args.lines is not None:
        range_of(args.lines)
    if args.max_change is not None and not 0 <= args.max_change <= 100:
        raise UsageError(f"--max-change is {args.max_change:g}; it must be a share in percent")
    after = _command(args.after)
    if after and not mode.writes:
        raise UsageError("--after runs after writing, and nothing is written in this mode; add --write")
    return Job(
        names=tuple(names),
        instruction=instruction,
        mode=mode,
        guard=rails(args.max_change, filter(None, args.keep.split(",")), args.protect),
        lines=args.lines,
        encoding=args.encoding,
        after=after,
        strict=args.strict,
        force=args.force,
        keeps_backup=not args.no_backup,
        as_json=args.json,
    )


def read_piped() -> bytes:
    """Standard input, as far as a file may be long."""
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _mode(args: Namespace, names: Iterable[str]) -> Mode:
    if args.mode is not None:
        return Mode(args.mode)
    if "-" in names:
        return Mode.STDOUT
    if can_ask() and sys.stdout.isatty() and not args.json:
        return Mode.REVIEW
    say("note: nothing is written without --write or a terminal to ask on; this is what would change")
    return Mode.DIFF


def _expanded(words: Iterable[str]) -> Iterator[str]:
    """Words with the patterns that no shell has expanded."""
    for word in words:
        found = [] if word == "-" or os.path.lexists(word) else sorted(glob.glob(word, recursive=True))
        yield from found or [word]


def _listed(args: Namespace) -> list[str]:
    if args.files_from is None:
        return []
    if args.files_from == "-":
        data = sys.stdin.buffer.read(_MOST_NAMES)
    else:
        try:
            with open(args.files_from, "rb") as file:
                data = file.read(_MOST_NAMES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputRefused(f"cannot read {label(args.files_from)}: {reason}") from error
    names = data.split(b"\0") if args.null else data.splitlines()
    found = [os.fsdecode(name) for name in names if name]
    return [os.path.join(os.curdir, name) if name == "-" else name for name in found]


def _command(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--after: {error}") from error
    if not command:
        raise UsageError("--after is empty; it must name a command")
    return command
