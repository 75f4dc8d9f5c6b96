"""One line to fill in, over whatever is on the screen."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from specchat.tui.screens.line import Line


class AskLine(ModalScreen[str | None]):
    """Hands back the line; None for Esc or for nothing in it."""

    DEFAULT_CSS = """
    AskLine {
        align: center middle;
        & > Vertical {
            width: 72; max-width: 100%; height: auto; border: round $primary; background: $surface; padding: 0 1;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(self, title: str, value: str) -> None:
        """`title` is the program's own words, `value` what stands in the line at first."""
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        """The line in a box."""
        box = Vertical()
        box.border_title = self._title
        box.border_subtitle = "Enter  Esc"
        with box:
            yield Line("")

    def on_mount(self) -> None:
        """The cursor stands behind what is there."""
        line = self.query_one(Line)
        line.value = self._value
        line.cursor_position = len(line.value)
        line.focus()

    @on(Line.Submitted)
    def _entered(self, message: Line.Submitted) -> None:
        message.stop()
        self.dismiss(message.value.strip() or None)

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
