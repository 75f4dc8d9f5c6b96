"""A rewrite as text: a patch that tools can apply, and hunks with marked words for a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specchat.attachments import label
from specchat.console import printable
from specchat.rewrite.align import Replaced, align
from specchat.rewrite.hunks import Hunk, Mark, marks
from specchat.rewrite.source import SourceFile

if TYPE_CHECKING:  # rich takes 50 ms to import, which pipes need not pay
    from rich.text import Text

AROUND = 3  # unchanged lines on both sides
_NO_END = b"\\ No newline at end of file\n"


def patch(source: SourceFile, new: bytes) -> bytes:
    """The unified diff of a file and its new contents, byte for byte where lines are bytes; empty for no change.

    Text in UTF-16 is shown in UTF-8: no patch can hold it.
    """
    before, after = source.data, new
    if source.encoding.startswith("utf-16"):
        before, after = (data[len(source.mark) :].decode(source.encoding).encode() for data in (before, after))
    old_lines, new_lines = [*_split(before)], [*_split(after)]  # to patches a lone CR is no line end
    name = _named(source)
    pieces = [b"--- %s\n+++ %s\n" % (_spelt(b"a/" + name), _spelt(b"b/" + name))]
    for group in _groups(align(old_lines, new_lines)):
        start, end = max(0, group[0].start - AROUND), min(len(old_lines), group[-1].end + AROUND)
        new_start = group[0].new_start - (group[0].start - start)
        new_end = group[-1].new_end + (end - group[-1].end)
        pieces.append(f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@\n".encode())
        at = start
        for each in group:
            pieces += [_line(b" ", line) for line in old_lines[at : each.start]]
            pieces += [_line(b"-", line) for line in old_lines[each.start : each.end]]
            pieces += [_line(b"+", line) for line in new_lines[each.new_start : each.new_end]]
            at = each.end
        pieces += [_line(b" ", line) for line in old_lines[at:end]]
    return b"".join(pieces) if len(pieces) > 1 else b""


def drawn(source: SourceFile, hunk: Hunk) -> Text:
    """A hunk for a terminal: signs and numbers of lines, and the words that differ stand out without colour too."""
    from rich.text import Text

    width = len(str(len(source.lines) + 1))
    text = Text()

    def line(sign: str, number: int | None, content: str, style: str, found: list[Mark]) -> None:
        body = Text(printable(content), style)
        for mark in found:
            body.stylize("bold underline", mark.start, mark.end)
        text.append(f"{sign} {'' if number is None else number:>{width}} ", style).append(body).append("\n")

    at = max(0, hunk.start - AROUND)
    for each in hunk.changes:
        old_marks, new_marks = marks(source, each)
        for i in range(at, each.start):
            line(" ", i + 1, source.texts[i], "", [])
        for i in range(each.start, each.end):
            line("-", i + 1, source.texts[i], "red", [mark for mark in old_marks if mark.line == i])
        for i, new in enumerate(each.lines):
            line("+", None, new.text, "green", [mark for mark in new_marks if mark.line == i])
        at = each.end
    for i in range(at, min(len(source.lines), hunk.end + AROUND)):
        line(" ", i + 1, source.texts[i], "", [])
    text.rstrip()
    return text


def _named(source: SourceFile) -> bytes:
    """The file as it was named, which its shown name may not be, seen from the folder in which a patch is applied."""
    if source.place is None:
        return source.name.encode()
    named = str(source.place.named)
    ways = (named.removeprefix(f"{os.getcwd()}{os.sep}"), named)
    name = next((way for way in ways if label(way) == source.name), source.name)
    return os.fsencode(name).lstrip(b"/")


def _spelt(name: bytes) -> bytes:
    """A name as git and patch read it: what could end it or steer a terminal as numbers, a tab behind blanks."""
    text = name.decode("utf-8", "surrogateescape")
    if printable(text) == text == text.strip() and not set(text) & set('"\\\t\n'):
        return name + b"\t" * (" " in text)
    spelt = (chr(each) if 0x20 <= each < 0x7F and each not in b'"\\' else f"\\{each:03o}" for each in name)
    return f'"{"".join(spelt)}"'.encode()


def _groups(found: list[Replaced]) -> Iterator[list[Replaced]]:
    group: list[Replaced] = []
    for each in found:
        if group and each.start - group[-1].end > 2 * AROUND:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _span(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    return f"{start if start == end else start + 1},{end - start}"


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n" + _NO_END


def _split(data: bytes) -> Iterator[bytes]:
    *lines, last = data.split(b"\n")
    for line in lines:
        yield line + b"\n"
    if last:
        yield last
