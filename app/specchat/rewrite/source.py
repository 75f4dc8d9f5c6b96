"""A file as bytes and as lines: read once, so that every line that stays keeps its own bytes."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from specchat.attachments import label
from specchat.errors import InputRefused, UsageError
from specchat.rewrite.disk import Folder, Place, place_of, read_all, regular

MOST_BYTES = 4 << 20  # more than the contexts of today hold, and few enough to be compared line by line

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MARKED_NAMES = {"utf-8-sig": ("utf-8",), "utf-16": ("utf-16-le", "utf-16-be")}
_END = re.compile("(\r\n|\r|\n)")  # form feeds, vertical tabs, NEL and U+2028 stand inside lines
_NEVER_TEXT = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of a file."""

    text: str  # without its end
    end: str  # "\n", "\r\n", "\r", or "" for a last line that has none
    raw: bytes  # both, as they stand in the file


@dataclass(frozen=True)
class SourceFile:
    """What was read, and where."""

    name: str  # one line that is fit to be shown
    place: Place | None  # None: standard input
    data: bytes
    encoding: str
    mark: bytes  # the byte order mark
    lines: tuple[SourceLine, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The lines without their ends."""
        return tuple(line.text for line in self.lines)

    @property
    def text(self) -> str:
        """What a model reads: each line with "\\n" behind it, the last one too."""
        return joined(self.texts)

    @property
    def ends_with_newline(self) -> bool:
        """Whether the last line has an end."""
        return bool(self.lines) and self.lines[-1].end != ""

    def outside(self, folder: Path) -> bool:
        """Whether the file really stands elsewhere than below a folder, so that its real path should be shown."""
        return self.place is not None and not self.place.real.is_relative_to(os.path.realpath(folder))


def read_source(path: Path, encoding: str | None = None, most_bytes: int = MOST_BYTES) -> SourceFile:
    """Read a file for a rewrite. Raises InputRefused, and UsageError for an encoding that does not exist."""
    name = label(str(path))
    try:
        place = place_of(path)
        with Folder(place.real.parent) as folder:
            handle = folder.open(place.real.name, os.O_RDONLY)
            try:
                regular(handle)
                data = read_all(handle, most_bytes)
            finally:
                os.close(handle)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise InputRefused(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error
    return source_of(data, name, place, encoding, most_bytes)


def source_of(
    data: bytes,
    name: str,
    place: Place | None = None,
    encoding: str | None = None,
    most_bytes: int = MOST_BYTES,
) -> SourceFile:
    """Bytes as lines. Raises InputRefused, which calls them `name`, and UsageError as `read_source` does."""
    if len(data) > most_bytes:
        raise InputRefused(f"{name} is larger than {most_bytes} bytes, which is too much for a rewrite")
    mark, encoding, text = _decoded(data, name, encoding)
    if "\0" in text:
        raise InputRefused(f"{name} is not text: it holds NUL bytes")
    try:
        lines = tuple(SourceLine(line, end, (line + end).encode(encoding)) for line, end in split_lines(text))
    except UnicodeError:
        lines = ()
    # Some encodings spell one text in several ways, or need what stood before a line.
    if mark + b"".join(line.raw for line in lines) != data:
        raise InputRefused(f"{name} cannot be kept byte for byte as {encoding}; convert it to UTF-8 first")
    return SourceFile(name, place, data, encoding, mark, lines)


def looks_like_text(head: bytes) -> bool:
    """Whether a file that begins with these bytes is worth reading."""
    return b"\0" not in head or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines, each with its end; the last one has "" where the text does not end with a line end."""
    pieces = _END.split(text)
    lines = list(zip(pieces[::2], pieces[1::2], strict=False))
    return [*lines, (pieces[-1], "")] if pieces[-1] else lines


def joined(lines: Iterable[str]) -> str:
    """Lines as a model reads and writes them."""
    return "".join(f"{line}\n" for line in lines)


def _decoded(data: bytes, name: str, wanted: str | None) -> tuple[bytes, str, str]:
    """The byte order mark, the encoding and the text behind the mark."""
    mark, marked = next(((mark, found) for mark, found in _MARKS if data.startswith(mark)), (b"", None))
    if wanted is not None:
        try:
            known = codecs.lookup(wanted).name
        except (LookupError, ValueError) as error:
            raise UsageError(f"there is no encoding {label(wanted)}") from error
        if marked is None or marked not in _MARKED_NAMES.get(known, (known,)):
            return b"", known, _in(known, data, name)
    if marked is not None:
        return mark, marked, _in(marked, data[len(mark) :], name)
    try:
        return b"", "utf-8", data.decode("utf-8")
    except UnicodeDecodeError as error:
        legacy = "cp1252" if _WINDOWS_ONLY.search(data) else "latin-1"
        if _NEVER_TEXT.search(data) is None:
            try:
                return b"", legacy, data.decode(legacy)
            except UnicodeDecodeError:
                pass
        reason = "it holds NUL bytes" if b"\0" in data else f"byte {error.start} is in no encoding that is tried"
        raise InputRefused(f"{name} is not text: {reason}") from error


def _in(encoding: str, data: bytes, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputRefused(f"{name} is not {encoding} text (byte {error.start})") from error
    except (LookupError, UnicodeError) as error:  # a codec between bytes, such as base64
        raise UsageError(f"{encoding} is no encoding of text") from error
