"""What rewrites wrote, to take one of it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList

from specchat.tui.screens.review import ReviewScreen

if TYPE_CHECKING:
    from specchat.rewrite.undo import Past


class UndoScreen(ModalScreen[str | None]):
    """Hands back the id of a write; None when left."""

    DEFAULT_CSS = """
    UndoScreen {
        align: center middle;
        & > Vertical {
            width: 108; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        OptionList {
            height: auto; max-height: 24; border: none; padding: 0; background: $surface;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        OptionList:focus { border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(self, past: Sequence[Past]) -> None:
        """`past` has the newest first."""
        super().__init__()
        self._past = past

    def compose(self) -> ComposeResult:
        """A line for each."""
        from specchat.rewrite.taking_back import line_of

        box = Vertical()
        box.border_title = "Take back"
        box.border_subtitle = "Enter take it back  Esc leave"
        with box:
            yield OptionList(*(Content(line_of(each)) for each in self._past), markup=False)

    def on_mount(self) -> None:
        """The newest one that is not undone is marked."""
        options = self.query_one(OptionList)
        fresh = (i for i, each in enumerate(self._past) if not each.undone and each.entry.undoes is None)
        options.highlighted = next(fresh, 0)
        options.focus()

    @on(OptionList.OptionSelected)
    def _picked(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.dismiss(self._past[message.option_index].entry.id)

    def action_leave(self) -> None:
        """Close without one."""
        self.dismiss(None)


class MergeReview(ReviewScreen):
    """A review of what a merge would change. No model wrote it, so none writes it anew."""

    def action_redo(self) -> None:
        """Not here."""
        self.notify("no model wrote this; e edits it", markup=False, timeout=6)
