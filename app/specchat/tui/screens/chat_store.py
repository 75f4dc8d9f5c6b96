"""What the list of chats asks the store, in threads that may wait; the answers are messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from textual import work
from textual.message import Message
from textual.screen import ModalScreen

from specchat.errors import Refusal
from specchat.history.keeper import Keeper
from specchat.history.records import ChatSummary
from specchat.tui.widgets.chat_list import PAGE, Row, Unkept

MOST_HITS = 300


@dataclass(frozen=True, slots=True)
class ChatChoice:
    """What to open, or to export."""

    row: Row
    words: str = ""  # that were searched for
    is_export: bool = False


class AskingStore(ModalScreen[ChatChoice | None]):
    """Asks, and changes chats. `words` says what is searched for."""

    @dataclass
    class Found(Message):
        """Rows that are all here, and how many chats of the store come behind them."""

        number: int  # of the question
        first: Sequence[Row]
        stored: int

    @dataclass
    class PageRead(Message):
        """Chats of the store."""

        number: int
        page: int
        chats: Sequence[ChatSummary]

    @dataclass
    class Said(Message):
        """A line for the user."""

        text: str
        is_problem: bool = False

    @dataclass
    class Deleted(Message):
        """A chat is no longer in the store."""

        chat_id: int

    def __init__(self, keeper: Keeper, unkept: Sequence[Unkept]) -> None:
        """`unkept` are chats of this session that the store does not have."""
        super().__init__()
        self.keeper = keeper
        self._unkept = unkept
        self._number = 0  # of the last question

    @property
    def words(self) -> str:
        """What is searched for."""
        raise NotImplementedError

    def is_last(self, number: int) -> bool:
        """Whether nothing was asked after a question."""
        return number == self._number

    def ask(self) -> None:
        """Ask the store anew."""
        self._number += 1
        if self.keeper.path is None:
            self.post_message(self.Found(self._number, self._of_session(self.words), 0))
        else:
            self._ask(self._number, self.words)

    def read_page(self, page: int) -> None:
        """Read more of the chats."""
        self._read_page(self._number, page)

    @work(thread=True, group="chats", exit_on_error=False)
    def _ask(self, number: int, words: str) -> None:
        with self._refusals():
            self.keeper.flush()
            store = self.keeper.store()
            if not self.is_last(number):  # more was typed meanwhile
                return
            if words:
                self.post_message(self.Found(number, [*self._of_session(words), *store.search(words, MOST_HITS)], 0))
            else:
                self.post_message(self.Found(number, self._of_session(words), store.count()))

    @work(thread=True, group="chats", exit_on_error=False)
    def _read_page(self, number: int, page: int) -> None:
        with self._refusals():
            chats = self.keeper.store().chats(limit=PAGE, offset=page * PAGE)
            self.post_message(self.PageRead(number, page, chats))

    @work(thread=True, group="chats", exit_on_error=False)
    def delete(self, chat_id: int, title: str) -> None:
        """Delete a chat for good, but for what can be taken back."""
        with self._refusals():
            self.keeper.flush()
            self.keeper.delete(self.keeper.store().load(chat_id))
            self.post_message(self.Deleted(chat_id))
            self.post_message(self.Said(f"{title} is deleted; u takes that back"))
            self.app.call_from_thread(self.ask)

    @work(thread=True, group="chats", exit_on_error=False)
    def take_up(self, path: Path) -> None:
        """Take up the chats of a file."""
        from specchat.history.taking import take_up

        with self._refusals():
            taken = take_up(self.keeper.store(), path)
            problem = "" if taken.problem is None else str(taken.problem)
            text = f"{taken.line}, then: {problem}" if problem and taken.new else problem or taken.line
            self.app.call_from_thread(self.ask)
            self.post_message(self.Said(text, is_problem=bool(problem)))

    def undelete(self) -> None:
        """Put back what was deleted last."""
        record = self.keeper.undelete()
        self.post_message(self.Said("nothing was deleted" if record is None else f"{record.title} is back"))
        self.ask()

    def _of_session(self, words: str) -> list[Unkept]:
        wanted = words.casefold().split()
        return [each for each in self._unkept if all(word in each.title.casefold() for word in wanted)]

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except Refusal as error:
            self.post_message(self.Said(str(error), is_problem=True))
