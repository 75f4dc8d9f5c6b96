"""From words of a command line to names of files: folders and patterns become the text files that they stand for.

A file that is named literally is always taken, unless an exclusion names it. What a folder or a pattern stands for
leaves out what git ignores, hidden files, links, and what is not text.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from specchat.attachments import find_all_files, find_files, known_to_git, label
from specchat.console import say
from specchat.errors import InputRefused
from specchat.rewrite.source import MOST_BYTES, looks_like_text

STANDARD_INPUT = "-"
_HEAD = 8192  # bytes of a file that tell whether it is text


def chosen(words: Iterable[str], listed: Iterable[str], exclude: Sequence[str], *, ignores: bool) -> list[str]:
    """The files that words of a command line and names of a list stand for, each file once.

    `ignores` is whether git may leave files out. Raises InputRefused for a folder or a pattern that stands for none.
    """
    names: list[str] = []
    for word in words:
        if word != STANDARD_INPUT and os.path.isdir(word):
            names += _kept(word, _in_folder(word, ignores=ignores), exclude)
        elif word != STANDARD_INPUT and not os.path.lexists(word) and glob.has_magic(word):
            names += _kept(word, _matching(word, ignores=ignores), exclude)
        else:
            names.append(word)
    names += listed
    left = [name for name in names if name == STANDARD_INPUT or not _excluded(name, exclude)]
    return list({_identity(name): name for name in reversed(left)}.values())[::-1]


def check_folder() -> None:
    """Raise InputRefused where the folder that one is in is gone: no name could be looked up from there."""
    try:
        os.getcwd()
    except OSError as error:
        raise InputRefused("the folder that you are in is gone; go to one that is there") from error


def is_about_files(word: str) -> bool:
    """Whether a word where an instruction may stand is meant for a file: it names one, or is a single word."""
    return word == STANDARD_INPUT or os.path.lexists(word) or len(word.split()) < 2


def _identity(name: str) -> str | tuple[int, int]:
    """What two names of one file share."""
    if name == STANDARD_INPUT:
        return name
    try:
        known, real = os.stat(name), os.path.realpath(name)
    except (OSError, ValueError):  # it is refused when its turn comes
        return name
    return (known.st_dev, known.st_ino) if known.st_nlink > 1 else real


def _in_folder(folder: str, *, ignores: bool) -> list[str]:
    found = find_files(Path(folder)) if ignores else find_all_files(Path(folder))
    # Git knows hidden files too, but nobody who names a folder means .gitignore or .github/ci.yml.
    return [os.path.join(folder, name) for name in found if not any(part.startswith(".") for part in name.split("/"))]


def _matching(pattern: str, *, ignores: bool) -> list[str]:
    found = sorted(name for name in glob.glob(pattern, recursive=True) if not os.path.isdir(name))
    root = os.path.dirname(pattern[: re.search(r"[*?[]", pattern).start()])  # type: ignore[union-attr] # it has one
    known = known_to_git(Path(root or os.curdir)) if found and ignores else None
    if known is None:
        return found
    taken = {os.path.normpath(os.path.join(root, name)) for name in known}
    return [name for name in found if os.path.normpath(name) in taken]


def _kept(word: str, names: Iterable[str], exclude: Sequence[str]) -> list[str]:
    """The names of texts. What else there was is told; InputRefused where nothing is left."""
    left_out: Counter[str] = Counter()
    kept = []
    for name in names:
        why = "excluded" if _excluded(name, exclude) else _unfit(name)
        if why:
            left_out[why] += 1
        else:
            kept.append(name)
    told = ", ".join(f"{count} ({why})" for why, count in left_out.items())
    if not kept:
        raise InputRefused(f"{label(word)} stands for no text file{f'; left out: {told}' if told else ''}")
    if told:
        say(f"note: left out of {label(word)}: {told}")
    return kept


def _unfit(name: str) -> str:
    """Why a file that nobody named itself is left out; "" for no reason."""
    if os.path.islink(name):
        return "links"  # which may lead anywhere
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            return "no regular files"  # opening a pipe would wait for its other end
        with open(name, "rb") as file:
            head = file.read(_HEAD)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return ""  # it is told when its turn comes
    if not head:
        return "empty"
    if size > MOST_BYTES:
        return "too large"
    return "" if looks_like_text(head) else "not text"


def _excluded(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern names a file or a folder that it stands in: by a part of its path, or with "/" by all of it."""
    if not patterns:
        return False
    path = os.path.normpath(name)
    if os.path.isabs(path):
        path = os.path.relpath(path) if Path(path).is_relative_to(os.getcwd()) else path
    return any(_matches(path, os.path.normpath(pattern)) for pattern in patterns)


def _matches(path: str, pattern: str) -> bool:
    return any(fnmatchcase(each, pattern) for each in _ways(path, whole=os.sep in pattern))


def _ways(path: str, *, whole: bool) -> Iterator[str]:
    parts = path.split(os.sep)
    for i, part in enumerate(parts):
        yield os.sep.join(parts[: i + 1]) if whole else part
