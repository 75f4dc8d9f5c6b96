"""The list of chats, or of the places that a search has found; what is not on the screen is not asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.binding import Binding, BindingType
from textual.message import Message

from specchat.console import printable
from specchat.history.records import ChatSummary, Hit
from specchat.history.telling import moment
from specchat.tui.widgets.pick_list import Parts, PickList

PAGE = 200  # chats that are read at once
_ROOMY, _WIDE = 40, 76  # columns from which a line has a date, and from which it has figures


@dataclass(frozen=True, slots=True)
class Unkept:
    """A chat of this session that is not in the store."""

    number: int  # in the session's own list
    title: str
    messages: int


Row = ChatSummary | Hit | Unkept


class ChatList(PickList, can_focus=True):
    """Any number of rows; with the focus, letters are keys."""

    DEFAULT_CSS = "ChatList { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"asked('{verb}')", text) for key, verb, text in (
            ("enter", "open", "Open"), ("r", "rename", "Rename"), ("d,delete", "delete", "Delete"),
            ("p", "pin", "Keep on top"), ("e", "export", "Export"), ("u", "undelete", "Take back"),
            ("i", "import", "Import"), ("slash", "search", "Search"),
        )),
        Binding("down,j", "step(1)", show=False),
        Binding("up,k", "step(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("home,g", "step(-1000000000)", show=False),
        Binding("end,G", "step(1000000000)", show=False),
    ]  # fmt: skip

    @dataclass
    class Asked(Message):
        """A key that means something for the marked row."""

        verb: str

    @dataclass
    class Missing(Message):
        """A page of chats that is wanted on the screen."""

        page: int

    def __init__(self, shown_id: int | None, now: Callable[[], datetime], *, id: str) -> None:
        """`shown_id` is the chat that is open."""
        super().__init__(self._line, id=id)
        self._shown_id = shown_id
        self._now = now
        self._first: list[Row] = []  # rows that are all here
        self._pages: dict[int, Sequence[ChatSummary]] = {}  # of those that come behind them
        self._asked_for: set[int] = set()
        self._total = 0
        self.at = 0

    def fill(self, first: Sequence[Row], stored: int) -> None:
        """Other rows: some that are here, and behind them so many chats of the store."""
        self._first, self._pages, self._asked_for = list(first), {}, set()
        self._total = len(first) + stored
        self.mark(self.at)

    def take(self, page: int, chats: Sequence[ChatSummary]) -> None:
        """A page of the chats."""
        self._pages[page] = chats
        self.mark(self.at)

    def mark(self, at: int) -> None:
        """Mark a row."""
        self.at = max(0, min(at, self._total - 1))
        self.show(self._total, self.at if self._total else -1)

    @property
    def row(self) -> Row | None:
        """The marked row; None where there is none, or it is not read yet."""
        return self._row(self.at) if self.at < self._total else None

    def action_step(self, step: int) -> None:
        """Mark a row further down or up."""
        self.mark(self.at + step)

    def action_page(self, step: int) -> None:
        """Mark a row a page further."""
        self.mark(self.at + step * max(1, self.size.height - 1))

    def action_asked(self, verb: str) -> None:
        """Hand on a key."""
        self.post_message(self.Asked(verb))

    def _row(self, item: int) -> Row | None:
        if item < len(self._first):
            return self._first[item]
        page, at = divmod(item - len(self._first), PAGE)
        if page not in self._pages:
            if page not in self._asked_for:
                self._asked_for.add(page)
                self.post_message(self.Missing(page))
            return None
        chats = self._pages[page]
        return chats[at] if at < len(chats) else None  # another process has deleted some meanwhile

    def _line(self, item: int, width: int) -> Parts:
        row = self._row(item)
        if row is None:
            return [(" ...", "quiet")]
        if isinstance(row, Hit):
            return self._hit(row, width)
        if isinstance(row, Unkept):
            return _laid_out("  ", row.title, "private", _messages(row.messages), width)
        mark = "*" if row.is_pinned else ">" if row.id == self._shown_id else " "
        figures = (
            f"{_messages(row.messages):>13}{'-' if row.tokens_per_step is None else f'{row.tokens_per_step:.2f}':>6}"
        )
        if width >= _WIDE + 24:
            figures = f"{figures}  {set_cell_size(in_line(row.model), 22)}"
        return _laid_out(f"{mark} ", row.title, self._date(row.changed), figures, width)

    def _hit(self, hit: Hit, width: int) -> Parts:
        date = f"{self._date(hit.when):>16}  " if width >= _WIDE else ""
        title = in_line(hit.title) or "new chat"
        if hit.turn is None:
            return [(f"  {date}", "quiet"), *_marked(title, hit.marks)]
        room = max(6, (width - len(date)) // 3)
        short = title if cell_len(title) <= room else f"{set_cell_size(title, room - 1).rstrip()}…"
        return [(f"  {date}{short}  ", "quiet"), *_marked(in_line(hit.snippet), hit.marks)]

    def _date(self, seconds: float) -> str:
        """When it was; only the time for today."""
        return moment(seconds).removeprefix(f"{self._now():%Y-%m-%d} ")


def in_line(text: str) -> str:
    """A text fit for one line, a character for each of its characters."""
    return re.sub(r"\s", " ", printable(text))


def _messages(number: int) -> str:
    return f"{number} message{'' if number == 1 else 's'}"


def _laid_out(mark: str, title: str, date: str, figures: str, width: int) -> Parts:
    shown = in_line(title) or "new chat"
    date = f"{date:>16}  " if width >= _ROOMY else ""
    figures = f"  {figures}" if width >= _WIDE else ""
    room = max(1, width - len(mark) - len(date) - cell_len(figures))
    if cell_len(shown) > room:
        shown = f"{set_cell_size(shown, room - 1).rstrip()}…"
    return [(mark + date, "quiet"), (set_cell_size(shown, room), ""), (figures, "quiet")]


def _marked(text: str, marks: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    parts, at = [], 0
    for start, end in marks:
        parts += [(text[at:start], ""), (text[start:end], "match")]
        at = end
    return [*parts, (text[at:], "")]
