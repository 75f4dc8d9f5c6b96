"""Where two parts meet: what stands around a part may be written once more, and lines at its ends may be lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from specchat.rewrite.checks import Finding, Problem
from specchat.rewrite.extract import Extracted, Stripped
from specchat.rewrite.merge import Change
from specchat.rewrite.part import Around, Part
from specchat.rewrite.source import SourceFile

_NEAR = 64  # lines around a part that may have been written with it
_NEAREST = 2  # lines next to a part, of which one at least is among those that were written again
_REMOVALS = 2  # changes away from seams that take lines out
_TELLING = 3  # letters and digits from which on a line is hardly there twice by chance
_LONG = 10  # ... and is hardly inside another by chance
_LIKE = 0.5  # share of an old line's words in a new one that stands for it

_WORD = re.compile(r"\w+")


def without_repeats(written: Extracted, old: Sequence[str], around: Around) -> Extracted:
    """What was written for a part, without the lines around it that were written again, where that is certain.

    It is where those lines stand in their order, and then the part begins, or ends before them, as it did.
    """
    front = _repeated(written.lines, old, around.before)
    turned = written.lines[front:][::-1]
    back = len(written.lines) - (_repeated(turned, old[::-1], around.behind[::-1]) if written.complete else 0)
    if (front, back) == (0, len(written.lines)):
        return written
    gone = [*written.lines[:front], *written.lines[back:]]
    return replace(
        written,
        lines=written.lines[front:back],
        offsets=written.offsets[front:back],
        stripped=(*written.stripped, Stripped("lines around the part", "\n".join(gone))),
    )


def seam_findings(source: SourceFile, parts: Sequence[Part], found: Sequence[Change]) -> list[Finding]:
    """Where changes of some parts, which are in order, look like faults of a seam."""
    findings: list[Finding] = []
    lost: list[Finding] = []
    removals = sum(each.end - each.start > len(each.lines) for each in found)
    for i, part in enumerate(parts):
        inside = [each for each in found if part.start <= each.start and each.end <= part.end]
        if not inside:
            continue
        own = {line.strip() for line in source.texts[part.start : part.end]}
        if (first := inside[0]).start == part.start:
            before = _beside(source, found, first, max(0, part.start - _NEAR), part.start)
            findings += _foreign(first, own, before[::-1], part.start + 1, "in front of it")
            if i and _meet(source, parts[i - 1], part) and _is_lost(source.texts[part.start], first):
                lost.append(
                    Finding(
                        Problem.SEAM,
                        part.start + 1,
                        "the line that a part begins with is gone, which may be a fault of the cut",
                    )
                )
        if (last := inside[-1]).end == part.end:
            behind = _beside(source, found, last, part.end, part.end + _NEAR)
            findings += _foreign(last, own, behind, part.end, "behind it")
            meets = i + 1 < len(parts) and _meet(source, part, parts[i + 1])
            if meets and _is_lost(source.texts[part.end - 1], last):
                lost.append(
                    Finding(
                        Problem.SEAM,
                        part.end,
                        "the line that a part ends with is gone, which may be a fault of the cut",
                    )
                )
    # A rewrite that takes lines out everywhere does so at seams too.
    return findings + (lost if removals - len(lost) < _REMOVALS else [])


def _repeated(lines: Sequence[str], old: Sequence[str], before: Sequence[str]) -> int:
    """How many lines at the beginning are those before the part once more; 0 where that is not certain."""
    filled = [(i, line) for i, line in enumerate(lines) if line.strip()]
    texts = [line for _, line in filled]
    own, shown = [line for line in old if line.strip()], [line for line in before if line.strip()]
    if not own or not shown:
        return 0
    for count in range(min(len(shown), len(filled) - 1), 0, -1):
        run = shown[-count:]
        if texts[:count] != run or texts[count] != own[0] or own[:count] == run:
            continue
        return filled[count][0] if count > 1 or _telling(run[0]) >= _TELLING else 0
    return 0


def _beside(source: SourceFile, found: Sequence[Change], own: Change, start: int, end: int) -> list[str]:
    """The filled lines of a stretch, in order, old ones and new ones of other changes, without spaces at their ends."""
    inside = (each for each in found if each is not own and start <= each.start and each.end <= end)
    texts = [(each.start, line.text) for each in inside for line in each.lines]
    texts += [(start + i, line) for i, line in enumerate(source.texts[start:end])]  # behind what was put in there
    return [line.strip() for _, line in sorted(texts, key=lambda each: each[0]) if line.strip()]


def _foreign(change: Change, own: set[str], beside: Sequence[str], line: int, where: str) -> Iterator[Finding]:
    """Lines of a change at an end of a part that stand, or nearly stand, on the other side of that end.

    `beside` are the lines there, the nearest first. Those that were written again reach up to the end of the part.
    """
    come = [text for each in change.lines if _telling(text := each.text.strip()) >= _TELLING and text not in own]
    nearest = [text for text in beside if _telling(text) >= _TELLING][:_NEAREST]
    if not come or not nearest:
        return
    again = set(come) & set(beside)
    grows = len(change.lines) > change.end - change.start
    one = nearest[0]
    is_inside = any(one in text and one != text for text in come) and not any(one in text for text in own)
    if grows and 2 * len(again) >= len(set(come)) and not again.isdisjoint(nearest):
        yield Finding(Problem.SEAM, line, f"lines that stand {where} are here once more ({len(again)})")
    elif is_inside and _telling(one) >= _LONG:
        yield Finding(Problem.SEAM, line, f"the line that stands {where} is here once more, inside another")


def _is_lost(old: str, change: Change) -> bool:
    """Whether an old line at an end of a change has no new one that stands for it."""
    if len(change.lines) >= change.end - change.start or not old.strip():
        return False
    words = set(_WORD.findall(old))
    return not any(len(words & set(_WORD.findall(line.text))) >= _LIKE * max(1, len(words)) for line in change.lines)


def _meet(source: SourceFile, one: Part, other: Part) -> bool:
    """Whether nothing but blank lines stands between two parts."""
    return not any(line.strip() for line in source.texts[one.end : other.start])


def _telling(line: str) -> int:
    return len("".join(_WORD.findall(line)))
