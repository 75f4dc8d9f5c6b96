"""Files that a message carries: reading them, finding them, and how the model sees them; knows no screen."""

from __future__ import annotations

import os
import re
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from specchat.console import printable
from specchat.errors import InputRefused

MOST_BYTES = 16 << 20  # of one attachment: more than any context holds, and little enough to read at once
MOST_FILES = 100_000  # listed of one folder
MOST_ENTRIES = 5_000  # a folder with more is full of data, not of files that somebody wants to talk about
LISTING_S = 20.0  # longest wait for git
POLL_S = 0.1

# Folders that tools fill; those with a leading dot are left out anyway.
MADE_BY_TOOLS = frozenset(("__pycache__", "node_modules", "site-packages", "venv"))

_UNFIT = re.compile("[\n\t\u2028\u2029\ud800-\udfff]")  # in names that cannot be typed; the last are no UTF-8
_ONE_LINE = str.maketrans({"\n": "\u240a", "\t": "\u2409"})


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text that a message carries under a name."""

    name: str
    text: str


def label(name: str) -> str:
    """A file name as one line that cannot steer a terminal; bytes that are no UTF-8 become U+FFFD."""
    return printable(name).translate(_ONE_LINE)


def read_attachment(path: Path) -> Attachment:
    """The text of a file, under the file's name. Raises InputRefused."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or error
        raise InputRefused(f"cannot read {label(str(path))}: {reason}") from error
    if len(data) > MOST_BYTES:
        raise InputRefused(f"{label(str(path))} is larger than {MOST_BYTES >> 20} MiB, which no context holds")
    return Attachment(label(path.name), text_of(data, label(str(path))))


def text_of(data: bytes, name: str) -> str:
    """What bytes say in UTF-8, without a byte order mark. Raises InputRefused, which calls them `name`."""
    if b"\0" in data[:8192]:
        raise InputRefused(f"{name} is not text: it holds NUL bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputRefused(f"{name} is not UTF-8 text (byte {error.start})") from error


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """The message that the model reads: each attachment under its name, then the text.

    What was read of an attachment stays true while the text behind it is typed.
    """
    files = [f"[{attachment.name}]\n{attachment.text}" for attachment in attachments]
    return "\n\n".join([*files, text] if text or not files else files)


def find_files(root: Path, wanted: Callable[[], bool] = lambda: True) -> list[str]:
    """The files below a folder, relative to it with "/" between folders, near ones first; [] for no folder.

    Git says which, where it can, so that ignored files stay out; elsewhere hidden and huge folders and those that
    tools fill are left out. Once `wanted` says False, what has been found so far is returned.
    """
    names = known_to_git(root, wanted)
    return _near_first(_walk(root, wanted) if names is None else names)


def find_all_files(root: Path) -> list[str]:
    """As `find_files`, whatever git says."""
    return _near_first(_walk(root, lambda: True))


def is_typed_path(text: str) -> bool:
    """Whether a text means a path of its own rather than letters of a name below the working folder."""
    return text == ".." or text.startswith(("/", "~", "./", "../")) or re.match(r"[A-Za-z]:[\\/]", text) is not None


def typed_path(root: Path, text: str) -> Path:
    """The path that a text means, seen from `root`; an unknown user's home stays as it is written."""
    return root / os.path.expanduser(text)


def is_file(path: Path) -> bool:
    """Whether a path leads to a regular file."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def complete_path(root: Path, text: str) -> list[str]:
    """The ways on from a path that is being typed, folders with a "/" at the end; hidden ones where a dot asks."""
    if text in ("~", ".."):
        text += "/"
    folder, fragment = text[: text.rfind("/") + 1], text[text.rfind("/") + 1 :]
    try:
        with os.scandir(typed_path(root, folder)) as entries:
            near = [entry for entry in islice(entries, MOST_FILES) if _goes_on(entry.name, fragment)]
    except (OSError, ValueError):
        return []
    near.sort(key=lambda entry: entry.name.lower())
    return [f"{folder}{entry.name}{'/' if _is_folder(entry) else ''}" for entry in near]


def fuzzy(query: str, names: Sequence[str]) -> list[str]:
    """The names that hold the letters of `query` in its order, in either case, best first; all of them for ""."""
    if not query.strip():
        return list(names)
    ranked = [(rank, name) for name in names if (rank := _rank(query, name)) is not None]
    ranked.sort()
    return [name for _, name in ranked]


def matched(query: str, name: str) -> list[int]:
    """The places in a name of the letters that `fuzzy` found there."""
    lowered, wanted = name.lower(), query.lower()
    if not wanted.strip() or len(lowered) != len(name):
        return []
    base = lowered.rfind("/") + 1
    at = max(lowered.find(wanted, base), lowered.find(wanted))
    if at >= 0:
        return list(range(at, at + len(wanted)))
    letters = wanted.replace(" ", "")
    return _letters(letters, lowered, base) or _letters(letters, lowered, 0) or []


def _near_first(names: Iterator[str]) -> list[str]:
    return sorted(islice(names, MOST_FILES), key=lambda name: (name.count("/"), name.lower()))


def _rank(query: str, name: str) -> tuple[int, int, bool, int] | None:
    """How well a name answers, less being better; None for not at all. People remember the last part of a path."""
    lowered, wanted = name.lower(), query.lower()
    base = lowered.rfind("/") + 1
    if (at := lowered.find(wanted, base)) >= 0:
        if at > base:
            kind = 3 if lowered[at - 1].isalnum() else 2
        elif len(lowered) > base + len(wanted):
            kind = 1
        else:
            kind = 0
        return kind, 0, query not in name, len(name)
    if wanted in lowered:
        return 4, 0, query not in name, len(name)
    letters = wanted.replace(" ", "")
    for kind, start in ((5, base), (6, 0)):
        if (places := _letters(letters, lowered, start)) is not None:
            return kind, places[-1] - places[0], False, len(name)
    return None


def _letters(letters: str, text: str, start: int) -> list[int] | None:
    """Where the letters stand, one after the other: the first such run from `start`, and its shortest end."""
    at = start - 1
    for letter in letters:
        if (at := text.find(letter, at + 1)) < 0:
            return None
    places = []
    for letter in reversed(letters):
        at = text.rfind(letter, start, at + 1)
        places.append(at)
        at -= 1
    return places[::-1]


def _goes_on(name: str, fragment: str) -> bool:
    # A name that is no UTF-8 cannot be typed on in an input line.
    if (name.startswith(".") and not fragment.startswith(".")) or not name.lower().startswith(fragment.lower()):
        return False
    return _UNFIT.search(name) is None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def known_to_git(root: Path, wanted: Callable[[], bool] = lambda: True) -> Iterator[str] | None:
    """The files that git knows or would add; None where git is not there, or does not answer."""
    # fsmonitor names a program to run, and a folder from elsewhere may bring a configuration with it.
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    environ = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        child = subprocess.Popen(
            command, cwd=root, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except (OSError, ValueError):
        return None
    waited_s = 0.0
    while True:
        try:
            output, _ = child.communicate(timeout=POLL_S)
            break
        except subprocess.TimeoutExpired:
            waited_s += POLL_S
            if waited_s > LISTING_S or not wanted():
                child.kill()
                child.communicate()
                return None
    if child.returncode != 0:
        return None
    names = dict.fromkeys(os.fsdecode(name) for name in output.split(b"\0") if name)
    # In an ignored folder git knows of nothing, and the folder's own files are what somebody there wants.
    if not names:
        return None
    # Removed files are still in the index, and nested repositories are listed as folders.
    return (name for name in names if wanted() and (root / name).is_file())


def _walk(root: Path, wanted: Callable[[], bool]) -> Iterator[str]:
    folders = deque([""])  # level by level, so that the cap leaves out what is far away
    while folders and wanted():
        folder = folders.popleft()
        try:
            with os.scandir(root / folder) as listing:
                entries = list(islice(listing, MOST_ENTRIES + 1))
        except OSError:
            continue
        if len(entries) > MOST_ENTRIES and folder:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in MADE_BY_TOOLS:
                        folders.append(f"{folder}{entry.name}/")
                elif entry.is_file():
                    yield folder + entry.name
            except OSError:
                continue
