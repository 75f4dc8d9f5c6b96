"""Who proposed the characters of a reply, and where copied ones come from, by the verifier's record alone."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from specchat.places import THIS_REPLY, Author, Origin, Places
from speculation.types import Finish, Step

__all__ = ["Author", "Authorship", "Origin", "Places", "Span", "clipped", "line_shares"]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of a reply that one step and one author brought."""

    start: int
    end: int
    author: Author
    step: int  # index of the step in the reply
    origin: Origin | None  # of the first token; None: not copied


class Authorship:
    """Grows with a reply: whose characters are whose. It decodes for itself, so it may be ahead of held-back text."""

    def __init__(self, places: Places, reply: int | None = None, begun: str = "") -> None:
        """`reply` is the id of the turn that is being written; `begun` what stands of it already, in the prompt."""
        self._places = places
        self._reply = reply
        self._begun = begun
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._steps = 0
        self._half: tuple[int, Author, int, Origin | None] | None = None  # what brought the last bytes: the token ...
        self.text = ""
        self.spans: list[Span] = []  # they cover the text without gaps, in order
        self.ends: list[int] = []  # for each emitted token, where its characters end
        self.who: Counter[Author] = Counter()  # emitted tokens

    @property
    def last(self) -> list[Span]:
        """The spans of the last step."""
        found = takewhile(lambda span: span.step == self._steps - 1, reversed(self.spans))
        return list(found)[::-1]

    def feed(self, step: Step, pieces: Sequence[bytes]) -> None:
        """Take up a step; `pieces` are the bytes of its tokens."""
        for i, piece in enumerate(pieces):
            author, origin = self._proposed(step, i)
            self.who[author] += 1
            ends_reply = step.finish is Finish.END and i == len(pieces) - 1  # its bytes, if any, are not shown
            if piece and not ends_reply:
                self._half = (len(self.ends), author, self._steps, origin)
                self._append(self._decoder.decode(piece), author, self._steps, origin)
            self.ends.append(len(self.text))
        self._steps += 1

    def finish(self) -> None:
        """No more tokens will come: half a character becomes one mark."""
        rest = self._decoder.decode(b"", final=True)
        if rest and self._half is not None:
            token, author, step, origin = self._half
            self._append(rest, author, step, origin)
            self.ends[token:] = [len(self.text)] * (len(self.ends) - token)

    def _append(self, text: str, author: Author, step: int, origin: Origin | None) -> None:
        if not text:
            return
        start = len(self.text)
        self.text += text
        end = len(self.text)
        last = self.spans[-1] if self.spans else None
        if last and (last.step, last.author) == (step, author) and _same_text(last.origin, origin):
            self.spans[-1] = replace(last, end=end)
        else:
            self.spans.append(Span(start, end, author, step, origin))

    def _proposed(self, step: Step, i: int) -> tuple[Author, Origin | None]:
        if i >= step.accepted:
            return Author.MODEL, None
        source = step.source_of(i)
        if source is None:
            return Author.DRAFT, None
        # A copy that applies an edit may be a few tokens off behind it; where it began is exact.
        origin = self.origin(source)
        return origin.author, origin

    def origin(self, context_index: int) -> Origin:
        """Where a token of prompt or reply stands."""
        written = context_index - self._places.prompt_tokens
        if written < 0:
            return self._places.find(context_index)
        offset = self.ends[min(written, len(self.ends)) - 1] if written and self.ends else 0
        line = self._begun.count("\n") + self.text.count("\n", 0, offset) + 1
        return Origin(Author.REPLY, THIS_REPLY, line, self._reply, len(self._begun) + offset)


def clipped(spans: Iterable[Span], length: int) -> list[Span]:
    """The spans of a text's first `length` characters: what is shown while the rest is held back or cut off."""
    return [span if span.end <= length else replace(span, end=length) for span in spans if span.start < length]


def line_shares(text: str, spans: Iterable[Span]) -> list[float]:
    """For each line of a text, the share of its characters that were guessed; a line's end is part of it."""
    starts = [0, *(found.end() for found in re.finditer("\n", text)), len(text)]
    guessed = [0] * (len(starts) - 1)
    for span in spans:
        if span.author is Author.MODEL:
            continue
        at, end = span.start, min(span.end, len(text))
        line = bisect_right(starts, at) - 1
        while at < end:
            until = min(end, starts[line + 1])
            guessed[line] += until - at
            at, line = until, line + 1
    return [count / max(1, end - start) for count, (start, end) in zip(guessed, pairwise(starts), strict=True)]


def _same_text(one: Origin | None, other: Origin | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.title, one.turn) == (other.title, other.turn)
