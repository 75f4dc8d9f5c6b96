"""From words of a command line to a job: what is to be rewritten, how, and what is to become of it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specchat.attachments import label
from specchat.console import can_ask, say
from specchat.errors import InputRefused, UsageError
from specchat.rewrite.after import AfterFail, command_of
from specchat.rewrite.backups import checked_suffix
from specchat.rewrite.checks import Rails, rails
from specchat.rewrite.choosing import STANDARD_INPUT, chosen, is_about_files
from specchat.rewrite.endings import Endings
from specchat.rewrite.expressions import Expression
from specchat.rewrite.long import Chunks
from specchat.rewrite.merge import FinalNewline, LineEnds
from specchat.rewrite.part import Part, part_between, part_of, parts_matching, range_of
from specchat.rewrite.recipes import find_recipe, values_of
from specchat.rewrite.shown import Format
from specchat.rewrite.source import MOST_BYTES, SourceFile, read_source, source_of
from specchat.rewrite.terms import Terms

_SHOWN_INPUT = "standard input"
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
class Where:
    """Which part of a file may change; without any of these all of it."""

    lines: str | None = None
    between: tuple[Expression, Expression] | None = None
    match: Expression | None = None

    def parts(self, source: SourceFile) -> list[Part] | None:
        """The parts of a file; None for all of it. Raises UsageError, and InputRefused where there are none."""
        if self.lines is not None:
            return [part_of(source, self.lines)]
        if self.between is not None:
            return [part_between(source, *self.between)]
        return None if self.match is None else parts_matching(source, self.match)


@dataclass(frozen=True, slots=True)
class Job:
    """What a command line asks for."""

    names: tuple[str, ...]  # of files; "-" is standard input
    instruction: str  # "" only where `goes_on`, for that of the rewrite that was cut off
    mode: Mode
    terms: Terms
    where: Where
    encoding: str | None
    chunks: Chunks
    goes_on: bool
    after: tuple[str, ...]  # a command to run after writing
    after_fail: AfterFail
    force: bool
    shown: Format
    as_json: bool

    def read(self, name: str, piped: bytes, encoding: str | None = None) -> SourceFile:
        """A file as it is now. Raises InputRefused, and UsageError for an encoding that does not exist."""
        if name == STANDARD_INPUT:
            return source_of(piped, _SHOWN_INPUT, None, encoding if self.encoding is None else self.encoding)
        return read_source(Path(name), encoding if self.encoding is None else self.encoding)


def job_of(args: Namespace) -> Job:
    """What the arguments ask for; lists of files and recipes are read. Raises UsageError, InputRefused."""
    words, instruction, guard = _asked(args)
    listed = _listed(args)
    names = chosen(words, listed, args.exclude, ignores=not args.no_ignore)
    if not (words or args.files_from) or not (instruction or args.goes_on):
        raise UsageError('name the files, then say what to do: specchat rewrite notes.md "fix the spelling"')
    mode = _mode(args, names)
    _refuse_what_does_not_go_together(args, names, mode)
    after = command_of(args.after)
    return Job(
        names=tuple(names),
        instruction=instruction,
        mode=mode,
        terms=_terms(args, guard),
        where=_where(args),
        encoding=args.encoding,
        chunks=Chunks(args.chunk),
        goes_on=args.goes_on,
        after=after,
        after_fail=AfterFail(args.after_fail),
        force=args.force,
        shown=Format(args.format or Format.UNIFIED),
        as_json=args.json,
    )


def read_piped() -> bytes:
    """Standard input, as far as a file may be long."""
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _terms(args: Namespace, guard: Rails) -> Terms:
    return Terms(
        guard=guard,
        strict=args.strict,
        endings=Endings(LineEnds(args.eol), FinalNewline(args.final_newline)),
        backup_suffix=None if args.backup_suffix is None else checked_suffix(args.backup_suffix),
        keeps_backup=not args.no_backup,
    )


def _where(args: Namespace) -> Where:
    if args.lines is not None:
        range_of(args.lines)
    between = [Expression(each, "--between") for each in args.between or ()]
    match = None if args.match is None else Expression(args.match, "--match")
    return Where(args.lines, (between[0], between[1]) if between else None, match)


def _asked(args: Namespace) -> tuple[list[str], str, Rails]:
    """The words that name files, what is to be done, and the guard rails."""
    if args.max_change is not None and not 0 <= args.max_change <= 100:
        raise UsageError(f"--max-change is {args.max_change:g}; it must be a share in percent")
    guard = rails(args.max_change, filter(None, args.keep.split(",")), args.protect)
    words, values = list(args.words), values_of(args.values)
    if values and args.recipe is None:
        raise UsageError("-p gives a variable of a recipe; name the recipe with -r")
    recipe = None if args.recipe is None else find_recipe(args.recipe)
    optional = recipe is not None or args.goes_on
    said = words.pop().strip() if words and not (optional and is_about_files(words[-1])) else ""
    if os.path.isfile(said) or os.path.isdir(said):
        what = "a folder" if os.path.isdir(said) else "a file"
        raise UsageError(f"the last word says what to do, but {label(said)} is {what}")
    if recipe is not None:
        said = "\n\n".join(filter(None, (recipe.filled(values), said)))
        guard = recipe.guard(guard)
    if not _is_utf8(said):
        raise UsageError("what is to be done is no UTF-8 text, so no model can read it")
    return words, said, guard


def _is_utf8(text: str) -> bool:
    """Whether words of a command line are text; bytes that are none stand in them as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_what_does_not_go_together(args: Namespace, names: Sequence[str], mode: Mode) -> None:
    if STANDARD_INPUT in names and (len(names) > 1 or mode.writes):
        raise UsageError("- is standard input: it stands alone, and its result goes to standard output")
    if STANDARD_INPUT in names and args.goes_on:
        raise UsageError("--continue takes files; nothing is kept of what is piped in")
    if len(names) > 1 and (args.lines is not None or mode is Mode.STDOUT):
        raise UsageError(f"{'--lines' if args.lines is not None else '--stdout'} takes one file")
    if not mode.writes:
        for name, flag in (("after", "--after"), ("backup_suffix", "--backup-suffix")):
            if args.given[name] is not None:
                raise UsageError(f"{flag} is about writing, and nothing is written in this mode; add --write")
    if args.given["after_fail"] is not None and args.after is None:
        raise UsageError("--after-fail is about --after, which is missing")
    if args.format is None or (args.format == Format.JSON and args.json):
        return
    if mode is not Mode.DIFF and (mode is not Mode.REVIEW or args.format == Format.JSON):
        raise UsageError(f"--format {args.format} shows changes: it goes with --diff or with the review")


def _mode(args: Namespace, names: Sequence[str]) -> Mode:
    if args.mode is not None:
        return Mode(args.mode)
    if STANDARD_INPUT in names:
        return Mode.STDOUT
    if args.format == Format.JSON:
        return Mode.DIFF
    if can_ask() and sys.stdout.isatty() and not args.json:
        return Mode.REVIEW
    say("note: nothing is written without --write or a terminal to ask on; this is what would change")
    return Mode.DIFF


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
    return [os.path.join(os.curdir, name) if name == STANDARD_INPUT else name for name in found]
