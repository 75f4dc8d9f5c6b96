"""What the app does with stored chats: lists them, opens them again, writes them to files, deletes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from textual import on, work
from textual.message import Message

from specchat.attachments import label
from specchat.console import printable
from specchat.errors import Refusal
from specchat.tui.keeping_actions import KeepingActions
from specchat.tui.messages import NotKept

if TYPE_CHECKING:
    from specchat.chat import Chat
    from specchat.history.records import ChatRecord
    from specchat.tui.restored import Opened
    from specchat.tui.screens.chat_store import AskingStore, ChatChoice

_DAY_S = 86_400


class ChatActions(KeepingActions):
    """A part of the app."""

    class Loaded(Message):
        """A stored chat that was read, to be opened at a character of a message."""

        def __init__(self, found: Opened, turn: int | None = None, words: str = "") -> None:
            super().__init__()
            self.found, self.turn, self.words = found, turn, words

    def begin_stored(self) -> None:
        """When the app starts: the chat to go on with, and chats that are too old."""
        if self._start.resume is not None:
            self.open_stored(self._start.resume)
        if self.settings.history.keep_days:
            self._purge(self.settings.history.keep_days)

    def action_chats(self) -> None:
        """Choose among all chats."""
        from specchat.tui.screens.chats import ChatScreen
        from specchat.tui.widgets.chat_list import Unkept

        shown, keeper = self.chat_view.chat, self.keeper
        unkept = [
            Unkept(number, chat.title, len(chat.turns))
            for number, chat in enumerate(self._chats)
            if not keeper.keeps(chat) and (chat.turns or chat is shown)
        ]
        busy = self.chat_view.busy is not None
        self.push_screen(ChatScreen(keeper, unkept, keeper.id_of(shown), datetime.now, is_busy=busy), self._chosen)

    async def _chosen(self, choice: ChatChoice | None) -> None:
        from specchat.history.records import Hit
        from specchat.tui.restored import record_of
        from specchat.tui.widgets.chat_list import Unkept

        if choice is None:
            return
        row = choice.row
        if isinstance(row, Unkept):
            chat = self._chats[row.number]
            if choice.is_export:
                self._export(lambda: record_of(chat, self.chat_view.beside(chat)))
            elif not self.is_busy():
                await self.chat_view.open(chat)
        elif choice.is_export:
            chat_id = row.chat if isinstance(row, Hit) else row.id
            self._export(lambda: self.keeper.store().load(chat_id))
        elif isinstance(row, Hit):
            marked = row.snippet[slice(*row.marks[0])] if row.marks and row.turn is not None else ""
            self.open_stored(row.chat, row.turn, marked)
        else:
            self.open_stored(row.id)

    def open_stored(self, chat_id: int, turn: int | None = None, words: str = "") -> None:
        """Go to a chat of the store, and there to a message."""
        if self.is_busy():
            return
        chat = self.keeper.open_chat(chat_id)
        if chat is None:
            self._load_stored(chat_id, turn, words)
        else:
            self.run_worker(self._go_to(chat, turn, words), group="open", exclusive=True)

    @work(thread=True, exclusive=True, group="load-chat", exit_on_error=False)
    def _load_stored(self, chat_id: int, turn: int | None, words: str) -> None:
        from specchat.tui.restored import opened

        try:
            self.keeper.flush()
            found = opened(self.keeper.store().load(chat_id), datetime.now())
        except (Refusal, ValueError) as error:
            self.post_message(NotKept(str(error)))
        else:
            self.post_message(self.Loaded(found, turn, words))

    @on(Loaded)
    async def _loaded_chat(self, message: Loaded) -> None:
        found = message.found
        if self.chat_view.busy is not None:  # asked meanwhile
            return
        if not self._start.is_private and self.settings.history.enabled:
            self.keeper.keep(found.chat, found.record)
        self._chats.append(found.chat)
        await self.chat_view.open(found.chat, found.shown)
        await self._go_to(found.chat, message.turn, message.words)
        self._say_resumed(found.record)

    async def _go_to(self, chat: Chat, turn: int | None, words: str) -> None:
        if chat is not self.chat_view.chat:
            await self.chat_view.open(chat)
        if turn is not None:
            await self.chat_view.find(turn, words)

    def _say_resumed(self, record: ChatRecord) -> None:
        if record.unsent and not self.composer.prompt.text:
            self.composer.prompt.put(printable(record.unsent))
        if self.loaded is not None and record.model and record.model != self.loaded.kept_as:
            now = label(self.loaded.signed)
            self.tell(f"written with {label(record.model)}; it goes on with {now} (Ctrl+L changes that)")

    def action_resume(self, wanted: str = "") -> None:
        """Go on with a stored chat: its number, how its title begins, or last; without one, choose."""
        if not wanted:
            self.action_chats()
        elif self.keeper.path is None:
            self.tell("no chats are kept here", "warning")
        else:
            self._look_for(wanted)

    @work(thread=True, exclusive=True, group="load-chat", exit_on_error=False)
    def _look_for(self, wanted: str) -> None:
        from specchat.history.choosing import chosen

        try:
            self.keeper.flush()
            chat_id = chosen(self.keeper.store(), wanted).id
        except Refusal as error:
            self.post_message(NotKept(str(error)))
        else:
            self.call_from_thread(self.open_stored, chat_id)

    async def on_asking_store_deleted(self, message: AskingStore.Deleted) -> None:
        """A chat was deleted: it is not written again."""
        chat = self.keeper.open_chat(message.chat_id)
        if chat is None:
            return
        self.keeper.forget(chat)
        self._chats.remove(chat)
        if chat is self.chat_view.chat:
            await self.open_new(private=self._start.is_private)

    @work(thread=True, group="purge", exit_on_error=False)
    def _purge(self, days: int) -> None:
        from specchat.history.forgetting import forget_chats
        from specchat.states import kept_states

        try:
            old = [chat.id for chat in self.keeper.store().older_than(time.time() - days * _DAY_S)]
            gone = [chat_id for chat_id in old if chat_id != self._start.resume]
            if gone:
                count = forget_chats(self.keeper.store(), kept_states(), gone)
                what = "1 chat is deleted, whose" if count == 1 else f"{count} chats are deleted, whose"
                self.post_message(NotKept(f"{what} last word is {days} days old (history.keep_days)"))
        except Refusal as error:
            self.post_message(NotKept(str(error)))

    def action_export(self, path: str = "") -> None:
        """Write this chat to a file."""
        if self.chat_view.chat.turns:
            self._export(self._shown_record, path)
        else:
            self.tell("there is nothing to export yet")

    def _shown_record(self) -> ChatRecord:
        from specchat.tui.restored import record_of

        keeper, chat = self.keeper, self.chat_view.chat
        return keeper.load(chat) if keeper.keeps(chat) else record_of(chat, self.chat_view.beside(chat))

    @work(exclusive=True, group="export", exit_on_error=False)
    async def _export(self, record: Callable[[], ChatRecord], path: str = "") -> None:
        from specchat.tui.exporting import export_chat

        told = await export_chat(self, record, path)
        if told is not None:
            self.tell(told.text, "error" if told.is_problem else "information")
