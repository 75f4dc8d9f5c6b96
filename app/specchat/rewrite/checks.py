"""What a rewrite must not do: cut the file short, stand in for lines with a remark, touch what is protected.

Findings, each with a line and a reason; nothing is changed here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from specchat.attachments import label
from specchat.errors import UsageError
from specchat.rewrite.expressions import Expression, Span
from specchat.rewrite.merge import Change
from specchat.rewrite.placeholders import is_ellipsis, is_placeholder
from specchat.rewrite.source import SourceFile, joined

MUCH_SHORTER = 0.5  # of the old file's characters
SMALL_FILE = 200  # characters of a file that may shrink as it likes
TAIL_LINES = 3  # fewest lines that are a tail ...
TAIL_SHARE = 0.05  # ... and their share of the file


class Problem(StrEnum):
    """What is wrong."""

    TRUNCATED = "truncated"
    EMPTY = "empty"
    BROKEN = "broken"  # characters that no text holds
    PLACEHOLDER = "placeholder"
    LOST_TAIL = "lost-tail"
    SHORTER = "shorter"
    MAX_CHANGE = "max-change"
    KEEP = "keep"
    PROTECTED = "protected"
    SEAM = "seam"  # lines lost, or written twice, where two parts meet


# What nobody can have meant; the rest may be written after an explicit yes.
NEVER = frozenset((Problem.TRUNCATED, Problem.EMPTY, Problem.BROKEN))


class Kept(StrEnum):
    """What a rewrite may be told to leave as it is."""

    NUMBERS = "numbers"
    URLS = "urls"
    QUOTES = "quotes"
    HEADINGS = "headings"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that stands against writing."""

    problem: Problem
    line: int  # of the old file, counted from 1
    reason: str

    @property
    def never(self) -> bool:
        """Whether even a yes does not help."""
        return self.problem in NEVER


@dataclass(frozen=True, slots=True)
class Rails:
    """The guard rails that the user set."""

    max_change: float | None = None  # percent of the lines
    keep: frozenset[Kept] = frozenset()
    protect: tuple[Expression, ...] = ()
    spans: tuple[tuple[Span, ...], ...] | None = None  # where each of these matches in a file, once that is known

    def beside(self, others: Rails) -> Rails:
        """These and others together; of two limits this one."""
        return Rails(
            max_change=others.max_change if self.max_change is None else self.max_change,
            keep=self.keep | others.keep,
            protect=tuple(dict.fromkeys((*self.protect, *others.protect))),
        )

    def on(self, source: SourceFile) -> Rails:
        """The same for one file, so that nothing is looked for in it later. Raises UsageError as `Expression.spans`."""
        if self.spans is not None:
            return self
        return replace(self, spans=tuple(each.spans(source.text, source.name) for each in self.protect))


_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:0[xXbBoO][0-9a-fA-F_]+|\d[\d_]*(?:[.,]\d+)*(?:[eE][-+]?\d+)?)")
_URL = re.compile(r"\b(?:[a-z][a-z0-9+.-]{0,30}://|www\.)[^\s<>\"'`)\]]+", re.IGNORECASE)
_QUOTE = re.compile(r"\"[^\"\n]+\"|“[^“”\n]+”|„[^„“”\n]+[“”]|«[^«»\n]+»|^[ \t]*>.*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+.*$|^\S.*\n(?:={3,}|-{3,})[ \t]*$", re.MULTILINE)
_KEPT = {Kept.NUMBERS: _NUMBER, Kept.URLS: _URL, Kept.QUOTES: _QUOTE, Kept.HEADINGS: _HEADING}


def rails(max_change: float | None = None, keep: Iterable[str] = (), protect: Iterable[str] = ()) -> Rails:
    """The guard rails by their names and expressions. Raises UsageError."""
    names = list(keep)
    if unknown := [name for name in names if name not in set(Kept)]:
        raise UsageError(f"--keep knows {', '.join(Kept)}, and not {label(unknown[0])}")
    return Rails(max_change, frozenset(map(Kept, names)), tuple(Expression(each, "--protect") for each in protect))


def check(
    source: SourceFile, changes: Sequence[Change], guard: Rails | None = None, *, complete: bool = True
) -> list[Finding]:
    """What stands against making these changes, by line. `complete` is False for a reply that was cut off."""
    guard = guard or Rails()
    old, new = source.texts, _after(source.texts, changes)
    findings = [] if complete else [Finding(Problem.TRUNCATED, max(1, len(new)), "the reply was cut off")]
    if old and not "".join(new).strip() and "".join(old).strip():
        return [*findings, Finding(Problem.EMPTY, 1, "nothing is left of the file")]
    findings += _broken(source, changes)
    findings += _placeholders(old, changes)
    findings += _lost_tail(old, changes)
    size, new_size = len(joined(old)), len(joined(new))
    if size >= SMALL_FILE and new_size < size * MUCH_SHORTER:
        findings.append(Finding(Problem.SHORTER, 1, f"{new_size} characters are left of {size}"))
    if guard.max_change is not None:
        touched = sum(max(each.end - each.start, len(each.lines)) for each in changes)
        share = 100 * touched / max(1, len(old))
        if share > guard.max_change:
            reason = f"{share:.0f} % of the lines change, {guard.max_change:g} % may"
            findings.append(Finding(Problem.MAX_CHANGE, changes[0].start + 1, reason))
    findings += _unkept(old, changes, guard.keep)
    findings += _unprotected(source, changes, guard.on(source).spans or ())
    return sorted(findings, key=lambda finding: finding.line)


def _after(old: Sequence[str], changes: Iterable[Change]) -> list[str]:
    lines: list[str] = []
    at = 0
    for each in changes:
        lines += [*old[at : each.start], *(line.text for line in each.lines)]
        at = each.end
    return [*lines, *old[at:]]


def _broken(source: SourceFile, changes: Iterable[Change]) -> Iterator[Finding]:
    present = set("".join(source.texts))
    for each in changes:
        for line in each.lines:
            for character in sorted({"\0", "\ufffd", "\ufeff"} & set(line.text) - present):
                yield Finding(Problem.BROKEN, each.start + 1, f"the reply holds U+{ord(character):04X}")
            try:
                line.text.encode(source.encoding)
            except UnicodeEncodeError as error:
                held = f"{source.encoding} cannot hold U+{ord(line.text[error.start]):04X}"
                yield Finding(Problem.BROKEN, each.start + 1, held)


def _placeholders(old: Sequence[str], changes: Iterable[Change]) -> Iterator[Finding]:
    present = {line.strip() for line in old}
    for each in changes:
        shrinks = len(each.lines) < each.end - each.start
        for line in each.lines:
            if line.text.strip() in present:
                continue
            if is_placeholder(line.text) or (shrinks and is_ellipsis(line.text)):
                yield Finding(Problem.PLACEHOLDER, each.start + 1, f"a remark stands for lines: {_short(line.text)}")


def _lost_tail(old: Sequence[str], changes: Sequence[Change]) -> Iterator[Finding]:
    if not changes or changes[-1].end != len(old):
        return
    last = changes[-1]
    lost = last.end - last.start - len(last.lines)
    if lost >= max(TAIL_LINES, len(old) * TAIL_SHARE):
        yield Finding(Problem.LOST_TAIL, last.end - lost + 1, f"the last {lost} lines are gone")
    elif last.lines and last.end > last.start:
        # A file of few long lines loses its tail within one.
        before, after = old[last.start + len(last.lines) - 1 : last.end], last.lines[-1].text
        gone = len(joined(before)) - len(after)
        if before and before[0].startswith(after) and gone > max(SMALL_FILE // 4, len(joined(old)) * TAIL_SHARE):
            yield Finding(Problem.LOST_TAIL, last.end, f"the last {gone} characters are gone")


def _unkept(old: Sequence[str], changes: Iterable[Change], kinds: Iterable[Kept]) -> Iterator[Finding]:
    for each in changes:
        # One line more at each end: a heading may be made of two.
        around = slice(max(0, each.start - 1), each.start), slice(each.end, each.end + 1)
        before = joined((*old[around[0]], *old[each.start : each.end], *old[around[1]]))
        after = joined((*old[around[0]], *(line.text for line in each.lines), *old[around[1]]))
        for kind in sorted(kinds):
            had, has = (Counter(_KEPT[kind].findall(text)) for text in (before, after))
            if gone := had - has:
                yield Finding(Problem.KEEP, each.start + 1, f"{kind}: {_list(gone)} is gone")
            if new := has - had:
                yield Finding(Problem.KEEP, each.start + 1, f"{kind}: {_list(new)} is new")


def _unprotected(
    source: SourceFile, changes: Sequence[Change], protected: Iterable[Sequence[Span]]
) -> Iterator[Finding]:
    starts = [0]
    for line in source.texts:
        starts.append(starts[-1] + len(line) + 1)
    text = source.text
    for spans in protected:
        for each in changes:
            begun, done = starts[each.start], starts[each.end]
            for i in range(bisect_right(spans, begun, key=lambda span: span[1]), len(spans)):
                start, end = spans[i]
                if start >= done:
                    break
                yield Finding(Problem.PROTECTED, each.start + 1, f"{_short(text[start:end])} is protected")


def _list(items: Counter[str]) -> str:
    shown = [_short(item) for item in sorted(items)]
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 60 else f"{one_line[:57]}..."
