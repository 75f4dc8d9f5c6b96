"""What the engine's thread tells the screen. Text must all arrive; figures may be replaced by newer ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.history.records import AT
from specchat.live import Live
from specchat.provenance import Span

if TYPE_CHECKING:  # these load the engine, which the first frame must not wait for
    from specchat.conversation import Message as Said
    from specchat.fitting import FittedTurns
    from specchat.session import Checked, Reply
    from specchat.settings.endpoints import Endpoint
    from specchat.tui.fetches import Fetch

ONLY_HERE = "only with a model that runs here: a server answers now (Ctrl+L changes that)"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that is ready, as the screen names it."""

    name: str
    title: str  # of the catalogue, or the name of the file
    draft: str | None
    back_end: str
    n_ctx: int | None  # None: a server does not say
    size_bytes: int
    load_s: float
    notices: tuple[str, ...]
    can_guess: bool
    own: tuple[str, ...] = ()  # guessers that belong to it and are here
    endpoint: Endpoint | None = None  # the server that answers; None: it runs here

    @property
    def is_remote(self) -> bool:
        """Whether what is said is sent to a server."""
        return self.endpoint is not None

    @property
    def signed(self) -> str:
        """Who writes, as it is shown and kept beside replies."""
        return self.title if self.endpoint is None else f"{self.name}{AT}{self.endpoint.host}"

    @property
    def kept_as(self) -> str:
        """What the model is called in the store of chats."""
        return self.name if self.endpoint is None else self.signed


@dataclass
class LoadProgress(Message):
    """How far a model is loaded, 0 to 1; at 1 its steps are being timed."""

    name: str
    done: float
    note: str = ""  # what else is being done to it, and how far that is

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, LoadProgress)


@dataclass
class ModelReady(Message):
    """A model, or another draft, can be used."""

    loaded: Loaded


@dataclass
class ModelMissing(Message):
    """The wanted model is not on this disk."""

    name: str
    draft: str | None
    size_bytes: int


@dataclass
class Trouble(Message):
    """Something could not be done; one line for people."""

    text: str
    fatal_to: str = ""  # "model" when no model is loaded now
    guess: str = ""  # who guesses as before, when another guesser could not be had


@dataclass
class Noticed(Message):
    """Something the user should know; one line for people."""

    text: str


@dataclass
class NotKept(Message):
    """Chats could not be written down, or something else about the store; one line for people."""

    text: str


@dataclass
class FetchMoved(Message):
    """A fetch of a model has come further or has ended."""

    fetch: Fetch

    def can_replace(self, message: Message) -> bool:
        # The end of one is never lost.
        return isinstance(message, FetchMoved) and self.fetch.is_open and message.fetch.is_open


@dataclass
class TryMoved(Message):
    """How far a draft model is through the replies it is tried on, 0 to 1."""

    draft: str
    done: float

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, TryMoved)


@dataclass
class TryEnded(Message):
    """What a draft model would have given, or why that was not found out, in a line."""

    text: str
    is_problem: bool = False


@dataclass
class ReadingShown(Message):
    """How far the prompt of a reply is read."""

    turn: int
    read: int
    total: int
    reused: int
    seconds_left: float | None

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, ReadingShown)


@dataclass
class Grew(Message):
    """More text of a reply, and who proposed it."""

    turn: int
    text: str
    spans: tuple[Span, ...]
    marker: int | None  # the character that plain decoding would be at


@dataclass
class Figures(Message):
    """The figures of the running reply."""

    live: Live

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Figures)


@dataclass
class Heard(Message):
    """How long a server has been writing, and at the end what it reports; it tells no steps."""

    seconds: float
    reply: Reply | None = None  # None: it writes on

    def can_replace(self, message: Message) -> bool:
        # The end is never lost.
        return isinstance(message, Heard) and message.reply is None


@dataclass
class Ended(Message):
    """A reply is finished or was stopped."""

    turn: int
    reply: Reply
    said: Said | None  # the whole message as the conversation keeps it; None: nothing was written
    spans: tuple[Span, ...]


@dataclass
class Refused(Message):
    """A reply could not be begun or went wrong; what was written before stands."""

    turn: int
    text: str
    said: Said | None


@dataclass
class Outgrown(Message):
    """A reply would need other turns to be read than now; nothing of it is written yet."""

    turn: int
    fitted: FittedTurns


@dataclass
class CheckEnded(Message):
    """A reply was written again without guesses."""

    turn: int
    checked: Checked | None  # None: stopped


@dataclass
class CheckProgress(Message):
    """How many tokens of a reply were written again."""

    turn: int
    done: int
    total: int

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, CheckProgress)
