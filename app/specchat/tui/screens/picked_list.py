"""A list in a frame of which one line is picked; who derives from it says what the lines are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList

Answer = TypeVar("Answer")


class PickedList(ModalScreen[Answer]):
    """Hands back what belongs to a line; no answer when left."""

    TITLE_SHOWN: ClassVar[str]
    PICK: ClassVar[str]  # what Enter does
    DEFAULT_CSS = """
    PickedList {
        align: center middle;
        & > Vertical {
            width: 76; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        OptionList {
            height: auto; max-height: 20; border: none; padding: 0; background: $surface;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        OptionList:focus { border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    @abstractmethod
    def lines(self) -> tuple[Sequence[Content], int]:
        """The lines, and the one that is marked at first; asked for when the list is shown."""

    @abstractmethod
    def answer(self, index: int) -> Answer:
        """What belongs to a line."""

    def compose(self) -> ComposeResult:
        """The list."""
        box = Vertical()
        box.border_title = self.TITLE_SHOWN
        box.border_subtitle = f"Enter {self.PICK}  Esc leave"
        with box:
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        """Fill it."""
        options = self.query_one(OptionList)
        lines, marked = self.lines()
        options.add_options(lines)
        options.highlighted = min(marked, len(lines) - 1) if lines else None
        options.focus()

    @on(OptionList.OptionSelected)
    def _picked(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.dismiss(self.answer(message.option_index))

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
