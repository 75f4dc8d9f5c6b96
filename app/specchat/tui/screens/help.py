"""Keys and commands, and what the figures mean."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.tui.commands import COMMANDS

KEYS = (
    ("Enter", "send"),
    ("Ctrl+J, Shift+Enter", "new line"),
    ("Up, Down", "earlier prompts"),
    ("@", "attach a file"),
    ("/", "commands"),
    ("Esc", "stop the reply; else close a panel; else back to the prompt"),
    ("Ctrl+C", "copy the selection; without one, stop"),
    ("Ctrl+P", "everything, by name"),
    ("Tab", "to the messages and back"),
)
ON_MESSAGES = (
    ("j k, arrows, g G", "next, previous, first, last message"),
    ("y / c / s", "copy the message / a code block / save a code block"),
    ("e", "edit a question and send it as a branch"),
    ("Left, Right", "other versions of a message, where it says 2/3"),
    ("r / d", "write a reply anew / delete from here"),
    ("p, then Enter", "where copied words come from, and go there"),
    ("x", "the steps of a reply"),
    ("v", "write a reply again without guesses and compare"),
    ("t", "show or fold what the model thought"),
)
FIGURES = (
    ("tokens/step", "tokens that one pass of the model yielded; plain decoding is exactly 1.00"),
    ("accepted", "share of the examined guesses that the model agreed with"),
    ("est", "a speed-up estimated from the time of plain steps on this machine; shown from 32 steps on"),
    ("gutter", "· nothing guessed in this line, then ░ ▒ █ the larger the share of guessed characters"),
    ("token tint", "underlined: proposed by the draft model; italic: copied; both: copied from a file"),
    ("reversed cell", "where plain decoding would be by now"),
)


class HelpScreen(ModalScreen[None]):
    """One page that scrolls."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 84; max-width: 100%; height: 90%; max-height: 100%; padding: 0 1;
        background: $surface; border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q,question_mark", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll() as page:
            page.border_title = "Help"
            page.border_subtitle = "Esc closes"
            commands = [
                (
                    f"/{command.name} {command.hint}".strip(),
                    f"{command.text}{f'  ({command.key})' if command.key else ''}",
                )
                for command in COMMANDS
            ]
            parts = [("Keys", KEYS), ("On a message (Tab goes there)", ON_MESSAGES), ("Commands", commands)]
            tables = [_table(title, rows) for title, rows in [*parts, ("Figures", FIGURES)]]
            yield Static(Group(*tables), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def _table(title: str, rows: object) -> Table:
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        title=Text(f"\n{title}", "bold"),
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    table.add_column(min_width=22)
    table.add_column(ratio=1)
    for name, text in rows:  # type: ignore[attr-defined]
        table.add_row(Text(name), Text(text))
    return table
