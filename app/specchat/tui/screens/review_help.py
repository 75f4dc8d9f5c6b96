"""The keys and signs of the review, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("y / n", "accept / reject this hunk, and go to the next open one"),
    ("a / d", "accept / reject it and all open ones behind it in this file"),
    ("A / D", "accept / reject it and all open ones of all files"),
    ("s", "split it into smaller ones"),
    ("e", "edit its new lines; what you typed is accepted"),
    ("r", "let the model write it anew, with a note of yours"),
    ("u", "undo the last of these"),
    ("[ ]  or  K J", "previous, next hunk"),
    ("k j", "previous, next hunk that is not decided"),
    ("/", "the next hunk that holds a text, in its old or its new lines"),
    ("{ }", "previous, next file"),
    ("arrows, Space", "scroll"),
    ("o", "order of the hunks: by place, or the doubtful ones first"),
    ("v", "old and new side by side, from 110 columns on"),
    ("w / W", "write the accepted hunks of all files / of this one; nothing is written before"),
    ("q  or  Esc", "leave; asks where accepted hunks are not written"),
)
SIGNS = (
    ("[ ] [+] [-] [~]", "open, accepted, rejected, being written anew"),
    ("- and +", "a line that goes, a line that comes; underlined: the words that differ"),
    ("QUIET", "a short, lonely change of a number, an address, a name or a negation"),
    ("SHAKY", "the model gave the old text nearly as much probability as the new one"),
    ("BLANKS", "only blanks or blank lines change; they are drawn as dots and arrows"),
    ("CHECK", "a guard rail, a lost tail, a remark in place of lines: writing asks first"),
    ("NOTE", "the real place of a file from elsewhere; what of the reply was left out"),
    ("STOP", "cut off, empty or broken: this cannot be written"),
)


class ReviewHelp(ModalScreen[None]):
    """One page that scrolls."""

    DEFAULT_CSS = """
    ReviewHelp { align: center middle; }
    ReviewHelp > VerticalScroll {
        width: 84; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; scrollbar-size-vertical: 1;
        background: $surface; border: round $primary;
        & > Static { height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        """Keys, then signs."""
        with VerticalScroll() as page:
            page.border_title = "Keys of the review"
            page.border_subtitle = "Esc closes"
            yield Static(_table(KEYS), markup=False)
            yield Static("", markup=False)
            yield Static(_table(SIGNS), markup=False)

    def on_mount(self) -> None:
        """Scroll at once."""
        self.query_one(VerticalScroll).focus()


def _table(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=16)
    table.add_column(ratio=1)
    for key, text in rows:
        table.add_row(Text(key, "bold"), Text(text))
    return table
