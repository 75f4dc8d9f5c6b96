"""The ways from hunk to hunk and from file to file, which decide nothing."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.notifications import SeverityLevel
from textual.screen import Screen

from specchat.attachments import label
from specchat.tui.reviewed import ReviewedFile
from specchat.tui.reviewing import Reviewing
from specchat.tui.screens.hunk_editor import Find
from specchat.tui.widgets.pick_list import PickList
from specchat.tui.widgets.review_page import SIDE_BY_SIDE, ReviewPage


class ReviewMoves(Screen[None]):
    """The page of a review and the keys that move on it."""

    def __init__(self, files: Sequence[ReviewedFile], instruction: str) -> None:
        """Raises ValueError for no files."""
        super().__init__()
        self.state = Reviewing(files)
        self.instruction = instruction
        self._sought = ""
        self._page = ReviewPage(self.state, instruction)

    def action_hunk(self, step: int) -> None:
        """Go to the next hunk or the one before."""
        if not self.state.move(step):
            self.app.bell()
        self._page.draw()

    def action_open_hunk(self, step: int) -> None:
        """Go to the next hunk that is not decided or to the one before."""
        if not self.state.move_open(step):
            self.app.bell()
        self._page.draw()

    def action_find(self) -> None:
        """Go to the next hunk that holds a text; without a text, the one that was looked for last."""

        def typed(text: str | None) -> None:
            self._sought = text or self._sought
            if text is None or not self._sought:
                return
            if not self.state.find(self._sought):
                self.tell_user(f"no hunk holds {self._sought}")
            self._page.draw()

        self.app.push_screen(Find(self._sought), typed)

    def action_file(self, step: int) -> None:
        """Go to the next file or the one before."""
        if not self.state.move_file(step):
            self.app.bell()
        self._page.draw()

    def action_order(self) -> None:
        """List the hunks in the other order."""
        self.tell_user(f"hunks are listed {self.state.toggle_order()}")
        self._page.draw()

    def action_side_by_side(self) -> None:
        """Old and new beside each other, or below."""
        if self.size.width < SIDE_BY_SIDE:
            self.tell_user(f"side by side needs {SIDE_BY_SIDE} columns; here are {self.size.width}")
        else:
            self._page.toggle_side_by_side()

    @on(PickList.Picked)
    def _picked(self, message: PickList.Picked) -> None:
        if message.list_id == "review-files":
            self.state.go_file(message.item)
        else:
            self.state.go(message.item)
        self._page.draw()

    def tell_user(self, text: str, severity: SeverityLevel = "information") -> None:
        """Say something for a while; a text from elsewhere cannot steer the terminal."""
        self.notify(label(text), severity=severity, markup=False, timeout=6)
