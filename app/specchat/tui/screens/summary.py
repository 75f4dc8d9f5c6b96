"""What became of each of several files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static


class SummaryScreen(ModalScreen[None]):
    """A line or two for each file."""

    DEFAULT_CSS = """
    SummaryScreen { align: center middle; }
    SummaryScreen > VerticalScroll {
        width: 96; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; scrollbar-size-vertical: 1;
        background: $surface; border: round $primary;
        & > Static { height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close")]

    def __init__(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Names, and what became of them; all of it must be printable."""
        super().__init__()
        self._title = title
        self._rows = rows

    def compose(self) -> ComposeResult:
        """One page that scrolls."""
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(ratio=2, overflow="fold")
        table.add_column(ratio=3, overflow="fold")
        for name, text in self._rows:
            table.add_row(Text(name, "bold"), Text(text))
        with VerticalScroll() as page:
            page.border_title = Content(self._title)
            page.border_subtitle = "Esc closes"
            yield Static(table, markup=False)

    def on_mount(self) -> None:
        """Scroll at once."""
        self.query_one(VerticalScroll).focus()
