"""One reply on its way from a session to the screen: text in bursts, figures now and then. In the engine's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.chat import Turn
from specchat.live import Live, LiveFigures, plain_position
from specchat.machine import memory_in_use
from specchat.places import copyable
from specchat.provenance import Authorship, Places, Span, clipped
from specchat.settings import SOURCES
from specchat.tui.messages import Ended, Figures, Grew, ReadingShown

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.conversation import Message as Said
    from specchat.session import ChatSession, Event, Reply
    from speculation.types import Step

Keep = Callable[[str, "Step | None", Sequence[Span]], None]  # what a step wrote, with its figures and who proposed it

POST_S = 0.05  # between two messages of text
FIGURES_S = 0.2  # between two sets of figures
BESIDE_ENGINE = 5.0  # times as long where drawing takes the engine's own cores


@dataclass(frozen=True, slots=True)
class Request:
    """A reply to write. `turn` is the id of the reply in the chat."""

    turn: int
    kind: str  # "reply", "go_on" or "check"
    history: tuple[Said, ...]  # what the model reads; for go_on the begun reply is the last
    path: tuple[Turn, ...]  # the turns behind the history, to say where a copy is from
    whole: tuple[Turn, ...] = ()  # and those that are not read any more
    policy: str = "stop"  # what happens when they outgrow the context, a value of `specchat.context_policy.Policy`
    key: str = ""  # of the chat, under which the cache may be saved; empty: it may not
    sources: tuple[str, ...] = SOURCES  # what lookups may copy from
    tokens: tuple[int, ...] = ()  # of the reply to check
    seed: int | None = None
    system: str = ""
    begun: str = ""  # text that stands already, before what will be written
    keep: Keep | None = None  # is given what each step wrote, at once


class Streaming:
    """Turns the events of a session into messages. All text is posted, in order."""

    def __init__(
        self,
        session: ChatSession,
        request: Request,
        post: Callable[[Message], object],
        between_steps: Callable[[], None],
    ) -> None:
        """`between_steps` is called after each event, when nothing runs on the engine."""
        self._session = session
        self._request = request
        self._post = post
        self._between_steps = between_steps
        n_ctx, exact = session.engines.target.n_ctx, session.follows_exactly
        self._figures = LiveFigures(str(session.guess), session.plain_step_s, n_ctx, exact=exact)
        on_cores = session.engines.target.weights.back_end == "CPU"
        self._figures_s = FIGURES_S * (BESIDE_ENGINE if on_cores else 1.0)
        self._text: list[str] = []  # since the last message
        self._posted_spans = 0
        self._posted_at = self._figures_at = self._started = 0.0

    def run(self, events: Iterator[Event]) -> None:
        """Write the reply to its end. Raises what the session does."""
        from specchat.session import Reading, Wrote

        turn = self._request.turn
        vocabulary = self._session.engines.target.weights.vocabulary
        authorship: Authorship | None = None
        for event in events:
            if isinstance(event, Reading):
                self._post(ReadingShown(turn, event.read, event.total, event.reused, event.seconds_left))
                authorship = authorship or Authorship(self._places(), turn, self._request.begun)
                continue
            assert authorship is not None  # a reply begins with a reading, also of nothing
            if isinstance(event, Wrote):
                if (step := event.step) is not None:
                    self._started = self._started or perf_counter() - step.verify_s - step.draft_s
                    authorship.feed(step, [vocabulary.piece(token) for token in step.tokens])
                    self._figures.add(step, self._session.plan)
                if self._request.keep is not None:
                    self._request.keep(event.text, step, () if step is None else self._placed(authorship.last))
                self._text.append(event.text)
                if perf_counter() - self._posted_at >= POST_S:
                    self._flush(authorship, figures_after_s=self._figures_s)
            else:
                self._end(authorship, event)
            self._between_steps()

    def _end(self, authorship: Authorship, reply: Reply) -> None:
        authorship.finish()
        self._flush(authorship, figures_after_s=0.0)
        written = self._session.messages[-1] if reply.steps else None
        spans = self._placed(clipped(authorship.spans, len(reply.text)))
        self._post(Ended(self._request.turn, reply, written, spans))

    def _flush(self, authorship: Authorship, *, figures_after_s: float) -> None:
        now = perf_counter()
        marker, plain_s = None, self._figures.plain_step_s
        if plain_s is not None and authorship.ends:
            marker = len(self._request.begun) + plain_position(authorship.ends, now - self._started, plain_s)
        spans = self._placed(authorship.spans[max(0, self._posted_spans - 1) :])  # the last one may have grown
        self._post(Grew(self._request.turn, "".join(self._text), spans, marker))
        self._text.clear()
        self._posted_spans, self._posted_at = len(authorship.spans), now
        if now - self._figures_at >= figures_after_s:
            self._figures_at = now
            self._post(Figures(self._snapshot(authorship)))

    def _snapshot(self, authorship: Authorship) -> Live:
        session = self._session
        copied = None if session.plan.draft is None else session.plan.draft.source
        return self._figures.snapshot(
            context_tokens=session.context_tokens,
            guess=str(session.guess),
            memory_bytes=memory_in_use(),
            who=authorship.who,
            origin=None if copied is None else authorship.origin(copied),
        )

    def _placed(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """Spans of what is being written as spans of the whole reply."""
        by = len(self._request.begun)
        return tuple(replace(span, start=span.start + by, end=span.end + by) for span in spans)

    def _places(self) -> Places:
        session, request = self._session, self._request
        places = Places(session.prompt, session.engines.target.weights.vocabulary.piece, request.path, request.system)
        session.copy_only_from(copyable(places, request.sources))
        return places
