"""The chats of this session, to go back to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList

from specchat.chat import Chat
from specchat.console import printable


class ChatScreen(ModalScreen[Chat | None]):
    """Chooses a chat; None when left."""

    DEFAULT_CSS = """
    ChatScreen {
        align: center middle;
        & > Vertical {
            width: 80; max-width: 100%; height: auto; max-height: 80%; border: round $primary; background: $surface;
        }
        OptionList, OptionList:focus { border: none; height: auto; max-height: 100%; background: $surface; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(self, chats: Sequence[Chat], shown: Chat) -> None:
        super().__init__()
        self._chats = list(chats)
        self._shown = shown

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Chats of this session"
            box.border_subtitle = "Enter opens  Esc closes"
            yield OptionList(*(self._line(chat) for chat in self._chats))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = self._chats.index(self._shown)
        options.focus()

    def _line(self, chat: Chat) -> Content:
        turns = len(chat.path())
        mark = "* " if chat is self._shown else "  "
        count = f"{turns} message{'' if turns == 1 else 's'}"
        return Content(f"{mark}{printable(chat.title) or 'new chat':62}{count:>12}")

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._chats[message.option_index])

    def action_leave(self) -> None:
        self.dismiss(None)
