"""What the app does with models: they are loaded, fetched while somebody chats, drafts tried on what was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on, work

from specchat.chat import Chat
from specchat.console import printable
from specchat.errors import Refusal
from specchat.history.keeper import Keeper
from specchat.tui.actions import Actions
from specchat.tui.fetches import Fetches, State, in_short
from specchat.tui.messages import FetchMoved, Heard, Loaded, Noticed, TryEnded, TryMoved
from specchat.tui.seat import Wanted
from specchat.tui.server_figures import server_rows
from specchat.tui.start import Start
from specchat.tui.widgets.panel import SpeculationPanel
from specchat.tui.widgets.status import Status

if TYPE_CHECKING:
    from specchat.settings.endpoints import Endpoint
    from specchat.shelf import Shelf
    from specchat.tui.replaying import ReplayJob

VERDICT_S = 30  # that what a trial found stays on the screen


class ModelActions(Actions):
    """A part of the app; `fetches` is None until the list of models has been opened once."""

    fetches: Fetches | None
    _start: Start
    keeper: Keeper
    _chats: list[Chat]
    _status: Status
    _panel: SpeculationPanel
    _trial: ReplayJob | None = None

    def load_model(self, wanted: Wanted) -> None:
        """Load another model; a reply that is being written stops first."""
        self.chat_view.stop()
        context = self.settings.context
        chosen = replace(self.settings, guess=self._general).chosen_for(wanted.model or "", self._start.decided())
        guess = (self.settings if wanted.endpoint is not None else chosen).guess.mode
        self._say_loading(wanted)
        self._status.show(None)
        wanted = replace(
            wanted, guess=guess, n_ctx=context.size, n_threads=context.threads, cache_type=context.cache_type
        )
        self.engine.load(wanted)

    def _say_loading(self, wanted: Wanted) -> None:
        endpoint = wanted.endpoint
        self._status.say("loading ..." if endpoint is None else f"connecting to {endpoint.host}  Esc stops")

    @work(exclusive=True, group="models", exit_on_error=False)
    async def action_models(self, name: str = "") -> None:
        """Choose a model, or load the one that is named."""
        from specchat.machine import free_memory
        from specchat.shelf import Shelf
        from specchat.tui.screens.models import ModelScreen

        troubles: list[str] = []
        shelf, endpoints = Shelf(troubles.append), self._endpoints(troubles)
        if name:
            is_model = any(model.id == name for model in shelf.catalogue.models)
            server = None if is_model else endpoints.get(name)
            self.load_model(Wanted(model=name) if server is None else Wanted(endpoint=server))
            return
        connected = None if self.loaded is None else self.loaded.endpoint
        offered = list(endpoints.values())
        if connected is not None and connected not in offered:  # it was given by its address
            offered.append(connected)
        loaded = self.engine.wanted.model or shelf.catalogue.default_target
        in_use = loaded if self.loaded is not None and connected is None else None
        news = "; ".join(troubles) or shelf.suggestion().partition(":")[0]
        screen = ModelScreen(shelf, self.fetches_into(shelf), in_use, free_memory(), news, offered, connected)
        choice = await self.push_screen_wait(screen)
        if choice is not None and choice.is_trial:
            self.action_try_draft(choice.name)
        elif choice is not None and choice.endpoint is not None:
            self.load_model(Wanted(endpoint=choice.endpoint))
        elif choice is not None:
            self.load_model(Wanted(model=choice.name))

    def _endpoints(self, troubles: list[str]) -> Mapping[str, Endpoint]:
        """The servers that the user has named; what is wrong with them is added to the troubles."""
        from specchat.settings.endpoints import load_endpoints

        try:
            return load_endpoints(self._file)
        except Refusal as error:
            troubles.append(str(error))
            return {}

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

        if self.is_busy() or self._trial is not None or self.is_elsewhere("a draft model is tried"):
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

    def begin_figures(self, loaded: Loaded) -> None:
        """Those of a server and of a model that runs here are of another kind."""
        self._status.show(None)
        if loaded.endpoint is None:
            self._panel.show_none()
        else:
            self._panel.show_server(loaded.endpoint.host, ())

    @on(Heard)
    def _heard(self, message: Heard) -> None:
        """What a server writes has no steps to count: the time, and at the end what it reports."""
        loaded = self.loaded
        if loaded is None or loaded.endpoint is None:
            return
        if message.reply is None:
            self._status.say(f"writing, {message.seconds:.0f} s")
            return
        rows = server_rows(message.reply, loaded.n_ctx)
        self._panel.show_server(loaded.endpoint.host, rows)
        named = dict(rows)
        per_step = named["tokens/step"]
        known = "tokens/step not reported" if not per_step[0].isdigit() else f"{per_step}/step"
        self._status.say(f"{known}  {named['tokens']} tokens in {message.seconds:.1f} s")

    @on(Noticed)
    def _noticed(self, message: Noticed) -> None:
        self.tell(message.text, "warning")

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
