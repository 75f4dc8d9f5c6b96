"""The chats (Ctrl+S): all that are kept, found by their words, and what can be done with one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from specchat.attachments import label
from specchat.history.keeper import Keeper
from specchat.history.records import ChatSummary, Hit
from specchat.tui.screens.ask_line import AskLine
from specchat.tui.screens.chat_store import AskingStore, ChatChoice
from specchat.tui.screens.line import Line
from specchat.tui.screens.question import Question
from specchat.tui.widgets.chat_list import ChatList, Unkept, in_line
from specchat.tui.widgets.pick_list import PickList

SHORT = 16  # rows under which the list needs all of them
_TYPING = (("Enter", "open"), ("Tab", "rename, delete, pin, export"), ("Esc", "close"))
_ON_LIST = (
    ("Enter", "open"), ("r", "rename"), ("d", "delete"), ("p", "pin"), ("e", "export"), ("u", "take back"),
    ("/", "find"), ("Esc", ""), ("i", "import"),
)  # fmt: skip


class ChatScreen(AskingStore):
    """Chooses a chat, or a message of one; None when left."""

    DEFAULT_CSS = """
    ChatScreen {
        align: center middle;
        & > Vertical {
            width: 112; max-width: 100%; height: 90%; max-height: 40;
            border: round $primary; background: $surface; padding: 0 1;
        }
        #chats-search { margin-bottom: 1; }
        #chats-keys { height: 1; text-wrap: nowrap; text-overflow: ellipsis; margin-top: 1; }
        #chats-news { height: auto; max-height: 2; color: $text-muted; display: none; }
        #chats-news.-some { display: block; }
        #chats-news.-problem { color: $text-error; }
        &.-short {
            & > Vertical { height: 100%; max-height: 100%; }
            #chats-search { margin: 0; }
            #chats-keys { display: none; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("down", "step(1)", show=False),
        Binding("up", "step(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(
        self,
        keeper: Keeper,
        unkept: Sequence[Unkept],
        shown_id: int | None,
        now: Callable[[], datetime],
        *,
        is_busy: bool,
    ) -> None:
        """`unkept` are chats of this session that are not stored; `is_busy`: the shown one is being written."""
        super().__init__(keeper, unkept)
        self._shown_id = shown_id
        self._busy = is_busy
        self._is_of_list = False  # what is said now
        self._list = ChatList(shown_id, now, id="chats-list")

    def compose(self) -> ComposeResult:
        """A line to search in, the list, what was said, the keys."""
        box = Vertical()
        box.border_title = "Chats"
        with box:
            yield Line("search in titles and messages", id="chats-search")
            yield self._list
            yield Static(id="chats-news", markup=False)
            yield Static(id="chats-keys", markup=False)

    def on_mount(self) -> None:
        """Whatever is typed is searched for."""
        self.query_one(Line).focus()
        self._show_keys()
        self.ask()

    @on(Resize)
    def _resized(self, message: Resize) -> None:
        self.set_class(message.size.height < SHORT, "-short")

    def on_descendant_focus(self) -> None:
        """Keys differ between line and list."""
        self._show_keys()

    @on(Line.Changed)
    def _typed(self) -> None:
        self._list.at = 0
        self.ask()

    @on(Line.Submitted)
    def _entered(self) -> None:
        self._open()

    @on(PickList.Picked)
    def _picked(self, message: PickList.Picked) -> None:
        self._list.mark(message.item)
        self._open()

    @on(ChatList.Asked)
    def _asked(self, message: ChatList.Asked) -> None:
        verb, row = message.verb, self._list.row
        if verb == "search":
            self.query_one(Line).focus()
        elif verb == "undelete":
            self.undelete()
        elif verb == "import":
            self._import()
        elif row is None:
            return
        elif verb == "open":
            self._open()
        elif verb == "export":
            self.dismiss(ChatChoice(row, is_export=True))
        elif isinstance(row, Unkept):
            self._say("it is private: there is nothing of it in the store")
        else:
            {"rename": self._rename, "delete": self._delete, "pin": self._pin}[verb](row)

    @on(AskingStore.Found)
    def _found(self, message: AskingStore.Found) -> None:
        if self.is_last(message.number):
            self._list.fill(message.first, message.stored)
            if not message.first and not message.stored:
                self._say("nothing found" if self.words else "no chat is kept yet", is_of_list=True)
            elif self.words or self._is_of_list:
                self._say("")

    @on(AskingStore.PageRead)
    def _page_read(self, message: AskingStore.PageRead) -> None:
        if self.is_last(message.number):
            self._list.take(message.page, message.chats)

    @on(ChatList.Missing)
    def _missing(self, message: ChatList.Missing) -> None:
        self.read_page(message.page)

    @on(AskingStore.Said)
    def _said(self, message: AskingStore.Said) -> None:
        self._say(message.text, is_problem=message.is_problem)

    @property
    def words(self) -> str:
        """What is searched for."""
        return self.query_one(Line).value.strip()

    def action_step(self, step: int) -> None:
        """Mark another row from within the line."""
        self._list.action_step(step)

    def action_page(self, step: int) -> None:
        """Mark a row a page further from within the line."""
        self._list.action_page(step)

    def action_leave(self) -> None:
        """Drop the search, else close."""
        if self.words:
            self.query_one(Line).value = ""
            self.query_one(Line).focus()
        else:
            self.dismiss(None)

    def _open(self) -> None:
        row = self._list.row
        if row is None:
            return
        if self._busy:
            self._say("a reply is being written: Esc, and Esc again stops it", is_problem=True)
        else:
            self.dismiss(ChatChoice(row, self.words))

    def _rename(self, row: ChatSummary | Hit) -> None:
        chat_id = _id(row)

        def named(title: str | None) -> None:
            if title is not None:
                self.keeper.rename(chat_id, " ".join(title.split()))
                self.ask()

        self.app.push_screen(AskLine("Title", row.title), named)

    def _import(self) -> None:
        def named(path: str | None) -> None:
            if path is not None:
                self.take_up(Path(path).expanduser())

        if self.keeper.path is None:
            self._say("no chats are kept here")
        else:
            self.app.push_screen(AskLine("Import the chats of a file of specchat or ChatGPT", ""), named)

    def _delete(self, row: ChatSummary | Hit) -> None:
        chat_id, title = _id(row), in_line(row.title) or "new chat"
        if self._busy and chat_id == self._shown_id:
            self._say("its reply is being written: Esc, and Esc again stops it", is_problem=True)
            return

        def answered(number: int | None) -> None:
            if number == 1:
                self.delete(chat_id, title)

        text = f"{title}\n\nUntil specchat is left, u in this list takes it back."
        self.app.push_screen(Question("Delete this chat?", text, ["Keep", "Delete"]), answered)

    def _pin(self, row: ChatSummary | Hit) -> None:
        if isinstance(row, Hit):
            self._say("Esc shows the list of chats, where p keeps one on top")
        else:
            self.keeper.pin(row.id, is_pinned=not row.is_pinned)
            self.ask()

    def _say(self, text: str, *, is_problem: bool = False, is_of_list: bool = False) -> None:
        self._is_of_list = is_of_list
        news = self.query_one("#chats-news", Static)
        news.update(Content(label(text)))
        news.set_class(bool(text), "-some")
        news.set_class(is_problem, "-problem")

    def _show_keys(self) -> None:
        keys = _ON_LIST if self._list.has_focus else _TYPING
        parts = [part for key, what in keys for part in ((key, "bold $footer-key-foreground"), f" {what}  ")]
        self.query_one("#chats-keys", Static).update(Content.assemble(*parts))


def _id(row: ChatSummary | Hit) -> int:
    return row.chat if isinstance(row, Hit) else row.id
