"""A question over whatever is on the screen, with a button for each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Button, Static


class Question(ModalScreen[int | None]):
    """Asks once; hands back the number of the answer, None for Esc. The first answer has the focus."""

    DEFAULT_CSS = """
    Question {
        align: center middle;
        & > Vertical {
            width: 64;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            border: round $primary;
            background: $surface;
            padding: 0 1;
            overflow-y: auto;
        }
        Static { margin-bottom: 1; }
        Horizontal { height: auto; }
        Button { margin-right: 1; min-width: 8; }
        &.-narrow Horizontal { layout: vertical; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, text: str, answers: Sequence[str]) -> None:
        """`text` is shown as it is and must be printable; `title` and `answers` are the program's own words."""
        super().__init__()
        self._title = title
        self._text = text
        self._answers = answers

    def compose(self) -> ComposeResult:
        """The question, then the answers beside each other."""
        box = Vertical()
        box.border_title = self._title
        with box:
            yield Static(Content(self._text), markup=False)
            with Horizontal():
                for number, answer in enumerate(self._answers):
                    yield Button(Content(answer), compact=True, id=f"answer-{number}")

    def on_resize(self, event: Resize) -> None:
        """Answers stand below each other where they do not fit beside each other."""
        width = sum(max(8, cell_len(answer) + 4) + 1 for answer in self._answers)
        self.set_class(width > min(64, event.size.width) - 4, "-narrow")

    @on(Button.Pressed)
    def _answer(self, message: Button.Pressed) -> None:
        message.stop()
        self.dismiss(int(str(message.button.id).removeprefix("answer-")))

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
