"""Which hunks deserve a second look: by how sure the model was, and by how quietly something changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from specchat.rewrite.extract import Extracted
from specchat.rewrite.hunks import Hunk, Mark, marks
from specchat.rewrite.scope import elsewhere
from specchat.rewrite.source import SourceFile
from speculation.types import Step

SHAKY = 1 / 3  # the old text's part of what the model gave to both texts, from which on it was a coin flip
LONELY_LINES = 10  # between a quiet edit and the nearest other one
FEW_WORDS = 3  # that a quiet edit replaces at most


class Kind(StrEnum):
    """Why a hunk is flagged, the worst first."""

    QUIET = "quiet"
    ELSEWHERE = "elsewhere"
    SHAKY = "shaky"
    WHITESPACE = "whitespace"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Where the model wrote something else than the old text, and its probabilities of both."""

    start: int  # characters of the reply: those of the token that it wrote
    end: int
    p_old: float
    p_new: float

    @property
    def doubt(self) -> float:
        """The old text's part of both probabilities: 0 is sure of the new one."""
        return self.p_old / (self.p_old + self.p_new) if self.p_old + self.p_new else 0.0


@dataclass(frozen=True, slots=True)
class Flag:
    """One reason to look at a hunk."""

    kind: Kind
    hunk: str  # id
    line: int  # of the old file, counted from 1
    reason: str
    p_old: float | None = None
    p_new: float | None = None

    def __str__(self) -> str:
        """What it is, in a few words."""
        return f"{'edit elsewhere' if self.kind is Kind.ELSEWHERE else f'{self.kind} edit'}: {self.reason}"


_WORDS = re.compile(r"\w+(?:[-.'’/:@]+\w+)*|!=|==|!|[^\w\s]")
_NUMBER = re.compile(r".*\d")
_ADDRESS = re.compile(r".*(?:://|www\.|@\w|\w\.(?:com|org|net|io|de|eu|gov|edu|dev)\b)", re.IGNORECASE)
_NEGATION = re.compile(
    r"(?:no|not|never|none|nor|neither|nothing|nobody|without|cannot|\w+n['’]t|unless|except|nicht|kein\w*|nie|ohne|"
    r"jamais|sans|nunca|true|false|!|!=|==)\Z",
    re.IGNORECASE,
)
_NAME = re.compile(r".*(?:[a-z][A-Z]|\w_\w|\w\.\w)")
_TOUCHES = (("a number", _NUMBER), ("an address", _ADDRESS), ("a negation", _NEGATION), ("a name", _NAME))
_INSIDE = re.compile(r"[\w,;]\s+\Z")  # what stands before a word that does not begin a sentence


def rejections(
    steps: Iterable[Step], ends: Sequence[int], from_file: Callable[[int], bool] = lambda index: True
) -> list[Rejection]:
    """Where guesses that were copied from the old file were rejected.

    `ends` says for each token of the reply where its characters end, `from_file` whether an index of the context
    belongs to the file.
    """
    found: list[Rejection] = []
    emitted = 0
    for step in steps:
        at = emitted + step.accepted
        emitted += len(step.tokens)
        if step.source is None or step.p_rejected is None or step.p_chosen is None or at >= len(ends):
            continue
        if step.accepted < step.drafted and from_file(step.source):
            found.append(Rejection(ends[at - 1] if at else 0, ends[at], step.p_rejected, step.p_chosen))
    return found


def flags(
    source: SourceFile,
    hunks: Sequence[Hunk],
    written: Extracted,
    rejected: Sequence[Rejection] = (),
    instruction: str = "",
) -> list[Flag]:
    """The flags of hunks, in the order of the file."""
    found: list[Flag] = []
    for i, hunk in enumerate(hunks):
        near = doubts(hunk, written, rejected)
        worst = max(near, key=lambda each: each.doubt, default=None)
        old, new = _changed(source, hunk)
        line = hunk.start + 1
        p_old, p_new = (None, None) if worst is None else (worst.p_old, worst.p_new)
        if _only_spaces(source, hunk):
            found.append(Flag(Kind.WHITESPACE, hunk.id, line, "only spaces or blank lines change", p_old, p_new))
        elif _is_lonely(hunks, i) and (touched := _touched(old, new, instruction)):
            reason = f"{touched} changed that the request does not name"
            found.append(Flag(Kind.QUIET, hunk.id, line, reason, p_old, p_new))
        if name := elsewhere(source.texts, hunk, instruction):
            reason = f"the request names {name}, and this is outside it"
            found.append(Flag(Kind.ELSEWHERE, hunk.id, line, reason, p_old, p_new))
        if worst is not None and worst.doubt >= SHAKY:
            reason = f"model {worst.p_new:.2f}, old text {worst.p_old:.2f}"
            found.append(Flag(Kind.SHAKY, hunk.id, line, reason, p_old, p_new))
    return found


def doubts(hunk: Hunk, written: Extracted, rejected: Sequence[Rejection]) -> list[Rejection]:
    """The rejections inside a hunk. The smallest `p_new` of them is the least sure word that the model wrote there."""
    found: dict[int, Rejection] = {}
    for each in hunk.changes:
        if each.written is None:
            continue
        first, after = each.written, each.written + len(each.lines)
        # The token that leaves lines out, or begins new ones, may be the line end before them.
        start = written.offsets[first] - 1 if first < len(written.offsets) else _end(written)
        end = written.offsets[after] if after < len(written.offsets) else _end(written) + 1
        found |= {
            one.start: one for one in rejected if one.start <= max(start, end) and start < max(one.end, one.start + 1)
        }
    return list(found.values())


def by_risk(hunks: Sequence[Hunk], flagged: Iterable[Flag]) -> list[Hunk]:
    """Hunks with the doubtful ones first; those without flags in the order of the file."""
    risks: dict[str, float] = {}
    for flag in flagged:
        doubt = flag.p_old / (flag.p_old + flag.p_new) if flag.p_old and flag.p_new else 0.0
        weight = {Kind.QUIET: 2.0, Kind.ELSEWHERE: 1.5, Kind.SHAKY: 1.0, Kind.WHITESPACE: 0.5}[flag.kind]
        risks[flag.hunk] = risks.get(flag.hunk, 0.0) + weight + doubt
    return sorted(hunks, key=lambda hunk: -risks.get(hunk.id, 0.0))


def _end(written: Extracted) -> int:
    """Where the end of the last line stands in the reply."""
    return written.offsets[-1] + len(written.lines[-1]) if written.offsets else 0


def _changed(source: SourceFile, hunk: Hunk) -> tuple[dict[str, bool], dict[str, bool]]:
    """The old and the new words of a hunk that differ, and whether each may be a name by its capital."""
    old: dict[str, bool] = {}
    new: dict[str, bool] = {}
    for each in hunk.changes:
        old_marks, new_marks = marks(source, each)
        old |= _words(source.texts, old_marks)
        new |= _words([line.text for line in each.lines], new_marks)
    return old, new


def _words(lines: Sequence[str], found: Iterable[Mark]) -> dict[str, bool]:
    """The whole words that marks touch: of 3.14 and 3.15, not 14 and 15."""
    words: dict[str, bool] = {}
    for mark in found:
        for word in _WORDS.finditer(lines[mark.line]):
            if word.start() < mark.end and mark.start < word.end():
                before = lines[mark.line][max(0, word.start() - 8) : word.start()]
                words[word[0]] = word[0][0].isupper() and _INSIDE.search(before) is not None
    return words


def _only_spaces(source: SourceFile, hunk: Hunk) -> bool:
    def bare(texts: Iterable[str]) -> str:
        return "".join("".join(texts).split())

    return all(
        bare(source.texts[each.start : each.end]) == bare(line.text for line in each.lines) for each in hunk.changes
    )


def _is_lonely(hunks: Sequence[Hunk], i: int) -> bool:
    before = hunks[i].start - hunks[i - 1].end if i else LONELY_LINES
    after = hunks[i + 1].start - hunks[i].end if i + 1 < len(hunks) else LONELY_LINES
    return min(before, after) >= LONELY_LINES


def _touched(old: dict[str, bool], new: dict[str, bool], instruction: str) -> str:
    """What a short edit touches that the request does not name; "" for nothing of that kind."""
    if len(old) > FEW_WORDS or len(new) > FEW_WORDS:
        return ""
    named = {word.casefold() for word in _WORDS.findall(instruction)}
    words = old | new
    for title, pattern in _TOUCHES:
        touching = {word.casefold() for word in words if pattern.match(word) or (pattern is _NAME and words[word])}
        if touching and touching.isdisjoint(named):
            return title
    return ""
