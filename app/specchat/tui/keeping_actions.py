"""What the app does so that chats are kept: each change is handed on, and so is what is not sent yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on, work
from textual.timer import Timer

from specchat.chat import Chat
from specchat.conversation import Message, Role
from specchat.errors import Refusal
from specchat.history.keeper import Keeper
from specchat.tui.actions import Actions
from specchat.tui.messages import Ended, NotKept
from specchat.tui.screens.text import TextScreen
from specchat.tui.start import Start
from specchat.tui.unsent import Unsent
from specchat.tui.weighing import ChatWeighed, WeighJob
from specchat.tui.widgets.chat_view import ChatView
from specchat.tui.widgets.composer import Composer
from specchat.tui.widgets.settings_panel import SettingsPanel

if TYPE_CHECKING:
    from specchat.history.records import About

AHEAD_S = 0.7  # after the last key until the engine reads ahead
PRICED_S = 90 * 86_400.0  # of replies that tell what a temperature costs
UNSENT_S = 0.5  # after the last key until what is typed is written down


class KeepingActions(Actions):
    """A part of the app."""

    keeper: Keeper
    begin_stored: Callable[[], None]
    _start: Start
    _chats: list[Chat]  # of this session
    _unsent: Unsent | None = None
    _unsent_due: Timer | None = None
    _ahead_due: Timer | None = None

    def begin_chats(self) -> None:
        """When the app starts: what was not sent before, the chat to go on with, old chats."""
        chat = self.chat_view.chat
        self._chats.append(chat)
        if self._start.is_private or not self.settings.history.enabled:
            return
        self.keeper.keep(chat)
        if self.keeper.path is None:
            return
        self._unsent = Unsent(self.keeper.path)
        self._take_up_unsent(self._unsent)
        self.begin_stored()

    def end_chats(self) -> bool:
        """After the app has left the screen; False where the disk does not answer."""
        if self._unsent is not None:
            self._unsent.close()
        return self.keeper.close()

    def about(self) -> About:
        """Who writes replies now, and how."""
        from specchat.history.records import About

        loaded, settings = self.loaded, self.settings
        return About(
            model="" if loaded is None else loaded.kept_as,
            draft=None if loaded is None else loaded.draft,
            guess=settings.guess.mode,
            rule=settings.sampling.rule,
            temperature=settings.sampling.temperature,
        )

    # New chats.

    async def action_new_chat(self) -> None:
        """Start a new chat; the old one stays in the list."""
        if not self.is_busy():
            await self.open_new(private=self._start.is_private)

    async def action_private(self) -> None:
        """Start a chat of which nothing is written down."""
        if not self.is_busy():
            await self.open_new(private=True)
            self._drop_unsent()
            self.tell("a private chat: nothing of it is kept")

    async def open_new(self, *, private: bool) -> None:
        """Start a chat."""
        chat = Chat(self.settings.system)
        if not private and self.settings.history.enabled:
            self.keeper.keep(chat)
        self._chats.append(chat)
        await self.chat_view.open(chat)

    # What was learned from kept chats.

    def tell_price(self, panel: SettingsPanel) -> None:
        """Say in the settings what temperatures cost with this model, as far as kept replies tell."""
        if self.keeper.path is not None and self.loaded is not None and not self.loaded.is_remote:
            self._read_prices(panel, self.loaded.name)

    @work(thread=True, exclusive=True, group="prices", exit_on_error=False)
    def _read_prices(self, panel: SettingsPanel, model: str) -> None:
        from specchat.statistics.ledger import by_temperature, price_at
        from specchat.statistics.reading import read_figures

        try:
            groups = by_temperature(read_figures(self.keeper.store(), time.time() - PRICED_S, model))
        except Refusal:  # of the store, which other messages tell
            return
        self.call_from_thread(panel.tell_price, lambda temperature: price_at(groups, temperature))

    # The shown chat.

    def action_title(self, title: str = "") -> None:
        """Give this chat a title; without one it is the first line again."""
        self.chat_view.chat.named = " ".join(title.split())
        self.chat_view.post_message(ChatView.Changed())

    def action_context(self) -> None:
        """Show what each message takes up of the context."""
        chat = self.chat_view.chat
        if not chat.turns:
            self.tell("nothing is said yet")
        elif not self.is_busy():
            self.engine.rewrite(WeighJob(chat.system, chat.path(), self.settings.context.policy))

    @on(ChatWeighed)
    def _weighed(self, message: ChatWeighed) -> None:
        self.push_screen(TextScreen("Context", message.text, 1))

    def action_pin(self) -> None:
        """Keep the current message in the prompt however full the context is, or no longer."""
        self.chat_view.pin()

    # What is kept, and what is not.

    @on(NotKept)
    def _not_kept(self, message: NotKept) -> None:
        self.tell(message.text, "warning")

    @on(ChatView.Changed)
    def _keep_changes(self) -> None:
        self.keeper.save(self.chat_view.chat)

    @on(Composer.Typed)
    def _typed(self) -> None:
        here = self.loaded is not None and not self.loaded.is_remote  # nothing leaves that is not sent
        if self.settings.context.read_ahead and here and self.chat_view.busy is None:
            self.engine.stop_reading_ahead()
            if self._ahead_due is not None:
                self._ahead_due.stop()
            self._ahead_due = self.set_timer(AHEAD_S, self._read_ahead)
        if self._unsent is not None and self.keeper.keeps(self.chat_view.chat):
            if self._unsent_due is not None:
                self._unsent_due.stop()
            self._unsent_due = self.set_timer(UNSENT_S, self.keep_unsent)

    def _read_ahead(self) -> None:
        """Let the engine read what the next reply will read, while the question is still typed."""
        if len(self.screen_stack) > 1 or self.chat_view.busy is not None or self.chat_view.editing is not None:
            return
        composer = self._present_composer()
        if composer is not None and (written := composer.written):
            chat = self.chat_view.chat
            messages = [*chat.messages(), Message(Role.USER, written)]
            self.engine.read_ahead(messages, self.keeper.key_of(chat), composer.settled)

    @on(Ended)
    def _reply_ended(self) -> None:
        """Let a draft model that sat idle read the reply, as the engine reads ahead: while nobody writes."""
        if self.settings.context.read_ahead:
            self.engine.listen()

    def keep_unsent(self) -> None:
        """Write down what stands in the prompt box."""
        composer = self._present_composer()
        if composer is not None and self._unsent is not None and self.keeper.keeps(self.chat_view.chat):
            self._keep_unsent(self._unsent, composer.prompt.text)

    def _present_composer(self) -> Composer | None:
        """The composer, be it below another screen; None when the app is being left."""
        below = self.screen_stack[0].query(Composer) if self.screen_stack else ()
        return next(iter(below), None)

    def _drop_unsent(self) -> None:
        if self._unsent_due is not None:
            self._unsent_due.stop()
        if self._unsent is not None:
            self._keep_unsent(self._unsent, "")

    @work(thread=True, group="unsent", exit_on_error=False)
    def _keep_unsent(self, unsent: Unsent, text: str) -> None:
        unsent.keep(text)

    @work(thread=True, group="unsent", exit_on_error=False)
    def _take_up_unsent(self, unsent: Unsent) -> None:
        text = unsent.take_up()
        if text:
            self.call_from_thread(self._give_back_unsent, text)

    def _give_back_unsent(self, text: str) -> None:
        self.composer.give_back(text, ())
        self.tell("what was not sent the last time is in the box again")
