"""The steps of one reply, and the decisions behind them, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import DataTable

from specchat.attachments import label

if TYPE_CHECKING:
    from specchat.session import Reply

COLUMNS = ("step", "guesser", "drafted", "accepted", "match", "ms", "p guess", "p chosen", "text")


class StepsScreen(ModalScreen[None]):
    """A row a step."""

    DEFAULT_CSS = """
    StepsScreen { align: center middle; }
    StepsScreen > DataTable { width: 96%; height: 90%; background: $surface; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,x,q", "dismiss", "Close")]

    def __init__(self, reply: Reply, piece: Callable[[int], bytes]) -> None:
        super().__init__()
        self._reply = reply
        self._piece = piece

    def compose(self) -> ComposeResult:
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        table.border_title = "Steps of this reply"
        table.border_subtitle = "Esc closes"
        yield table

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for name in COLUMNS:
            table.add_column(Text(name))
        for number, step in enumerate(self._reply.steps, 1):
            text = b"".join(self._piece(token) for token in step.tokens).decode("utf-8", "replace")
            seconds = step.draft_s + step.verify_s + step.accept_s
            chances = ("" if p is None else f"{p:.2f}" for p in (step.p_rejected, step.p_chosen))
            cells = [
                number,
                step.guesser,
                step.drafted,
                step.accepted,
                step.match or "",
                f"{seconds * 1e3:.1f}",
                *chances,
            ]
            table.add_row(*(Text(str(cell)) for cell in cells), Text(label(text.replace("\n", "\u23ce"))))
