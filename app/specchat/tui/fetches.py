"""The fetches of the app: a queue that goes on whatever is on the screen, one model after the other on one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from specchat.catalogue import Model
from specchat.downloads import DownloadError, Store
from specchat.errors import in_one_line
from specchat.headers import HeaderError
from specchat.own_models import OwnModels
from specchat.tables import CatalogueError
from specchat.tui.screens.downloading import Follower, Progressed, Stopped

CLOSE_S = 5.0  # that closing waits for a source to let go


class State(StrEnum):
    """What has become of a fetch."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "here"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Fetch:
    """A model that was asked for, and how far it is."""

    model: Model
    state: State = State.WAITING
    progressed: Progressed | None = None  # None: not a byte yet
    problem: str = ""  # why it failed

    @property
    def is_open(self) -> bool:
        """Whether it is still to come."""
        return self.state in (State.WAITING, State.RUNNING)

    @property
    def share(self) -> str:
        """How far it is, short enough for a cell: "37 %"."""
        progressed = self.progressed
        if self.state is not State.RUNNING or progressed is None or not progressed.total_bytes:
            return self.state
        return f"{progressed.done_bytes * 100 // progressed.total_bytes} %"


Heard = Callable[[Fetch], object]


class Fetches:
    """The queue. Its methods return at once; who listens is called on the queue's thread."""

    def __init__(self, store: Store, own: OwnModels) -> None:
        self._store = store
        self._own = own
        self._lock = threading.Lock()
        self._all: dict[str, Fetch] = {}  # by the id of the model, in the order they were asked for
        self._listeners: list[Heard] = []
        self._unwanted = threading.Event()  # of the one that runs
        self._thread: threading.Thread | None = None

    def listen(self, heard: Heard) -> None:
        """Call this with every fetch that has changed."""
        self._listeners.append(heard)

    def leave(self, heard: Heard) -> None:
        """Call it no more."""
        if heard in self._listeners:
            self._listeners.remove(heard)

    def all(self) -> list[Fetch]:
        """All fetches, also those that ended, until `tidy`."""
        with self._lock:
            return list(self._all.values())

    @property
    def running(self) -> Fetch | None:
        """The one under way."""
        return next((each for each in self.all() if each.state is State.RUNNING), None)

    @property
    def waiting(self) -> list[Fetch]:
        """Those that come later."""
        return [each for each in self.all() if each.state is State.WAITING]

    def of(self, model: Model) -> Fetch | None:
        """The fetch of a model."""
        with self._lock:
            return self._all.get(model.id)

    def add(self, models: Sequence[Model]) -> None:
        """Fetch these after what is asked for already."""
        added = []
        with self._lock:
            for model in models:
                known = self._all.get(model.id)
                if known is None or not known.is_open:
                    self._all.pop(model.id, None)  # one that ended goes to the end of the queue
                    added.append(Fetch(model))
                    self._all[model.id] = added[-1]
            if self._thread is None and any(each.is_open for each in self._all.values()):
                self._thread = threading.Thread(target=self._run, name="fetches", daemon=True)
                self._thread.start()
        for each in added:
            self._tell(each)

    def stop(self, model: Model) -> None:
        """Take one out; what has arrived of it is kept for the next time."""
        with self._lock:
            known = self._all.get(model.id)
            if known is None or not known.is_open:
                return
            if known.state is State.RUNNING:
                self._unwanted.set()  # its thread says when it has stopped
                return
            known = self._all[model.id] = replace(known, state=State.STOPPED)
        self._tell(known)

    def stop_all(self) -> None:
        """Take all out."""
        for each in reversed(self.all()):  # the one that runs last, or the next would begin
            self.stop(each.model)

    def tidy(self) -> None:
        """Forget those that ended."""
        with self._lock:
            self._all = {key: each for key, each in self._all.items() if each.is_open}

    def wait(self, seconds: float | None = None) -> bool:
        """Until nothing is left to fetch; False where that takes longer."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def close(self) -> bool:
        """Stop everything; False where a source does not let go in time."""
        self.stop_all()
        return self.wait(CLOSE_S)

    def _run(self) -> None:
        while (fetch := self._next()) is not None:
            self._tell(fetch)
            state, problem = State.DONE, ""
            try:
                path = self._store.pull(fetch.model, Follower(self._reporter(fetch), self._wanted))
                self._own.complete(fetch.model, path)
            except Stopped:
                state = State.STOPPED
            except (DownloadError, HeaderError, CatalogueError) as error:
                state, problem = State.FAILED, in_one_line(error)
            except Exception as error:  # a fault of ours would vanish with the thread, and the bar stay for ever
                state, problem = State.FAILED, repr(error)
            self._put(replace(self._known(fetch), state=state, problem=problem))

    def _next(self) -> Fetch | None:
        with self._lock:
            self._unwanted.clear()
            for key, each in self._all.items():
                if each.state is State.WAITING:
                    self._all[key] = replace(each, state=State.RUNNING)
                    return self._all[key]
            self._thread = None
            return None

    def _reporter(self, fetch: Fetch) -> Callable[[Progressed], None]:
        return lambda progressed: self._put(replace(self._known(fetch), progressed=progressed))

    def _known(self, fetch: Fetch) -> Fetch:
        with self._lock:
            return self._all[fetch.model.id]

    def _wanted(self) -> bool:
        return not self._unwanted.is_set()

    def _put(self, fetch: Fetch) -> None:
        with self._lock:
            self._all[fetch.model.id] = fetch
        self._tell(fetch)

    def _tell(self, fetch: Fetch) -> None:
        for heard in tuple(self._listeners):
            heard(fetch)


def in_short(fetches: Sequence[Fetch]) -> str:
    """What a status line says of them: "fetching 37 %, 1 waiting"; "" while there are none."""
    running = next((each for each in fetches if each.state is State.RUNNING), None)
    if running is None:
        return ""
    waiting = sum(each.state is State.WAITING for each in fetches)
    return f"fetching {running.share}" + (f", {waiting} waiting" if waiting else "")
