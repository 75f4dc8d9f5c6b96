"""A conversation with a model on a server, with the ways of every other session.

Tokens are not known here: what is yielded are pieces of text, and the figures are those that the server reports.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

from specchat.conversation import Message, Role
from specchat.dialogue import Dialogue, Event, joined
from specchat.remote.client import Server
from specchat.remote.engine import RemoteModel
from specchat.remote.errors import RemoteError, StreamBroken
from specchat.remote.figures import ServerFigures, doubt, from_counters, merged, or_none_drafted, read_counters
from specchat.remote.kinds import Kind
from specchat.remote.refusals import Refused
from specchat.remote.wire import DONE, Thinking, read_piece, request_body, without_refused
from specchat.reply import Guess, Reply, ReplySettings, Wrote
from speculation.stats import Totals
from speculation.types import Finish

_WITHHELD = "content_filter"
_MOST_TEXT = 8 << 20  # characters of a reply, many times what a context holds
CANNOT_GO_ON = "this server is not known to go on with a reply that was begun; ask it to, or have it written anew"


class RemoteSession(Dialogue):
    """Messages, settings and the server that answers."""

    def __init__(
        self,
        server: Server,
        model: RemoteModel,
        settings: ReplySettings,
        notices: Sequence[str] = (),
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """`notices` are what the user should know from the beginning."""
        super().__init__(settings)
        self._server = server
        self._model = model
        self._notices = list(notices)
        self._clock = clock
        self._stop = False
        self._prediction: str | None = None

    @property
    def model(self) -> RemoteModel:
        """Who answers."""
        return self._model

    @property
    def guess(self) -> Guess:
        """The server decides who guesses, so it is always AUTO; choosing another raises RemoteError."""
        return Guess.AUTO

    @guess.setter
    def guess(self, guess: Guess) -> None:
        if guess is not Guess.AUTO:
            raise RemoteError(f"{self._model.where} decides itself who guesses; choose it where the server is started")

    @property
    def notices(self) -> list[str]:
        """What the user should know; a reply that belies what the server says of itself adds to it."""
        return list(self._notices)

    @property
    def can_begin_replies(self) -> bool:
        """Whether the server is known to go on with a reply that was begun."""
        return self._model.facts.continues is not None

    def predict(self, text: str) -> None:
        """Send a text as the prediction of the next reply, where the server takes one."""
        self._prediction = text if self._model.takes_prediction else None

    def stop(self) -> None:
        """End the reply at once; the server notices that nobody listens. Callable from a signal handler or a thread."""
        self._stop = True
        self._server.stop()

    def close(self) -> None:
        """End what is being written."""
        self.stop()

    def _answer(self, asked: Sequence[Message], begun: Message | None, seed: int | None) -> Iterator[Event]:
        """Write a reply, or go on with one that was begun. Raises RemoteError, ServerFull; what came is kept."""
        prediction, self._prediction = self._prediction, None
        if begun is not None and not self.can_begin_replies:
            raise RemoteError(CANNOT_GO_ON)
        self._stop = False
        seed = secrets.randbits(31) if seed is None else seed
        messages = [*asked, begun] if begun is not None else list(asked)
        body = request_body(
            self._model.facts, messages, self.settings, seed, goes_on=begun is not None, prediction=prediction
        )
        writing = _Writing(self._clock)
        counted = self._counters()
        try:
            with closing(writing.read(self._events(body))) as pieces:
                for text in pieces:
                    yield Wrote(text, None)
                    if self._stop:
                        break
            if not (writing.is_done or self._stop):
                raise StreamBroken(f"{self._model.where} ended the reply without saying that it is complete")
        finally:
            if writing.text:
                self.messages = [*asked, joined(begun, Message(Role.ASSISTANT, writing.text))]
        figures = replace(writing.figures, elapsed_s=writing.elapsed_s)
        if counted is not None and figures.drafted is None and not self._stop:
            figures = merged(figures, from_counters(counted, self._counters() or {}))
        if self._model.facts.kind is Kind.LLAMA:
            figures = or_none_drafted(self._model.facts.claims, figures)
        self._model.learn(messages, figures)
        if (line := doubt(self._model.facts.claims, figures)) and line not in self._notices:
            self._notices.append(line)
        self.last_reply = self._reply(writing, figures, seed)
        yield self.last_reply

    def _events(self, body: dict[str, Any]) -> Generator[str, None, None]:
        """The events of a reply; a refusal that names a field which is only of use costs that field."""
        try:
            yield from self._server.stream(body)
        except Refused as error:
            simpler = without_refused(body, error.said)
            if simpler is None:
                raise
            yield from self._server.stream(simpler)

    def _counters(self) -> dict[str, float] | None:
        """vLLM's counters as they stand; None where there are none to be had."""
        if self._model.facts.kind is not Kind.VLLM:
            return None
        with suppress(RemoteError):
            return read_counters(self._server.page("/metrics", at_root=True))
        return None

    def _reply(self, writing: _Writing, figures: ServerFigures, seed: int) -> Reply:
        return Reply(
            text=writing.text,
            finish=None if self._stop and not writing.is_done else self._finish(writing, figures),
            seed=seed,
            totals=Totals(),
            steps=(),
            prompt_tokens=figures.prompt_tokens or 0,
            reused_tokens=figures.cached_tokens or 0,
            read_tokens=max(0, (figures.prompt_tokens or 0) - (figures.cached_tokens or 0)),
            read_s=figures.read_s or 0.0,
            first_token_s=writing.first_s,
            plain_step_s=None,
            server=figures,
        )

    def _finish(self, writing: _Writing, figures: ServerFigures) -> Finish:
        """Why it ended. A server calls both limits length: it is ours where one was set and is reached."""
        if writing.finish != "length":
            return Finish.STOP if writing.at_stop else Finish.END
        limit, output = self.settings.max_tokens, figures.output_tokens
        is_ours = limit is not None and (output is None or output >= limit)
        return Finish.LENGTH if is_ours else Finish.CONTEXT


class _Writing:
    """What has come of one reply."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._texts: list[str] = []
        self._size = 0
        self.finish: str | None = None
        self.is_done = self.at_stop = False
        self.figures = ServerFigures()
        self.first_s: float | None = None
        self.elapsed_s: float | None = None
        self._clock = clock

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._texts)

    def read(self, events: Generator[str, None, None]) -> Generator[str, None, None]:
        """The text of each event that has some. Raises StreamBroken."""
        thinking, started = Thinking(), self._clock()
        with closing(events):
            for data in events:
                if data.strip() == DONE:
                    self.is_done = True
                    break
                piece = read_piece(data)
                self.figures = merged(self.figures, piece.figures)
                text = thinking.text_of(piece)
                if piece.finish is not None:
                    if piece.finish == _WITHHELD:
                        raise StreamBroken("the server withholds the rest of the reply: its filter objects to it")
                    self.finish, self.is_done, self.at_stop = piece.finish, True, piece.at_stop
                    text += thinking.end()
                if text:
                    now = self._clock() - started
                    self.first_s = now if self.first_s is None else self.first_s
                    self.elapsed_s = now - self.first_s
                    yield self._written(text)

    def _written(self, text: str) -> str:
        self._texts.append(text)
        self._size += len(text)
        if self._size > _MOST_TEXT:
            raise StreamBroken(f"the reply does not end: it has more than {_MOST_TEXT} characters already")
        return text
