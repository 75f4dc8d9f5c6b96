"""One conversation on one engine. Every front end drives this and draws what it yields."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import Any

from specchat.conversation import Message, Role
from specchat.detokenize import ReplyText
from specchat.loading import Engines
from speculation.accept import rule_named
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.engine import ContextFull, Engine, Reading
from speculation.guessers.base import Guesser
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.llama import LlamaModel
from speculation.sampling import SamplingConfig
from speculation.stats import Totals, totals
from speculation.types import Finish, Interrupted, Step, Tokens

DRAFT_MIN_P = 0.4  # a draft model that believes less in its own token stops there


class Guess(StrEnum):
    """Who guesses: what the user chose."""

    AUTO = "auto"
    DRAFT = "draft"
    LOOKUP = "lookup"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """How replies are written."""

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    seed: int | None = None  # None draws a new one for each reply
    max_tokens: int | None = None  # None: until the context is full
    stop: tuple[str, ...] = ()
    rule: str = "coupled"
    guess_max: int | None = None  # longest draft of a guesser chosen by hand; None: its default


@dataclass(frozen=True, slots=True)
class Wrote:
    """One step, and the text that it decided, which may be empty."""

    text: str
    step: Step | None  # None: text that was held back until it was clear that the reply ends


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished or stopped reply, and what it took."""

    text: str
    finish: Finish | None  # None: stopped by the user
    seed: int
    totals: Totals
    steps: tuple[Step, ...]
    prompt_tokens: int
    reused_tokens: int  # of the prompt, that stood in the cache
    read_tokens: int  # of the prompt, that were evaluated; fewer than the rest when the reading was stopped
    read_s: float
    first_token_s: float | None
    plain_step_s: float | None  # seconds of a plain step: measured in this reply where it had enough of them

    @property
    def speed_up(self) -> float | None:
        """Estimated speed over plain decoding; None from too few steps."""
        return self.totals.speed_up(self.plain_step_s)


Event = Reading | Wrote | Reply


class ChatSession:
    """Messages, settings and the engine that answers."""

    def __init__(self, engines: Engines, settings: ReplySettings, clock: Callable[[], float] = perf_counter) -> None:
        self.engines = engines
        self.settings = settings
        self.messages: list[Message] = []
        self.last_reply: Reply | None = None
        self._clock = clock
        self._stop = False
        self._guess = Guess.AUTO
        self._draft: DraftModel | None = None
        self._lookup = PromptLookup()
        self._auto: Adaptive | None = None
        self._auto_draft: LlamaModel | None = None  # the draft model that it knows of
        rule = rule_named(settings.rule, settings.seed or 0)
        self._engine = Engine(engines.target, {}, Fixed(), rule, settings.sampling, clock)
        self._equip()

    @property
    def guess(self) -> Guess:
        """Who guesses. A change takes hold at the next step, also in the middle of a reply."""
        return self._guess

    @guess.setter
    def guess(self, guess: Guess) -> None:
        if guess is Guess.DRAFT and self.engines.draft is None:
            raise ValueError("no draft model is loaded")
        self._guess = guess
        self._equip()

    @property
    def notices(self) -> list[str]:
        """What the user should know about this model; may grow with the first prompt."""
        shape = self.engines.format.notice
        return [*self.engines.notices, *([shape] if shape else [])]

    @property
    def context_tokens(self) -> int:
        """Tokens of the conversation so far, as the engine holds them."""
        return len(self._engine.context)

    def set_system(self, text: str) -> None:
        """Replace the system prompt; empty text removes it."""
        self.messages = [m for m in self.messages if m.role is not Role.SYSTEM]
        if text:
            self.messages.insert(0, Message(Role.SYSTEM, text))

    def new(self) -> None:
        """Forget the conversation, but not the system prompt."""
        self.messages = [m for m in self.messages if m.role is Role.SYSTEM]

    def learned(self) -> dict[str, Any]:
        """What lookups have been worth so far, as numbers that `take_up` understands."""
        return self._lookup.survival.export()

    def take_up(self, learned: object) -> None:
        """Begin with what an earlier session learned; anything else is ignored."""
        if isinstance(learned, Mapping):
            self._lookup.survival.load(learned)

    def stop(self) -> None:
        """End the reply after the present step, or the reading at once. Callable from a signal handler or a thread."""
        self._stop = True

    def reply(self, text: str) -> Iterator[Event]:
        """Answer a message: readings, then a `Wrote` for each step, then the `Reply`.

        A prompt that does not fit raises ContextFull and leaves the conversation as it was; so does a stop before
        the first token. A consumer that closes the iterator keeps the part of the reply that it was given.
        """
        self._stop = False
        asked = [*self.messages, Message(Role.USER, text)]
        prompt = self.engines.format.prompt(asked)
        seed = secrets.randbits(32) if self.settings.seed is None else self.settings.seed
        self._engine.sampling = self.settings.sampling
        self._engine.rule = rule_named(self.settings.rule, seed)
        self._equip()
        vocabulary = self.engines.target.weights.vocabulary
        written = ReplyText(vocabulary.piece, vocabulary.ends, self.settings.stop)
        steps: list[Step] = []
        started = self._clock()
        self._watch(lambda: self._stop)
        try:
            reading = yield from self._read(prompt)
            read_s = self._clock() - started
            try:
                first_token_s = yield from self._write(written, steps, started)
            finally:
                if steps:
                    self.messages = [*asked, self._kept(written, len(prompt))]
        finally:
            self._watch(None)
        counted = totals(steps)
        self.last_reply = Reply(
            text=written.text,
            finish=steps[-1].finish if steps else None,
            seed=seed,
            totals=counted,
            steps=tuple(steps),
            prompt_tokens=len(prompt),
            reused_tokens=reading.reused,
            read_tokens=reading.read,
            read_s=read_s,
            first_token_s=first_token_s,
            plain_step_s=self._plain_step_s(counted),
        )
        yield self.last_reply

    def _read(self, prompt: Tokens) -> Generator[Event, None, Reading]:
        reading = Reading(0, len(prompt), 0, 0.0)
        try:
            for reading in self._engine.read(prompt):
                yield reading
                if self._stop:
                    break
        except Interrupted:
            self._stop = True
        return reading

    def _write(self, written: ReplyText, steps: list[Step], started: float) -> Generator[Event, None, float | None]:
        """Write until an end or a stop; the seconds from `started` to the first token."""
        first_token_s = None
        limit = self.settings.max_tokens or self.engines.target.n_ctx
        try:
            for step in () if self._stop else self._engine.steps(limit=limit, ends=written):
                first_token_s = first_token_s or self._clock() - started
                steps.append(step)
                yield Wrote(written.take(), step)
                if self._stop:
                    break
        except Interrupted:
            pass  # inside a step, which then emitted nothing
        written.finish()
        if rest := written.take():
            yield Wrote(rest, None)
        return first_token_s

    def _kept(self, written: ReplyText, prompt_tokens: int) -> Message:
        """The reply as it was shown, with the cache cut to it."""
        kept = written.tokens[: written.kept_tokens()]
        if self.engines.target.n_past > prompt_tokens + len(kept):  # after a stop string, which is not shown
            self._engine.truncate(prompt_tokens + len(kept))
        exact = self.engines.target.weights.vocabulary.decode(kept).decode("utf-8", "replace") == written.text
        return Message(Role.ASSISTANT, written.text, tuple(kept) if exact else None)

    def _plain_step_s(self, totals: Totals) -> float | None:
        if totals.plain_steps >= 8:
            return totals.plain_s / totals.plain_steps
        return None if self.engines.cost is None else self.engines.cost.forward_s(1)

    def _watch(self, stop: Callable[[], bool] | None) -> None:
        self.engines.target.interrupt = stop
        if self.engines.draft is not None:
            self.engines.draft.interrupt = stop

    def _equip(self) -> None:
        """Give the engine its guessers and a controller for what the user chose."""
        draft = self.engines.draft
        guessers: dict[str, Guesser] = {self._lookup.name: self._lookup}
        if draft is None:
            self._draft = None
        else:
            if self._draft is None or self._draft.model is not draft:
                self._draft = DraftModel(draft, self.settings.sampling, self.engines.target.n_vocab, DRAFT_MIN_P)
            self._draft.sampling = self.settings.sampling
            guessers[self._draft.name] = self._draft
        self._engine.guessers = guessers
        self._engine.controller = self._controller(guessers)

    def _controller(self, guessers: Mapping[str, Guesser]) -> Controller:
        longest = self.settings.guess_max
        if self._guess is Guess.AUTO and self.engines.cost is not None:
            return self._adaptive(self.engines.cost)
        if self._guess is Guess.DRAFT and self._draft is not None:
            return Fixed(self._draft.name, longest or 4)
        if self._guess is Guess.LOOKUP:
            return Fixed(self._lookup.name, longest or 8)
        return Fixed()

    def _adaptive(self, cost: CostTable) -> Adaptive:
        """The controller of `auto`: one for the session, so that it keeps what it learned, anew for another draft."""
        draft = self.engines.draft
        if self._auto is None or self._auto_draft is not draft:
            # Decoding one token is bound by reading the weights; what drafting really takes is learned as it happens.
            share = None if draft is None else draft.weights.size_bytes / self.engines.target.weights.size_bytes
            self._auto = Adaptive(cost, None if share is None else share * cost.forward_s(1))
            self._auto_draft = draft
        return self._auto


__all__ = ["ChatSession", "ContextFull", "Event", "Guess", "Reading", "Reply", "ReplySettings", "Wrote"]
