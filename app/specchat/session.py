"""One conversation on one engine. Every front end drives this and draws what it yields."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from specchat.conversation import Message, Role, as_read
from specchat.detokenize import ReplyText
from specchat.dialogue import Dialogue, Event, joined
from specchat.equipment import Equipment
from specchat.errors import NoGuesser
from specchat.exactness import follows_exactly
from specchat.loading import Engines
from specchat.logs import note_reply
from specchat.reply import OWN, Checked, Guess, Reply, ReplySettings, Wrote
from specchat.shadow import Shadow, Written, was_idle, written
from speculation.accept import rule_named
from speculation.context import common_prefix
from speculation.controllers.base import Plan
from speculation.controllers.fixed import Fixed
from speculation.engine import ContextFull, EndTokens, Engine, Reading
from speculation.stats import Totals, totals
from speculation.types import CannotRewind, Interrupted, State, Step, Tokens

READ_ROWS = 32  # tokens from which a forward says how fast a prompt is read


class ChatSession(Dialogue):
    """Messages, settings and the engine that answers, in this process."""

    def __init__(self, engines: Engines, settings: ReplySettings, clock: Callable[[], float] = perf_counter) -> None:
        super().__init__(settings)
        self.engines = engines
        self._clock = clock
        self._stop = False
        self._guess = Guess.AUTO
        self._equipment = Equipment(engines, clock)
        self._shadow = Shadow()
        self._pace: float | None = None  # tokens a second of the last reading that was long enough to tell
        rule = rule_named(settings.rule, settings.seed or 0)
        self._engine = Engine(engines.target, {}, Fixed(), rule, settings.sampling, clock)
        self._equip()

    @property
    def model(self) -> Engines:
        """The engine that answers."""
        return self.engines

    @property
    def guess(self) -> Guess:
        """Who guesses. A change takes hold at the next step, also in the middle of a reply.

        Raises CannotRewind where the target cannot take a guess back, NoGuesser without the draft model or the head.
        """
        return self._guess

    @guess.setter
    def guess(self, guess: Guess) -> None:
        if guess not in (Guess.AUTO, Guess.OFF) and not self.engines.target.can_rewind:
            name = self.engines.target.weights.name
            raise CannotRewind(f"{name} cannot take tokens back, so nothing can guess for it")
        if guess is Guess.DRAFT and self.engines.draft is None:
            if self.engines.eagle3 is None:
                raise NoGuesser("no draft model is loaded")
            guess = Guess.EAGLE3  # whose head was given in place of one
        if guess in OWN and guess not in self.engines.own:
            raise NoGuesser(self.engines.why_without(guess))
        self._guess = guess
        self._equip()

    @property
    def plan(self) -> Plan:
        """Why the last step was taken."""
        return self._engine.plan

    @property
    def prompt(self) -> Tokens:
        """The token ids that the present or last reply answers, shape (n,)."""
        return self._engine.context.tokens[: self._engine.context.given]

    def copy_only_from(self, allowed: Callable[[int], bool] | None) -> None:
        """Let lookups copy only what begins at an index of the context that is allowed; None: anything."""
        self._equipment.lookup.allowed = allowed

    def expect_copy(self, source: int) -> None:
        """Tell lookups that the next reply was asked to copy what begins at an index of its prompt, up to edits."""
        self._equipment.lookup.expect_copy(source)

    @property
    def notices(self) -> list[str]:
        """What the user should know about this model; may grow with the first prompt."""
        shape = self.engines.format.notice
        return [*self.engines.notices, *([shape] if shape else [])]

    @property
    def context_tokens(self) -> int:
        """Tokens of the conversation so far, as the engine holds them."""
        return len(self._engine.context)

    @property
    def cached(self) -> Tokens:
        """The tokens that the target's cache holds, shape (n,)."""
        return self._engine.cached

    def take_state(self, tokens: Tokens, state: State) -> None:
        """Go on from a saved state of the target's cache, which holds these tokens; the messages stay as they are.

        What comes next reads only what it lacks. Raises EngineFailure, as `LlamaModel.restore_state` does.
        """
        self.engines.target.restore_state(state, len(tokens))
        self._engine.adopt(tokens)

    @property
    def follows_exactly(self) -> bool:
        """Whether the text of the next reply will follow the model exactly."""
        return follows_exactly(self.settings.rule, self.settings.sampling.temperature)

    @property
    def reading_pace(self) -> float | None:
        """Tokens a second of reading a prompt: as last seen, or by the price list; None where nothing is known."""
        if self._pace is not None or self.engines.cost is None:
            return self._pace
        return READ_ROWS / self.engines.cost.forward_s(READ_ROWS)

    def learned(self) -> dict[str, Any]:
        """What lookups have been worth so far, as numbers that `take_up` understands."""
        return self._equipment.lookup.survival.export()

    def take_up(self, learned: object) -> None:
        """Begin with what an earlier session learned; anything else is ignored."""
        if isinstance(learned, Mapping):
            self._equipment.lookup.survival.load(learned)

    def stop(self) -> None:
        """End the reply after the present step, or the reading at once. Callable from a signal handler or a thread."""
        self._stop = True

    def predict(self, text: str) -> None:
        """Nothing: lookups find the text in the prompt, and `expect_copy` says where."""

    def close(self) -> None:
        """Free the models."""
        self.engines.close()

    def read_ahead(self, messages: Sequence[Message], settled: str = "") -> Iterator[Reading]:
        """Read what a reply to these messages will read however the last of them, a question, goes on.

        `settled` is how the question begins whatever is typed over. The conversation stays as it is.
        Raises ContextFull.
        """
        self._stop = False
        *history, question = messages
        begun = question.text if self.engines.target.rewinds_freely else settled  # going back would cost all of it
        ways = [[*history, Message(question.role, f"{begun}{more}")] for more in ("a", "\n\nb")]
        prompts = [self.engines.format.prompt(way) for way in ways]
        sure = common_prefix(prompts[0], prompts[1])
        return self._read_ahead(prompts[0][: sure + 1])  # the engine leaves the last token for the first step

    def shadow(self) -> Iterator[int]:
        """Let a draft model that sat idle read the last reply, so that `auto` knows what it would have been worth.

        Yields how many tokens were compared, a batch at a time. The conversation stays as it is. A stop ends it, and
        the next call goes on there. Raises SpeculationError.
        """
        self._stop = False
        return self._read_shadow()

    def check(self, asked: Sequence[Message], tokens: Sequence[int], seed: int) -> Iterator[Event | Checked]:
        """Write the reply to some messages again without guesses, up to the first token that differs: then `Checked`.

        The conversation stays as it is. A stop ends it without a verdict.
        """
        self._stop = False
        self._prepare(seed)
        self._equipment.take_off(self._engine, self.settings)
        self._watch(lambda: self._stop)
        same = 0
        try:
            prompt = self.engines.format.prompt(asked)
            yield from self._read(prompt)
            for step in () if self._stop else self._engine.steps(limit=len(tokens), ends=EndTokens()):
                if step.tokens[0] != tokens[same]:
                    self._engine.truncate(len(prompt) + same)
                    pair = [tokens[same], step.tokens[0]]
                    piece = self.engines.target.weights.vocabulary.piece
                    texts = [piece(token).decode("utf-8", "replace") for token in pair]
                    chances = self._engine.chances(pair)
                    yield Checked(same, (texts[0], texts[1]), (chances[0], chances[1]))
                    return
                same += 1
                yield Wrote("", step)
                if self._stop:
                    return
            if not self._stop:
                yield Checked(same, None, None)
        except Interrupted:
            return
        finally:
            self._watch(None)
            self._equip()

    def _prepare(self, seed: int) -> None:
        self._engine.sampling = self.settings.sampling
        self._engine.rule = rule_named(self.settings.rule, seed)
        self._equip()

    def _answer(self, asked: Sequence[Message], begun: Message | None, seed: int | None) -> Iterator[Event]:
        """Write a reply, or go on with one that was begun."""
        self._stop = False
        prompt = self.engines.format.prompt(asked)
        vocabulary = self.engines.target.weights.vocabulary
        if begun is not None:
            begun = as_read(begun, vocabulary)
            begun_ids = vocabulary.encode(begun.text) if begun.tokens is None else begun.tokens
            prompt = np.concatenate([prompt, np.asarray(begun_ids, dtype=np.int32)])
        seed = secrets.randbits(32) if seed is None else seed
        self._prepare(seed)
        exact = self.follows_exactly
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
                    self.messages = [*asked, joined(begun, self._kept(written, len(prompt)))]
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
            exact=exact,
        )
        note_reply(self.last_reply)
        self._shadow.take(self._unread(len(prompt), steps, seed))
        yield self.last_reply

    def _unread(self, prompt_tokens: int, steps: Sequence[Step], seed: int) -> Written | None:
        """The last reply, where a draft model had next to no part in it and can tell what it would have proposed."""
        draws_alike = self.settings.rule == "coupled" or self._engine.sampling.temperature == 0
        draft = self._equipment.draft
        wanted = self._guess is Guess.AUTO and draft is not None and was_idle(draft.name, steps)
        if not (steps and draws_alike and wanted):
            return None
        return written(self._engine.context.tokens.copy(), prompt_tokens, steps, self._engine.sampling, seed)

    def _read_shadow(self) -> Iterator[int]:
        draft, auto = self._equipment.draft, self._equipment.auto
        if draft is None or auto is None or self._guess is not Guess.AUTO:
            return
        self._watch(lambda: self._stop)
        try:
            for compared in self._shadow.read(draft, auto):
                yield compared
                if self._stop:
                    return
        finally:
            self._watch(None)

    def _read_ahead(self, prompt: Tokens) -> Iterator[Reading]:
        self._watch(lambda: self._stop)
        try:
            if not self._stop:
                yield from self._read(prompt)
        finally:
            self._watch(None)

    def _read(self, prompt: Tokens) -> Generator[Reading, None, Reading]:
        reading = Reading(0, len(prompt), 0, 0.0)
        try:
            for reading in self._engine.read(prompt):
                yield reading
                if self._stop:
                    break
        except Interrupted:
            self._stop = True
        if reading.read >= READ_ROWS and reading.seconds > 0:
            self._pace = reading.read / reading.seconds
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

    @property
    def plain_step_s(self) -> float | None:
        """Seconds of a plain step by the price list; None where there is none."""
        return None if self.engines.cost is None else self.engines.cost.forward_s(1)

    def _plain_step_s(self, totals: Totals) -> float | None:
        if totals.plain_steps >= 8:
            return totals.plain_s / totals.plain_steps
        return self.plain_step_s

    def _watch(self, stop: Callable[[], bool] | None) -> None:
        self.engines.target.interrupt = stop
        if self.engines.draft is not None:
            self.engines.draft.interrupt = stop

    def _equip(self) -> None:
        self._equipment.fit(self._engine, self._guess, self.settings)


__all__ = ["ChatSession", "Checked", "ContextFull", "Event", "Guess", "Reading", "Reply", "ReplySettings", "Wrote"]
