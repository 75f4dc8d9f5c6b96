"""One hunk of a review, written anew on the engine's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat.errors import in_one_line
from specchat.tui.rewrite_messages import HunkEnded
from specchat.tui.rewrite_plans import Post

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.dialogue import Dialogue
    from specchat.rewrite.source import SourceFile
    from specchat.tui.screens.review import ReviewScreen


class HunkJob:
    """Old lines of one hunk, written anew on the engine's thread with a note of the user's."""

    def __init__(self, asked: ReviewScreen.Redo, source: SourceFile, start: int, end: int, instruction: str) -> None:
        self._asked = asked
        self._source = source
        self._lines = start, end
        self._instruction = instruction
        self._stopped = False

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self._stopped = True

    def refuse(self, post: Post, text: str) -> None:
        """It cannot be begun."""
        post(HunkEnded(self._asked, None, text))

    def run(self, session: Dialogue, post: Post, between_steps: Callable[[], None]) -> None:
        """Let the model write the lines again."""
        from specchat.rewrite.long import rewriting_of
        from specchat.rewrite.outcome import Outcome
        from specchat.rewrite.part import Part

        if self._stopped:
            return
        try:
            outcome = None
            rewriting = rewriting_of(session, self._source, self._instruction, Part(*self._lines))
            for event in rewriting.run():
                outcome = event if isinstance(event, Outcome) else outcome
                between_steps()
                if self._stopped:
                    rewriting.stop()
            post(HunkEnded(self._asked, outcome))
        except Exception as error:
            self.refuse(post, in_one_line(error))
