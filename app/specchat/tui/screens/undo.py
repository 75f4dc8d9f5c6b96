"""What rewrites wrote, to take one of it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from specchat.tui.screens.picked_list import PickedList
from specchat.tui.screens.review import ReviewScreen

if TYPE_CHECKING:
    from specchat.rewrite.undo import Past


class UndoScreen(PickedList[str | None]):
    """Hands back the id of a write; None when left."""

    TITLE_SHOWN = "Take back"
    PICK = "take it back"
    DEFAULT_CSS = """
    UndoScreen {
        & > Vertical { width: 108; }
        OptionList { max-height: 24; }
    }
    """

    def __init__(self, past: Sequence[Past]) -> None:
        """`past` has the newest first."""
        super().__init__()
        self._past = past

    def lines(self) -> tuple[Sequence[Content], int]:
        """One for each; the newest one that is not undone is marked."""
        from specchat.rewrite.taking_back import line_of

        fresh = (i for i, each in enumerate(self._past) if not each.undone and each.entry.undoes is None)
        return [Content(line_of(each)) for each in self._past], next(fresh, 0)

    def answer(self, index: int) -> str:
        """The id of a line."""
        return self._past[index].entry.id


class MergeReview(ReviewScreen):
    """A review of what a merge would change. No model wrote it, so none writes it anew."""

    def action_redo(self) -> None:
        """Not here."""
        self.notify("no model wrote this; e edits it", markup=False, timeout=6)
