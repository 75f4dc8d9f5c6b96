"""What of a reply is the file: marks, greetings, fences and thinking taken off, where the old file has none there.

Where it is not clear whether something belongs to the file, it stays, and the review shows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from specchat.rewrite.prompt import Asked
from specchat.rewrite.source import split_lines
from speculation.types import Finish

_THINKING = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_THOUGHT = "</think>"
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_BARE_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\s*\Z")
_GREETING = re.compile(
    r"\W*(?:sure|certainly|of course|ok(?:ay)?|here(?:['’]s| is| are)|below (?:is|are)|this is|"
    r"the (?:re-?written|updated|revised|corrected|modified|full|complete|whole|new)|i(?:['’]ve| have)|"
    r"hier (?:ist|sind)|voici|aquí)\b.{0,200}[:.!]\W*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stripped:
    """Something of the reply that is not part of the file."""

    what: str  # such as "thinking"
    text: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """The new lines of a file."""

    lines: tuple[str, ...]
    offsets: tuple[int, ...]  # where each line begins in the reply
    stripped: tuple[Stripped, ...]
    complete: bool  # False: the reply was cut off, perhaps in the middle of its last line
    closed: bool  # whether the reply says itself that the file ends there


def extract(reply: str, asked: Asked, original: Sequence[str], finish: Finish | None) -> Extracted:
    """The file in a reply to `asked` about the lines `original`. `finish` says why the reply ended.

    The reply may lack the opening mark, which can have been begun for the model, and the closing one.
    """
    stripped: list[Stripped] = []
    start, end, marked, closed = _bounds(reply, asked, original, stripped)
    closed = closed or finish is Finish.STOP
    complete = closed or finish is Finish.END
    loose = not (marked or closed)
    outside = len(stripped)
    start = _behind_thinking(reply, start, end, original, stripped)
    lines, offsets = _lines(reply[start:end], start)
    if closed and lines and not lines[-1].strip() and not reply[:end].endswith(("\n", "\r")):
        lines.pop()  # the indentation of the closing mark
    front, back = _unwrapped(lines, original, complete=complete, loose=loose)
    _strip(stripped, "a wrapper", "\n".join(lines[:front]))
    _strip(stripped, "a wrapper", "\n".join(lines[back:]))
    if loose or len(stripped) > outside:
        front += max(0, _blanks(lines[front:back]) - _blanks(original))
    if loose and complete:
        back -= max(0, _blanks(lines[front:back][::-1]) - _blanks(original[::-1]))
    return Extracted(tuple(lines[front:back]), tuple(offsets[front:back]), tuple(stripped), complete, closed)


def _bounds(reply: str, asked: Asked, original: Sequence[str], stripped: list[Stripped]) -> tuple[int, int, bool, bool]:
    """Where the file begins and ends in the reply, and whether the marks for that are there."""
    tag = re.escape(asked.tag)
    closing = re.compile(rf"</{tag}\s*>", re.IGNORECASE)
    openings = list(re.finditer(rf"<{tag}(?:[ \t][^>\n]*)?>(?:[ \t]*(?:\r\n|\r|\n))?", reply, re.IGNORECASE))
    closed = closing.search(reply)
    if closed is not None and not any(found.start() < closed.start() for found in openings):
        openings = []  # it was begun for the model; what comes behind the end is talk
    # A model that thinks may name the marks before it uses them.
    if openings and (thought := _thought(reply[: openings[-1].start()], original)):
        openings = [found for found in openings if found.start() >= thought]
    at_line = (
        found for found in openings if not reply[reply.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
    )
    opened = next(at_line, None) or next(iter(openings), None)
    start = 0
    if opened is not None:
        start = opened.end()
        _strip(stripped, "text before the file", reply[: opened.start()])
        closed = closing.search(reply, start)
    if closed is None:
        return start, len(reply), opened is not None, False
    _strip(stripped, "text after the file", reply[closed.end() :])
    return start, closed.start(), opened is not None, True


def _thought(before: str, original: Sequence[str]) -> int:
    """Where the thinking ends that stands before the last opening mark; 0 for none."""
    if not any(_THOUGHT in line for line in original):
        at = before.rfind(_THOUGHT)
    else:
        at = before.find(_THOUGHT) if before.lstrip().startswith("<think>") else -1
    return at + len(_THOUGHT) if at >= 0 else 0


def _behind_thinking(reply: str, start: int, end: int, original: Sequence[str], stripped: list[Stripped]) -> int:
    """Where the file begins behind the blocks of thinking that the old file does not begin with."""
    blocks = _thinking(reply[start:end])
    extra = len(blocks) - len(_thinking("\n".join(original)))
    if extra <= 0:
        return start
    behind = start + blocks[extra - 1]
    _strip(stripped, "thinking", reply[start:behind])
    rest_of_line = re.compile(r"[ \t]*(?:\r\n|\r|\n)").match(reply, behind, end)
    return rest_of_line.end() if rest_of_line else behind


def _unwrapped(lines: Sequence[str], original: Sequence[str], *, complete: bool, loose: bool) -> tuple[int, int]:
    """The part of the lines inside a greeting and a fence that the old file does not begin with."""
    first = _first_filled(lines)
    old_first = _first_filled(original)
    if first is not None and _GREETING.match(lines[first]):
        rest = lines[first + 1 :]
        greets_too = old_first is not None and _GREETING.match(original[old_first]) is not None
        inside = _fenced(rest, original, complete=complete)
        if inside is not None and (not greets_too or _begins_like(rest[slice(*inside)], original)):
            return first + 1 + inside[0], first + 1 + inside[1]
        if loose and old_first is not None and not greets_too and _begins_like(rest, original):
            return first + 1, len(lines)
    return _fenced(lines, original, complete=complete) or (0, len(lines))


def _fenced(lines: Sequence[str], original: Sequence[str], *, complete: bool) -> tuple[int, int] | None:
    """The lines inside a fence around the whole file; None where the fences are the file's own.

    Fences of the old file are compared: a wrapper brings one more at the beginning and one more at the end.
    """
    first = _first_filled(lines)
    if first is None or _fence_run(lines) <= _fence_run(original):
        return None
    like = _begins_like(lines[first + 1 :], original)
    if not complete:
        return (first + 1, len(lines)) if like else None
    fences = _fences(original)
    last = max(i for i, line in enumerate(lines) if line.strip())
    bare = [i for i in range(first + 1, len(lines)) if _BARE_FENCE.match(lines[i])]
    closes = bare[-1] if bare and _fence_run(lines[bare[-1] :: -1]) > _fence_run(original[::-1]) else None
    if closes is not None:
        same = _fences(lines[first + 1 : closes]) == fences
        if closes == last and (same or like):
            return first + 1, closes
        talk = {line for line in lines[closes + 1 :] if line.strip()}
        if closes != last and same and like and talk.isdisjoint(original):
            return first + 1, closes
    return (first + 1, len(lines)) if like and _fences(lines[first + 1 :]) == fences else None


def _lines(text: str, offset: int) -> tuple[list[str], list[int]]:
    lines: list[str] = []
    offsets: list[int] = []
    for line, end in split_lines(text):
        lines.append(line)
        offsets.append(offset)
        offset += len(line) + len(end)
    return lines, offsets


def _thinking(text: str) -> list[int]:
    """Where each block of thinking ends that a text begins with."""
    ends: list[int] = []
    while found := _THINKING.match(text, ends[-1] if ends else 0):
        ends.append(found.end())
    return ends


def _strip(stripped: list[Stripped], what: str, text: str) -> None:
    if text.strip():
        stripped.append(Stripped(what, text))


def _first_filled(lines: Sequence[str]) -> int | None:
    return next((i for i, line in enumerate(lines) if line.strip()), None)


def _blanks(lines: Sequence[str]) -> int:
    """How many blank lines stand first."""
    first = _first_filled(lines)
    return len(lines) if first is None else first


def _begins_like(lines: Sequence[str], original: Sequence[str]) -> bool:
    one, other = _first_filled(lines), _first_filled(original)
    return (None if one is None else lines[one]) == (None if other is None else original[other])


def _fences(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if _FENCE.match(line)]


def _fence_run(lines: Sequence[str]) -> int:
    """How many fences stand first, blank lines aside."""
    run = 0
    for line in lines:
        if _FENCE.match(line):
            run += 1
        elif line.strip():
            break
    return run
