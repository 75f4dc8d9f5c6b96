"""Fetches models on a thread and shows how far that is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import ProgressBar, Static
from textual.worker import get_current_worker

from specchat.attachments import label
from specchat.catalogue import Model
from specchat.downloads import DownloadError, Store
from specchat.tui.screens.downloading import Follower, Progressed, Stopped


class Fetching(Vertical):
    """One fetch at a time; invisible while there is none."""

    DEFAULT_CSS = """
    Fetching {
        height: auto;
        margin-top: 1;
        display: none;
        &.-running { display: block; }
        ProgressBar, Bar { width: 1fr; height: 1; }
        Static { height: auto; }
    }
    """

    @dataclass
    class Moved(Message):
        """A fetch has come further."""

        model: Model
        progressed: Progressed

        def can_replace(self, message: Message) -> bool:
            """Only the newest figures count."""
            return isinstance(message, Fetching.Moved)

    @dataclass
    class Ended(Message):
        """The fetches are over: all is here, or there was a problem, or they were stopped."""

        model: Model  # the last one
        problem: str = ""
        stopped: bool = False

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._unwanted = threading.Event()

    @property
    def running(self) -> bool:
        """Whether a fetch is under way, its thread still alive."""
        return self.has_class("-running")

    def compose(self) -> ComposeResult:
        """A bar, and the figures in words."""
        yield ProgressBar(show_percentage=False, show_eta=False)
        yield Static(markup=False)

    def start(self, models: Sequence[Model]) -> None:
        """Fetch these, one after the other; nothing while a fetch runs."""
        if models and not self.running:
            self._unwanted.clear()
            self.add_class("-running")
            self.query_one(ProgressBar).update(total=None, progress=0)
            self.query_one(Static).update(Content(label(f"{models[0].id}: waiting for the first bytes")))
            self._fetch(models)

    def stop(self) -> None:
        """Ask the thread to end; Ended comes when it has."""
        if self.running:
            self._unwanted.set()
            self.query_one(Static).update("stopping ...")

    def on_unmount(self) -> None:
        """Nobody would see the end of it."""
        self._unwanted.set()

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _fetch(self, models: Sequence[Model]) -> None:
        worker = get_current_worker()

        def wanted() -> bool:
            return not (worker.is_cancelled or self._unwanted.is_set())

        for model in models:

            def report(progressed: Progressed, model: Model = model) -> None:
                self.post_message(self.Moved(model, progressed))

            try:
                self._store.pull(model, Follower(report, wanted))
            except Stopped:
                self.post_message(self.Ended(model, stopped=True))
                return
            except Exception as error:  # a fault of ours would vanish with the thread, and the bar stay for ever
                self.post_message(self.Ended(model, str(error) if isinstance(error, DownloadError) else repr(error)))
                return
        self.post_message(self.Ended(models[-1]))

    @on(Moved)
    def _moved(self, message: Moved) -> None:
        message.stop()
        if not self._unwanted.is_set():
            progressed = message.progressed
            self.query_one(ProgressBar).update(total=max(progressed.total_bytes, 1), progress=progressed.done_bytes)
            self.query_one(Static).update(Content(label(f"{message.model.id}: {progressed}")))

    @on(Ended)
    def _ended(self) -> None:
        self.remove_class("-running")
