"""Words that name files, from `/rewrite` or a line to type in: paths, patterns, parts of files. Knows no screen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.attachments import find_files, is_file, label, typed_path
from specchat.rewrite.checks import Rails

if TYPE_CHECKING:
    from specchat.rewrite.partial import Partial

MOST_FILES = 200  # in one rewrite: more cannot be reviewed
_SHOWN_REQUEST = 40  # characters of one

_WORD = re.compile(r"""(?:"([^"]*)"|'([^']*)')(?!\S)|(\S+)""")
_PART = re.compile(r"(.+?):([0-9]{1,9}(?:[-:][0-9]{0,9})?)", re.DOTALL)
_MAGIC = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class Target:
    """A file that is to be rewritten."""

    path: Path  # as it was named, seen from the root
    real: Path  # with every link followed, when it was named
    lines: str = ""  # the only ones that may change, such as "10:40"
    name: str = field(default="", compare=False)  # seen from the folder, fit to be shown

    def is_outside(self, folder: Path) -> bool:
        """Whether it really stands elsewhere than below a folder, as behind a link or a ".."."""
        return not self.real.is_relative_to(os.path.realpath(folder))


@dataclass(frozen=True, slots=True)
class RewriteWanted:
    """Files, what to do with them, and what must not change in them."""

    targets: tuple[Target, ...]
    instruction: str
    guard: Rails = field(default_factory=Rails)
    goes_on: Partial | None = None  # the rewrite of the only target that was cut off before


@dataclass(frozen=True, slots=True)
class Word:
    """A word without its quotes, and where it stands with them."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Meant:
    """What words mean."""

    targets: tuple[Target, ...] = ()
    problem: str = ""  # with the first word that means nothing
    sought: str = ""  # the first pattern of which it is not known what fits it


def words_in(text: str) -> list[Word]:
    """Words between blanks; quotes around one hold its blanks together."""
    return [
        Word(next(group for group in found.groups() if group is not None), found.start(), found.end())
        for found in _WORD.finditer(text)
    ]


def quoted(text: str) -> str:
    """A text as one word."""
    if re.search(r"\s|^['\"]", text) is None and text:
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def files_and_instruction(text: str, root: Path) -> tuple[str, str]:
    """What stands behind `/rewrite`: words that name files, the first one whatever it is, then what to do."""
    text = text.strip()
    words = words_in(text)
    n = 1
    while n < len(words) and _names_a_file(words[n].text, root):
        n += 1
    names, rest = words[:n], words[n:]
    if not names:
        return "", ""
    whole = rest[0].text if len(rest) == 1 else text[names[-1].end :].strip()
    return text[: names[-1].end], whole


def files_meant(
    text: str, root: Path, known: Mapping[str, Path], fitting: Mapping[str, Sequence[Path]], lines: str = ""
) -> Meant:
    """The files that a line means. `known` are words that stand for paths which cannot be typed, `fitting` is what is
    known of patterns, `lines` the part of a file that is named beside it."""
    whole = text.strip()
    if whole in known or is_file(typed_path(root, whole)):  # a name with blanks
        words = [whole] if whole else []
    else:
        words = [word.text for word in words_in(text)]
    found: list[Target] = []
    for word in words:
        paths, part = _paths(word, root, known, fitting)
        if paths is None:
            return Meant(tuple(found), sought=word)
        if not paths:
            return Meant(tuple(found), _problem(word, root))
        found += [Target(path, Path(os.path.realpath(path)), part, _name(path, root)) for path in paths]
    once: dict[tuple[Path, str], Target] = {}
    for each in found:
        once.setdefault((each.real, each.lines), each)
    targets = tuple(once.values())
    if len(targets) > MOST_FILES:
        return Meant(targets, f"these are {len(targets):,} files; {MOST_FILES} can be reviewed at once")
    if not lines.strip():
        return Meant(targets)
    if len(targets) > 1:
        return Meant(targets, "lines are of one file; of several: a.md:10-40 b.md:5-9")
    return Meant(tuple(replace(each, lines=lines.strip().replace("-", ":")) for each in targets))


def meant_in_words(meant: Meant, root: Path) -> list[str]:
    """What is to be known of them before they are rewritten, in lines that are fit to be shown."""
    outside = [each for each in meant.targets if each.is_outside(root)]
    lines = [f"outside this folder: {label(str(each.real))}" for each in outside[:2]]
    lines += [f"outside this folder too: {len(outside) - 2} more"] if len(outside) > 2 else []
    if meant.sought:
        return [*lines, "looking for files ..."]
    return [*lines, f"{len(meant.targets)} files"] if len(meant.targets) > 1 else lines


def unfinished_in_words(partial: Partial | None) -> str:
    """What there is to go on with, in one line that is fit to be shown."""
    if partial is None:
        return ""
    lines = sum(part.end - part.start for part in partial.parts)
    said = " ".join(partial.instruction.split())
    said = said if len(said) <= _SHOWN_REQUEST else f"{said[:_SHOWN_REQUEST]}..."
    return f'unfinished: {partial.lines_done} of {lines} lines of "{label(said)}"; ^O goes on with that'


def fitting_files(pattern: str, root: Path, wanted: Callable[[], bool] = lambda: True) -> list[Path]:
    """The files that fit a pattern, no links and none that git ignores; what was found once `wanted` says False."""
    magic = _MAGIC.search(pattern)
    at = pattern.rfind("/", 0, len(pattern) if magic is None else magic.start()) + 1
    folder, parts = typed_path(root, pattern[:at] or "."), pattern[at:].split("/")
    names = find_files(folder, wanted)
    found = [folder / name for name in names if _fits(name.split("/"), parts)]
    return [path for path in found if is_file(path) and not path.is_symlink()]


def _paths(
    word: str, root: Path, known: Mapping[str, Path], fitting: Mapping[str, Sequence[Path]]
) -> tuple[Sequence[Path] | None, str]:
    """The paths of a word and the lines of them that it names; no paths: it names none, None: that is not known."""
    for text, part in _readings(word):
        path = known.get(text) or typed_path(root, text)
        if is_file(path):
            return [path], part
    if _MAGIC.search(word):
        return fitting.get(word), ""
    return [], ""


def _name(path: Path, root: Path) -> str:
    return label(str(path.relative_to(root) if path.is_relative_to(root) else path))


def _readings(word: str) -> list[tuple[str, str]]:
    """A word as a path, and as a path with lines."""
    found = _PART.fullmatch(word)
    return [(word, "")] if found is None else [(word, ""), (found[1], found[2].replace("-", ":"))]


def _names_a_file(word: str, root: Path) -> bool:
    """Whether a word behind others is a file still; patterns in prose, such as *this*, are not."""
    looks_like_pattern = _MAGIC.search(word) is not None and re.search(r"[/.]\w|\*\*", word) is not None
    return looks_like_pattern or any(is_file(typed_path(root, text)) for text, _ in _readings(word))


def _problem(word: str, root: Path) -> str:
    if _MAGIC.search(word):
        return f"no text file fits {label(word)}"
    path = typed_path(root, word)
    try:
        is_folder = path.is_dir()
    except (OSError, ValueError):
        is_folder = False
    way_out = f"; {label(word.rstrip('/'))}/* means the files in it" if is_folder else ""
    return f"{label(word)} is no file{way_out}"


def _fits(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether folders and a name fit, each its own part of a pattern; ** fits any number of folders."""
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_fits(names[i:], patterns[1:] or ["*"]) for i in range(len(names)))
    if not names or (names[0].startswith(".") and not patterns[0].startswith(".")):
        return False
    return fnmatchcase(names[0], patterns[0]) and _fits(names[1:], patterns[1:])
