"""Where in the old file the guesses of a rewrite came from, and where the model turned them down."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from specchat.chat import Turn
from specchat.conversation import Role
from specchat.places import Places
from specchat.provenance import Authorship
from specchat.rewrite.flags import Rejection, rejections
from specchat.rewrite.prompt import Asked
from specchat.session import ChatSession
from speculation.types import Step, Tokens

_QUESTION, _REPLY = 1, 2  # ids of the two turns


class Copies:
    """Grows with the steps of one reply."""

    def __init__(self, session: ChatSession, asked: Asked, old: Sequence[str], system: str) -> None:
        self.steps: list[Step] = []
        self._session = session
        self._piece = session.engines.target.weights.vocabulary.piece
        self._asked = asked
        self._system = system
        self._starts = [0, *accumulate(len(line) + 1 for line in old)]
        self._authorship: Authorship | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything was written."""
        return bool(self.steps)

    def file_begins(self, prompt: Tokens) -> int | None:
        """See the function of that name."""
        return file_begins(prompt, self._piece, self._asked)

    def hear(self, text: str) -> str:
        """Take up text, which the steps have too; what of it is part of the file: all."""
        return text

    @property
    def text(self) -> str:
        """What was written."""
        return "" if self._authorship is None else self._authorship.text

    def feed(self, step: Step) -> int | None:
        """Take up a step; the old line, counted in the part, of the last guessed token that was accepted."""
        if self._authorship is None:
            path = [
                Turn(_QUESTION, None, Role.USER, self._asked.message),
                Turn(_REPLY, _QUESTION, Role.ASSISTANT, self._asked.opening),
            ]
            places = Places(self._session.prompt, self._piece, path, self._system)
            self._authorship = Authorship(places, _REPLY, self._asked.opening)
        self.steps.append(step)
        self._authorship.feed(step, [self._piece(token) for token in step.tokens])
        source = step.source_of(step.accepted - 1) if step.accepted else None
        return None if source is None else self._old_line(self._authorship, source)

    def rejected(self) -> tuple[Rejection, ...]:
        """Where guesses from the old file were rejected."""
        written = self._authorship
        if written is None:
            return ()
        return tuple(rejections(self.steps, written.ends, lambda index: self._old_line(written, index) is not None))

    def done(self, line: int) -> float:
        """The share of the old text, 0 to 1, that stands in front of a line of the part."""
        return self._starts[line] / max(1, self._starts[-1])

    def _old_line(self, written: Authorship, context_index: int) -> int | None:
        """The old line that a token of the context belongs to; None outside the file."""
        origin = written.origin(context_index)
        inside = self._asked.start <= origin.offset < self._asked.end
        if origin.turn != _QUESTION or not inside:
            return None
        return bisect_right(self._starts, origin.offset - self._asked.start) - 1


def file_begins(prompt: Iterable[int], piece: Callable[[int], bytes], asked: Asked) -> int | None:
    """The index of the prompt's first token that lies in the old file; None where the message is not found."""
    pieces = [piece(int(token)) for token in prompt]
    before = asked.message[: asked.start].encode()
    found = b"".join(pieces).find(before)
    if found < 0:  # a template that changed its text
        return None
    ends = list(accumulate(len(each) for each in pieces))
    return min(bisect_left(ends, found + len(before)) + 1, len(pieces))
