"""What a draft model would have given on replies that were written without it: read again, not written again.

The draft model reads a whole reply in a few wide forwards and is asked, at each token, whether its own best choice is
the one that came. Steps of any length follow from that by counting, and their price from what was measured here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from speculation.context import Context, common_prefix
from speculation.cost import CostTable
from speculation.types import Interrupted, Model

ENOUGH = 32  # steps below which nothing is said
LONGEST = 16  # tokens of a draft
READ_AT_ONCE = 256  # tokens of a prompt between two looks whether this is still wanted
_FENCE = re.compile(rb"\s*(```|~~~)")
_ITEM = re.compile(rb"\s*([-*+]|\d+[.)])\s")


class Kind(StrEnum):
    """What a piece of text is, as far as its lines show."""

    CODE = "code"
    LIST = "list"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class PastReply:
    """A reply as token ids, behind the prompt that led to it."""

    prompt: tuple[int, ...]  # not empty
    reply: tuple[int, ...]
    kinds: tuple[Kind, ...]  # of each token of the reply


@dataclass(frozen=True, slots=True)
class Counted:
    """What guessing k tokens at a time comes to."""

    tokens: int = 0
    steps: int = 0

    @property
    def per_step(self) -> float:
        """Tokens per step; plain decoding is 1."""
        return self.tokens / self.steps if self.steps else 1.0

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.tokens + other.tokens, self.steps + other.steps)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a draft model would have given, with the length of draft that pays best."""

    replies: int
    k: int
    all: Counted
    by_kind: dict[Kind, Counted]
    speed_up: float  # estimated
    seconds: float  # that finding this out took

    def line(self, draft: str) -> str:
        """One line for people; `draft` is the model's name."""
        alone = self.replies == 1
        replies = "your last reply" if alone else f"your last {self.replies} replies"
        makes = "makes" if alone else "make"
        if self.all.steps < ENOUGH:
            return (
                f"not enough yet to say what {draft} would give: {replies} {makes} {self.all.steps} steps of {ENOUGH}"
            )
        kinds = ", ".join(f"{kind} {each.per_step:.1f}" for kind, each in self.by_kind.items() if each.steps)
        kinds = f" ({kinds})" if len(self.by_kind) > 1 else ""
        return (
            f"on {replies} {draft} would have given {self.all.per_step:.1f} tokens per step{kinds}: "
            f"about x{self.speed_up:.1f} here (est), {self.seconds:.0f} s"
        )


def kinds_of_lines(text: bytes) -> list[Kind]:
    """The kind of each line of a text."""
    found, fenced = [], False
    for line in text.split(b"\n"):
        is_fence = _FENCE.match(line) is not None
        found.append(Kind.CODE if fenced or is_fence else Kind.LIST if _ITEM.match(line) else Kind.PROSE)
        fenced ^= is_fence
    return found


def kinds_of(pieces: Sequence[bytes]) -> tuple[Kind, ...]:
    """The kind of the line that each token begins in."""
    of_lines = kinds_of_lines(b"".join(pieces))
    found, line_number = [], 0
    for piece in pieces:
        found.append(of_lines[line_number])
        line_number += piece.count(b"\n")
    return tuple(found)


def agreements(
    model: Model, n_target_vocab: int, past: Sequence[PastReply], progress: Callable[[float], bool]
) -> list[list[bool]]:
    """For each token of each reply, whether it is the draft model's best choice there.

    `progress` hears 0..1 and may return False to stop. The model's cache is empty afterwards. Raises Interrupted,
    SpeculationError.
    """
    n_shared = min(model.n_vocab, n_target_vocab)
    cached = Context()
    total, done = sum(len(each.prompt) + len(each.reply) for each in past) or 1, 0

    def tell() -> None:
        if not progress(min(1.0, done / total)):
            raise Interrupted("the trial was stopped")

    found = []
    model.rewind(0)
    try:
        for each in past:
            tokens = np.array([*each.prompt, *each.reply], dtype=np.int32)
            # Behind what it cannot read or has no room for, a draft model proposes nothing.
            readable = np.flatnonzero(tokens >= model.n_vocab)
            end = min(len(tokens), model.n_ctx, int(readable[0]) if readable.size else len(tokens))
            first = len(each.prompt) - 1  # the token whose row says what comes first
            keep = min(common_prefix(cached.tokens, tokens), first)
            cached.truncate(keep)
            model.rewind(keep)
            agreed = [False] * len(each.reply)
            at = keep
            while at < min(first, end):
                upto = min(at + READ_AT_ONCE, first, end)
                model.forward(tokens[at:upto], n_rows=0)
                cached.extend(tokens[at:upto])
                at = upto
                tell()
            while first <= at < min(end, len(tokens) - 1):
                upto = min(at + model.max_rows, end, len(tokens) - 1)
                rows = model.forward(tokens[at:upto], n_rows=upto - at)[:, :n_shared]
                cached.extend(tokens[at:upto])
                agreed[at - first : upto - first] = (rows.argmax(axis=1) == tokens[at + 1 : upto + 1]).tolist()
                at = upto
                tell()
            done += len(tokens)
            found.append(agreed)
            tell()
    finally:
        model.rewind(0)
    return found


def counted(agreed: Sequence[bool], kinds: Sequence[Kind], k: int) -> dict[Kind, Counted]:
    """The steps of one reply with k guesses each, by the kind of text that they begin in."""
    found: dict[Kind, Counted] = {}
    at = 0
    while at < len(agreed):
        run = next((i for i in range(min(k, len(agreed) - at)) if not agreed[at + i]), min(k, len(agreed) - at))
        tokens = min(run + 1, len(agreed) - at)
        found[kinds[at]] = found.get(kinds[at], Counted()) + Counted(tokens, 1)
        at += tokens
    return found


def verdict(
    past: Sequence[PastReply],
    agreed: Sequence[Sequence[bool]],
    target: CostTable,
    draft_step_s: float,
    seconds: float,
    longest: int = LONGEST,
) -> Verdict:
    """The length of draft with the best estimated speed-up, and what it comes to.

    `target` prices a check of k tokens, `draft_step_s` is the time of one token of the draft model.
    """

    def at(k: int) -> Verdict:
        by_kind: dict[Kind, Counted] = {}
        for each, choices in zip(past, agreed, strict=True):
            for kind, more in counted(choices, each.kinds, k).items():
                by_kind[kind] = by_kind.get(kind, Counted()) + more
        everything = sum(by_kind.values(), Counted())
        step_s = k * draft_step_s + target.forward_s(k + 1)
        speed_up = everything.per_step * target.forward_s(1) / step_s
        return Verdict(len(past), k, everything, dict(sorted(by_kind.items())), speed_up, seconds)

    return max(map(at, range(1, longest + 1)), key=lambda each: each.speed_up)
