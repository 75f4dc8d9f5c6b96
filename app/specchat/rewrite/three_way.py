"""Two sets of changes to one text in one result; where they meet, both stand there between marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specchat.errors import Refusal
from specchat.rewrite.align import Replaced, align
from specchat.rewrite.merge import end_near
from specchat.rewrite.source import SourceFile, source_of


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a three-way merge."""

    data: bytes
    conflicts: int  # places that a person has to decide; they stand between marks as git writes them


def merge_three(base: bytes, ours: bytes, theirs: bytes, names: tuple[str, str]) -> Merged | None:
    """`ours` with the changes that lead from `base` to `theirs`; None where the three are not one kind of text.

    `names` say at the marks what ours and theirs are.
    """
    try:
        files = tuple(source_of(data, "", most_bytes=len(data)) for data in (base, ours, theirs))
    except Refusal:
        return None
    marks = {each.mark for each in files}
    encodings = {each.encoding for each in files if not each.data.isascii()}
    if len(marks) > 1 or len(encodings) > 1:
        return None
    frame = files[1]
    raws = tuple([line.raw for line in each.lines] for each in files)
    pieces: list[bytes] = []
    conflicts = 0
    for start, end, one, other in _regions(raws[0], raws[1], raws[2]):
        if one == other or other == raws[0][start:end]:
            pieces += one
        elif one == raws[0][start:end]:
            pieces += other
        else:
            conflicts += 1
            _terminate(frame, pieces)
            pieces += [_mark(frame, f"<<<<<<< {names[0]}"), *one]
            _terminate(frame, pieces)
            pieces += [_mark(frame, "======="), *other]
            _terminate(frame, pieces)
            pieces.append(_mark(frame, f">>>>>>> {names[1]}"))
    return Merged(frame.mark + b"".join(pieces), conflicts)


def _regions(
    base: Sequence[bytes], one: Sequence[bytes], other: Sequence[bytes]
) -> Iterator[tuple[int, int, list[bytes], list[bytes]]]:
    """The base cut where nobody changes anything, or where changes that touch each other lie: both versions of each."""
    changes = [(each, 0) for each in align(base, one)] + [(each, 1) for each in align(base, other)]
    changes.sort(key=lambda each: (each[0].start, each[0].end))
    at = 0
    moved = [0, 0]  # how much farther down the versions are
    i = 0
    while i < len(changes):
        start, end = changes[i][0].start, changes[i][0].end
        yield at, start, list(base[at:start]), list(base[at:start])
        group: list[tuple[Replaced, int]] = []
        while i < len(changes) and (changes[i][0].start <= end or not group):
            end = max(end, changes[i][0].end)
            group.append(changes[i])
            i += 1
        versions: list[list[bytes]] = []
        for side, text in enumerate((one, other)):
            grown = sum(_growth(each) for each, whose in group if whose == side)
            versions.append(list(text[start + moved[side] : end + moved[side] + grown]))
            moved[side] += grown
        yield start, end, versions[0], versions[1]
        at = end
    yield at, len(base), list(base[at:]), list(base[at:])


def _growth(each: Replaced) -> int:
    return (each.new_end - each.new_start) - (each.end - each.start)


def _mark(frame: SourceFile, text: str) -> bytes:
    return (text + _end(frame)).encode(frame.encoding, "replace")


def _terminate(frame: SourceFile, pieces: list[bytes]) -> None:
    """Give the last line an end, if it has none, so that a mark can follow."""
    ends = tuple(end.encode(frame.encoding) for end in ("\n", "\r"))
    if pieces and not pieces[-1].endswith(ends):
        pieces.append(_end(frame).encode(frame.encoding))


def _end(frame: SourceFile) -> str:
    return end_near(frame, len(frame.lines) - 1)
