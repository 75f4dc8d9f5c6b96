"""What the app does with models beside loading them: fetches while somebody chats, drafts tried on what was said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on, work

from specchat.chat import Chat
from specchat.console import printable
from specchat.history.keeper import Keeper
from specchat.tui.actions import Actions
from specchat.tui.engine_thread import Wanted
from specchat.tui.fetches import Fetches, State, in_short
from specchat.tui.messages import FetchMoved, TryEnded, TryMoved
from specchat.tui.widgets.status import Status

if TYPE_CHECKING:
    from specchat.shelf import Shelf
    from specchat.tui.replaying import ReplayJob

VERDICT_S = 30  # that what a trial found stays on the screen


class ModelActions(Actions):
    """A part of the app; `fetches` is None until the list of models has been opened once."""

    fetches: Fetches | None
    load_model: Callable[[Wanted], None]
    keeper: Keeper
    _chats: list[Chat]
    _trial: ReplayJob | None = None

    @work(exclusive=True, group="models", exit_on_error=False)
    async def action_models(self, name: str = "") -> None:
        """Choose a model, or load the one that is named."""
        if name:
            self.load_model(Wanted(model=name))
            return
        from specchat.machine import free_memory
        from specchat.shelf import Shelf
        from specchat.tui.screens.models import ModelScreen

        troubles: list[str] = []
        shelf = Shelf(troubles.append)
        loaded = self.engine.wanted.model or shelf.catalogue.default_target
        news = "; ".join(troubles) or shelf.suggestion().partition(":")[0]
        screen = ModelScreen(shelf, self.fetches_into(shelf), loaded if self.loaded else None, free_memory(), news)
        choice = await self.push_screen_wait(screen)
        if choice is not None and choice.is_trial:
            self.action_try_draft(choice.name)
        elif choice is not None:
            self.load_model(Wanted(model=choice.name))

    def fetches_into(self, shelf: Shelf) -> Fetches:
        """The queue of fetches, which lives as long as the app."""
        if self.fetches is None:
            self.fetches = Fetches(shelf.store, shelf.own)
            self.fetches.listen(lambda fetch: self.post_message(FetchMoved(fetch)))  # from the queue's own thread
        return self.fetches

    @on(FetchMoved)
    def _fetch_moved(self, message: FetchMoved) -> None:
        from specchat.tui.screens.models import ModelScreen

        assert self.fetches is not None
        self.screen_stack[0].query_one(Status).show_fetching(in_short(self.fetches.all()))
        if any(isinstance(screen, ModelScreen) for screen in self.screen_stack):
            return  # which says it itself
        fetch = message.fetch
        if fetch.state is State.DONE:
            self.tell(f"{fetch.model.id} is here: Ctrl+L loads it")
        elif fetch.state is State.FAILED:
            self.tell(f"{fetch.model.id} was not fetched: {fetch.problem}", "error")

    def action_try_draft(self, name: str = "") -> None:
        """Say what a draft model would have given on the last replies; without a name, the chosen or the paired one."""
        from specchat.tui.replaying import NONE_YET, ReplayJob, kept_replies, last_replies

        if self.is_busy() or self._trial is not None:
            return
        keeper, now = self.keeper, self.chat_view.chat
        chats = [*(chat for chat in self._chats if chat is not now), now]
        replies = last_replies([chat for chat in chats if keeper.path is None or not keeper.keeps(chat)])
        if keeper.path is None and not replies:
            self.tell(NONE_YET)
            return
        chosen = self.settings.guess.draft
        draft = name or ("auto" if chosen == "none" else chosen)
        self._trial = ReplayJob(
            draft, self.engine.wanted.model, replies, lambda model, most: kept_replies(keeper, model, most)
        )
        self.engine.rewrite(self._trial)

    def stop_trying(self) -> bool:
        """Stop a trial; False where none runs."""
        if self._trial is None:
            return False
        self._trial.stop()
        return True

    @on(TryMoved)
    def _trial_moved(self, message: TryMoved) -> None:
        if self._trial is not None:
            self._in_status(f"trying {message.draft} on your replies: {message.done:.0%}  Esc stops")

    @on(TryEnded)
    def _trial_ended(self, message: TryEnded) -> None:
        self._trial = None
        self._in_status(f"{self.settings.guess.mode}  ready")
        text = printable(message.text)
        self.notify(text, severity="error" if message.is_problem else "information", markup=False, timeout=VERDICT_S)

    def _in_status(self, text: str) -> None:
        status = self.screen_stack[0].query_one(Status)
        status.show(None)
        status.say(text)
