"""A text to read, opened at a line: what copied words were copied from."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import TextArea

from specchat.attachments import label
from specchat.console import printable


class TextScreen(ModalScreen[None]):
    """Shows a text that cannot be changed."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen > TextArea { width: 96%; height: 90%; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close", priority=True)]

    def __init__(self, title: str, text: str, line: int) -> None:
        super().__init__()
        self._title = label(title)
        self._text = printable(text)
        self._line = line

    def compose(self) -> ComposeResult:
        area = TextArea(self._text, read_only=True, show_line_numbers=True, soft_wrap=True)
        area.border_title = Content(self._title)  # text would be read as markup
        area.border_subtitle = "Esc closes"
        yield area

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.move_cursor((self._line - 1, 0))
        area.select_line(self._line - 1)
        area.focus()
