"""What front ends need of a conversation and of the model that answers it, whether that runs here or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

from specchat.conversation import Message, Role
from specchat.reply import Guess, Reply, ReplySettings, Wrote
from speculation.engine import Reading
from speculation.types import Tokens

Event = Reading | Wrote | Reply


class Answerer(Protocol):
    """The model that answers. Where it runs elsewhere, counts of tokens are estimates."""

    @property
    def name(self) -> str: ...
    @property
    def draft_name(self) -> str | None: ...
    @property
    def where(self) -> str:
        """The back end of this machine, or the host that answers."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether what is said leaves this process."""
        ...

    @property
    def n_ctx(self) -> int | None:
        """Tokens of context; None where a server does not say."""
        ...

    @property
    def n_ctx_train(self) -> int | None:
        """Tokens of the largest context that it can have; None where that is not known."""
        ...

    @property
    def load_s(self) -> float: ...

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        ...

    def ids(self, text: str) -> tuple[int, ...] | None:
        """Its token ids; None where only a server knows them."""
        ...

    def prompt_ids(self, messages: Sequence[Message]) -> Tokens | None:
        """The ids of the prompt that asks for the next reply; None where only a server knows them."""
        ...

    def prompt_length(self, messages: Sequence[Message]) -> int:
        """Tokens of that prompt."""
        ...

    def costs(self, messages: Sequence[Message]) -> list[int]:
        """Tokens that each message takes up in it; their sum is its length up to a few."""
        ...


class Dialogue(ABC):
    """Messages, settings, and who answers."""

    def __init__(self, settings: ReplySettings) -> None:
        self.settings = settings
        self.messages: list[Message] = []
        self.last_reply: Reply | None = None

    @property
    @abstractmethod
    def model(self) -> Answerer:
        """Who answers."""

    @property
    @abstractmethod
    def guess(self) -> Guess:
        """Who guesses. A change takes hold as soon as possible; it raises a reason where it is not to be had."""

    @guess.setter
    @abstractmethod
    def guess(self, guess: Guess) -> None: ...

    @property
    @abstractmethod
    def notices(self) -> list[str]:
        """What the user should know; may grow with each reply."""

    @property
    def plain_step_s(self) -> float | None:
        """Seconds of a plain step; None where that is not known."""
        return None

    @property
    def can_begin_replies(self) -> bool:
        """Whether a reply can be begun for the model, so that it goes on with it."""
        return True

    @property
    def prompt(self) -> Tokens | None:
        """The token ids that the present or last reply answers; None where only a server knows them."""
        return None

    @abstractmethod
    def predict(self, text: str) -> None:
        """Say that the next reply was asked to write this text again, up to edits."""

    def set_system(self, text: str) -> None:
        """Replace the system prompt; empty text removes it."""
        self.messages = [m for m in self.messages if m.role is not Role.SYSTEM]
        if text:
            self.messages.insert(0, Message(Role.SYSTEM, text))

    def new(self) -> None:
        """Forget the conversation, but not the system prompt."""
        self.messages = [m for m in self.messages if m.role is Role.SYSTEM]

    @abstractmethod
    def stop(self) -> None:
        """End the reply as soon as possible. Callable from a signal handler or a thread."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the model."""

    def reply(self, text: str) -> Iterator[Event]:
        """Answer a message: readings where the model runs here, then `Wrote` after `Wrote`, then the `Reply`.

        A prompt that does not fit raises and leaves the conversation as it was; so does a stop before the first
        token. A consumer that closes the iterator keeps the part of the reply that it was given.
        """
        return self._answer([*self.messages, Message(Role.USER, text)], None, self.settings.seed)

    def redo(self) -> Iterator[Event]:
        """Write the last reply anew. Until its first token comes, the old one stands. Raises ValueError without one."""
        asked = self.messages[:-1] if self._last_is(Role.ASSISTANT) else list(self.messages)
        if not asked or asked[-1].role is not Role.USER:
            raise ValueError("there is no reply to write anew")
        return self._answer(asked, None, self.settings.seed)

    def go_on(self, seed: int | None = None) -> Iterator[Event]:
        """Continue the last reply; with its own seed it becomes what one run would have written. Raises ValueError."""
        if not self._last_is(Role.ASSISTANT):
            raise ValueError("there is no reply to continue")
        return self._answer(self.messages[:-1], self.messages[-1], seed)

    @abstractmethod
    def _answer(self, asked: Sequence[Message], begun: Message | None, seed: int | None) -> Iterator[Event]:
        """Write a reply, or go on with one that was begun."""

    def _last_is(self, role: Role) -> bool:
        return bool(self.messages) and self.messages[-1].role is role


def joined(begun: Message | None, more: Message) -> Message:
    """A reply and its continuation as one message."""
    if begun is None:
        return more
    known = begun.tokens is not None and more.tokens is not None
    tokens = (*(begun.tokens or ()), *(more.tokens or ())) if known else None
    return Message(Role.ASSISTANT, begun.text + more.text, tokens)
