"""Which of the open chats are kept, and what the thread that writes them is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.chat import Chat, Turn
from specchat.provenance import Span

if TYPE_CHECKING:  # SQLite and the rest of the store, which the first frame does not wait for
    from specchat.history.keeping import KeptChat, Writing
    from specchat.history.recorder import Recorder
    from specchat.history.records import About, ChatRecord
    from specchat.history.store import Store
    from specchat.session import Reply


class Keeper:
    """The chats that are open, and the store behind them. All methods return at once, but for `store`."""

    def __init__(self, path: Path | None = None, on_trouble: Callable[[str], object] = lambda _: None) -> None:
        """`path` is that of the store; None: there is none. `on_trouble` is called in another thread."""
        self.path = path
        self.deleted: list[ChatRecord] = []  # in this session, the last one last
        self._on_trouble = on_trouble
        self._recorder: Recorder | None = None
        self._kept: dict[Chat, KeptChat] = {}
        self._writing: dict[int, Writing] = {}  # by the reply; only one chat is written at a time
        self._new: set[Chat] = set()  # to be kept once something is said
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._has_ended = False

    @property
    def recorder(self) -> Recorder:
        """Who writes; made when it is first needed."""
        from specchat.history.recorder import Recorder

        assert self.path is not None
        if self._recorder is None:
            self._recorder = Recorder(self.path, self._tell)
        return self._recorder

    def store(self) -> Store:
        """All chats, for a thread that may wait. Raises StoreRefused."""
        from specchat.history.store import Store

        assert self.path is not None
        with self._opening:
            if self._store is None:
                self._store = Store.open(self.path)
                for notice in self._store.notices:
                    self._tell(notice)
            return self._store

    def keep(self, chat: Chat, record: ChatRecord | None = None) -> None:
        """Keep a chat from now on; `record` is what it was made from, None: it is new."""
        if self.path is None:
            return
        if record is None:
            self._new.add(chat)
        else:
            self._kept[chat] = self.recorder.keep(chat, record)

    def keeps(self, chat: Chat) -> bool:
        """Whether what is said in a chat is written down."""
        return chat in self._kept or chat in self._new

    def forget(self, chat: Chat) -> None:
        """Write no more of a chat."""
        self._new.discard(chat)
        self._kept.pop(chat, None)

    def id_of(self, chat: Chat) -> int | None:
        """Its id in the store, once it is there."""
        kept = self._kept.get(chat)
        return None if kept is None else kept.id

    def key_of(self, chat: Chat) -> str:
        """What it is called in every store; empty where it is not kept."""
        kept = self._kept.get(chat)
        return "" if kept is None else kept.key

    def open_chat(self, chat_id: int) -> Chat | None:
        """The chat of an id that is open already."""
        return next((chat for chat, kept in self._kept.items() if kept.id == chat_id), None)

    def load(self, chat: Chat) -> ChatRecord:
        """A kept chat as it is stored, for a thread that may wait. Raises StoreRefused, NoSuchChat."""
        self.flush()
        return self.store().load(self.id_of(chat) or 0)

    def save(self, chat: Chat) -> None:
        """Write what has changed."""
        if (kept := self._started(chat)) is not None:
            kept.save()

    def pin(self, chat_id: int, *, is_pinned: bool) -> None:
        """Keep a stored chat on top of the list, or no longer."""
        chat = self.open_chat(chat_id)
        if chat is None:
            self.recorder.pin(chat_id, is_pinned=is_pinned)
        else:
            self._kept[chat].note(is_pinned=is_pinned)

    def rename(self, chat_id: int, title: str) -> None:
        """Give a stored chat a title."""
        chat = self.open_chat(chat_id)
        if chat is None:
            self.recorder.rename(chat_id, title)
        else:
            chat.named = title
            self._kept[chat].save()

    def delete(self, record: ChatRecord) -> None:
        """Delete a stored chat for good, in a thread that may wait; while the app runs it can be had back."""
        from specchat.history.forgetting import TextsRefused, forget_texts
        from specchat.states import kept_states

        self.recorder.delete([record.id])
        kept_states().drop(record.key)
        self.deleted.append(record)
        try:
            forget_texts()
        except TextsRefused as error:
            self._tell(str(error))

    def undelete(self) -> ChatRecord | None:
        """Put the chat back that was deleted last; None where none was."""
        if not self.deleted:
            return None
        record = self.deleted.pop()
        self.recorder.put(record)
        return record

    def begin(self, chat: Chat, reply: Turn, about: Callable[[], About]) -> Writing | None:
        """A reply is going to be written, or to go on; None in a chat that is not kept."""
        kept = self._started(chat)
        if kept is None:
            return None
        who = about()
        kept.note(model=who.model)
        self._writing[reply.id] = writing = kept.begin_reply(reply, who)
        return writing

    def end(self, chat: Chat, turn: Turn, reply: Reply | None, spans: Iterable[Span] = ()) -> None:
        """A reply has been written, as far as it was; without figures it went wrong."""
        writing = self._writing.pop(turn.id, None)
        if writing is not None and chat in self._kept:
            writing.end(turn, reply, spans)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until all of it is written, in a thread that may wait."""
        return self._recorder is None or self._recorder.flush(timeout_s)

    def close(self, timeout_s: float = 2.0) -> bool:
        """Write what waits and let go of the store; False where the disk does not answer."""
        done = self._recorder is None or self._recorder.close(timeout_s)
        if done and self._store is not None:
            self._store.close()
        return done

    def finish(self) -> None:
        """Close before the program ends, wait as long as another process may be waited for, and tell what is lost."""
        from specchat.history.database import BUSY_S

        done = self.close(BUSY_S + 2.0)
        if not done and not (self._recorder and self._recorder.is_failing):
            self._tell("what was said last is not saved: the disk or another program holds the store of chats")
        self._has_ended = True  # what the thread finds out later is the same

    def _tell(self, text: str) -> None:
        if not self._has_ended:
            self._on_trouble(text)

    def _started(self, chat: Chat) -> KeptChat | None:
        """A kept chat; a new one begins to be kept with its first message."""
        if chat in self._new and chat.turns:
            self._new.discard(chat)
            self._kept[chat] = self.recorder.keep(chat)
        return self._kept.get(chat)
