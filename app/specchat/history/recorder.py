"""The one thread of the app that writes chats. Whoever gives it something to write never waits for the disk."""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

from specchat.chat import Chat
from specchat.errors import in_one_line
from specchat.history.database import is_damage, refusals
from specchat.history.errors import StoreRefused
from specchat.history.keeping import Action, KeptChat
from specchat.history.records import ChatRecord
from specchat.history.scribe import Scribe
from specchat.history.store import Store

RETRY_S = 2.0  # after a write that failed: somebody may have freed space
MOST_AT_ONCE = 1000  # actions in one transaction


@dataclass(frozen=True, slots=True)
class _Job:
    """Something that is a transaction of its own."""

    run: Callable[[Store], object]


@dataclass(frozen=True, slots=True)
class _Mark:
    """Everything before it has been tried."""

    reached: threading.Event


_Wanted = Action | _Job | _Mark


class Recorder:
    """Writes chats as they happen. All methods may be called from any thread and return at once."""

    def __init__(self, path: Path, on_trouble: Callable[[str], object], clock: Callable[[], float] = time.time) -> None:
        """`on_trouble` is given one line for people, in the writing thread, once for each line."""
        self._path = path
        self._on_trouble = on_trouble
        self._clock = clock
        self._wanted: queue.SimpleQueue[_Wanted | None] = queue.SimpleQueue()
        self._waiting: list[_Wanted] = []
        self._told: set[str] = set()
        self.is_failing = False  # whether it was told that nothing can be written, and that is still so
        self._store: Store | None = None
        self._scribes: WeakSet[Scribe] = WeakSet()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def keep(self, chat: Chat, record: ChatRecord | None = None) -> KeptChat:
        """Keep a chat from now on; `record` is what it was made from, None: it is new."""
        scribe = Scribe(record)
        self._scribes.add(scribe)
        return KeptChat(chat, scribe, record, self.do, self._clock)

    def do(self, action: Action) -> None:
        """Write something after everything before it."""
        self._wanted.put(action)

    def rename(self, chat_id: int, title: str) -> None:
        """Give a stored chat a title."""
        self._wanted.put(_Job(lambda store: store.rename(chat_id, title)))

    def pin(self, chat_id: int, *, is_pinned: bool) -> None:
        """Keep a stored chat on top of the list, or no longer."""
        self._wanted.put(_Job(lambda store: store.pin(chat_id, is_pinned=is_pinned)))

    def delete(self, chat_ids: Sequence[int]) -> None:
        """Delete stored chats for good."""
        self._wanted.put(_Job(lambda store: store.delete(chat_ids)))

    def put(self, record: ChatRecord) -> None:
        """Store a chat that was deleted, as it was loaded before."""
        self._wanted.put(_Job(lambda store: store.put(record)))

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything before has been written or has failed; False where that takes longer."""
        mark = _Mark(threading.Event())
        self._wanted.put(mark)
        return mark.reached.wait(timeout_s)

    def close(self, timeout_s: float = 2.0) -> bool:
        """Write what waits and end the thread; False where that takes longer."""
        self._wanted.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            goes_on = self._take()
            self._write_waiting()
        if self._store is not None:
            self._store.close()

    def _take(self) -> bool:
        """Wait for something to do and take what there is; False where nothing more will come."""
        try:
            found = self._wanted.get(timeout=RETRY_S if self._waiting else None)
            while found is not None:
                self._waiting.append(found)
                found = self._wanted.get_nowait()
        except queue.Empty:
            return True
        return False

    def _write_waiting(self) -> None:
        """Write what waits, in order, up to a failure that may pass."""
        at_once = MOST_AT_ONCE
        while self._waiting:
            count = 1
            while count < min(len(self._waiting), at_once) and isinstance(self._waiting[count], Action):
                count += 1
            batch = self._waiting[: count if isinstance(self._waiting[0], Action) else 1]
            try:
                self._write(self._opened(), batch)
            except Exception as error:
                if _may_pass(error):
                    self.is_failing = True
                    self._tell(f"chats are not saved: {in_one_line(error)}")
                    self._pass_marks()
                    return
                if isinstance(error, sqlite3.Error) and is_damage(error):
                    self._leave(error)
                    continue
                if len(batch) > 1:  # a fault must not keep back what has nothing to do with it
                    at_once = 1
                    continue
                self._tell(f"something is not saved: {in_one_line(error)}")
            else:
                self.is_failing = False
            del self._waiting[: len(batch)]

    def _write(self, store: Store, batch: Sequence[_Wanted]) -> None:
        actions = [each for each in batch if isinstance(each, Action)]
        if not actions:
            for each in batch:
                if isinstance(each, _Job):
                    each.run(store)
                elif isinstance(each, _Mark):
                    each.reached.set()
            return
        before = [(scribe, scribe.state) for scribe in {each.scribe for each in actions} if scribe is not None]
        try:
            store.write(
                lambda connection: [each.run(connection) for each in actions],
                is_synced=any(each.is_synced for each in actions),
            )
        except BaseException:
            for scribe, state in before:
                scribe.restore(state)
            raise

    def _opened(self) -> Store:
        if self._store is None:
            self._store = Store.open(self._path)
            for notice in self._store.notices:  # the store is a new one
                self._tell(notice)
                for scribe in self._scribes:
                    scribe.move()
        return self._store

    def _leave(self, error: sqlite3.Error) -> None:
        """Close a store in which damage was found; opening it again looks at all of it and sets it aside."""
        with suppress(StoreRefused), refusals(self._path):
            raise error
        if self._store is not None:
            self._store.close()
            self._store = None

    def _pass_marks(self) -> None:
        for mark in self._waiting:
            if isinstance(mark, _Mark):
                mark.reached.set()
        self._waiting = [each for each in self._waiting if not isinstance(each, _Mark)]

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._on_trouble(text)


def _may_pass(error: Exception) -> bool:
    """Whether trying again later may help: a full disk, another process that takes long."""
    return isinstance(error, sqlite3.OperationalError | StoreRefused)
