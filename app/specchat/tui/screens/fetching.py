"""The fetches of the app as a part of a screen: the one that runs with its bar, and those that wait."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import ProgressBar, Static

from specchat.attachments import label
from specchat.tui.fetches import Fetch, Fetches


class Fetching(Vertical):
    """Shows what the queue does; invisible while there is nothing in it."""

    DEFAULT_CSS = """
    Fetching {
        height: auto;
        margin-top: 1;
        display: none;
        &.-running { display: block; }
        ProgressBar, Bar { width: 1fr; height: 1; }
        Static { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    @dataclass
    class Moved(Message):
        """A fetch has come further."""

        fetch: Fetch

        def can_replace(self, message: Message) -> bool:
            """Only the newest figures of a fetch count, and no end of one is lost."""
            return isinstance(message, Fetching.Moved) and self.fetch.is_open and self._same(message.fetch)

        def _same(self, other: Fetch) -> bool:
            return other.model.id == self.fetch.model.id and other.state is self.fetch.state

    def __init__(self, fetches: Fetches) -> None:
        super().__init__()
        self._fetches = fetches

    def compose(self) -> ComposeResult:
        """A bar, and the figures in words."""
        yield ProgressBar(show_percentage=False, show_eta=False)
        yield Static(markup=False)

    def on_mount(self) -> None:
        """From here on every change is shown."""
        self._fetches.listen(self._heard)
        self._show()

    def on_unmount(self) -> None:
        """The queue goes on without this."""
        self._fetches.leave(self._heard)

    def _heard(self, fetch: Fetch) -> None:
        self.post_message(self.Moved(fetch))  # from the thread of the queue

    @on(Moved)
    def _show(self) -> None:
        running, waiting = self._fetches.running, self._fetches.waiting
        self.set_class(running is not None or bool(waiting), "-running")
        lines = []
        if running is not None:
            progressed = running.progressed
            total = None if progressed is None else max(progressed.total_bytes, 1)
            done = 0 if progressed is None else progressed.done_bytes
            self.query_one(ProgressBar).update(total=total, progress=done)
            lines.append(f"{running.model.id}: {progressed or 'waiting for the first bytes'}")
        if waiting:
            lines.append(f"waiting: {', '.join(each.model.id for each in waiting)}")
        self.query_one(Static).update(Content("\n".join(label(line) for line in lines)))
