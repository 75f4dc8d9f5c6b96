"""What a server writes, of whose guesses only totals are known: text, and no steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from specchat.dialogue import Dialogue
from specchat.rewrite.copies import Copies
from specchat.rewrite.flags import Rejection
from specchat.rewrite.prompt import Asked
from specchat.session import ChatSession
from speculation.types import Step, Tokens


def listener(session: Dialogue, asked: Asked, old: Sequence[str], system: str) -> Copies | Heard:
    """Who takes up the reply of a session."""
    if isinstance(session, ChatSession):
        return Copies(session, asked, old, system)
    return Heard(asked, old, is_begun=session.can_begin_replies)


class Heard:
    """Grows with the text of one reply, with the ways of `Copies`."""

    def __init__(self, asked: Asked, old: Sequence[str], *, is_begun: bool) -> None:
        """`is_begun`: the reply was begun with the opening mark; else the mark is left out where it comes."""
        self.steps: list[Step] = []
        self._texts: list[str] = []
        self._opening = "" if is_begun else asked.opening
        self._held = ""  # of what may become the opening mark
        self._starts = [0, *accumulate(len(line) + 1 for line in old)]

    @property
    def text(self) -> str:
        """What was written, without the opening mark."""
        return "".join(self._texts)

    @property
    def has_begun(self) -> bool:
        """Whether anything was written."""
        return bool(self._texts or self._held)

    def hear(self, text: str) -> str:
        """Take up text; what of it is part of the file."""
        if self._opening:
            text, self._held = self._held + text, ""
            if text.startswith(self._opening):
                text, self._opening = text.removeprefix(self._opening), ""
            elif self._opening.startswith(text):
                text, self._held = "", text
            else:
                self._opening = ""
        if text:
            self._texts.append(text)
        return text

    def file_begins(self, prompt: Tokens) -> int | None:
        """Nobody here has such a prompt."""
        return None

    def feed(self, step: Step) -> int | None:
        """No server sends steps."""
        return None

    def rejected(self) -> tuple[Rejection, ...]:
        """Nobody here knows what was guessed."""
        return ()

    def done(self, line: int) -> float:
        """The share of the old text, 0 to 1, that stands in front of a line of the part."""
        return self._starts[line] / max(1, self._starts[-1])
