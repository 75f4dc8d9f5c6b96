"""The one thread that touches the engine. It takes jobs, posts messages, and never touches a widget."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

from specchat.errors import in_one_line
from specchat.tui.hearing import hear
from specchat.tui.messages import ONLY_HERE, CheckEnded, CheckProgress, Outgrown, Refused, Trouble
from specchat.tui.seat import Seat, Wanted
from specchat.tui.streaming import Request, Streaming

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.conversation import Message as Said
    from specchat.dialogue import Dialogue
    from specchat.session import ChatSession, ReplySettings

NO_MODEL = "no model is loaded: choose one with Ctrl+L"
_AROUND = 24  # tokens, more than a template writes around a turn
_CLOSE_S = 1.5  # that closing waits for the engine to come to a halt


class EngineJob(Protocol):
    """Something that needs the engine and reports by itself."""

    def run(
        self, session: Dialogue, post: Callable[[Message], object], between_steps: Callable[[], None], /
    ) -> None: ...
    def refuse(self, post: Callable[[Message], object], text: str, /) -> None: ...


class EngineThread:
    """Loads models and writes replies. All methods may be called from the screen's thread and return at once."""

    def __init__(self, post: Callable[[Message], object], settings: Callable[[], ReplySettings]) -> None:
        self._post = post
        self._settings = settings
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._changes: deque[Callable[[], None]] = deque()
        self._seat = Seat(post, settings)
        self._ahead: tuple[tuple[Said, ...], str, str] | None = None  # what is to be read ahead, see `read_ahead`
        self._listens = False  # whether a draft model may read the last reply in pauses, see `listen`
        self._is_reading_ahead = False
        self._reading = threading.Lock()  # around that it begins and ends, so that nothing else is stopped
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def load(self, wanted: Wanted) -> None:
        """Load a model in place of the present one."""
        self._jobs.put(lambda: self._seat.load(wanted))
        self.stop_reading_ahead()

    def load_draft(self, name: str) -> None:
        """Load a draft model between two steps; "none" unloads it."""
        self.change(lambda: self._seat.load_draft(name))

    def choose(self, guess: str) -> None:
        """Let another guesser guess, from the next step on."""
        self.change(lambda: self._seat.choose(guess))

    def refresh(self) -> None:
        """Take up the settings anew: who guesses how far from the next step on, sampling with the next reply."""
        self.change(self._seat.refresh)

    def piece(self, token: int) -> bytes:
        """The bytes of a token; empty while no model runs here. Callable from any thread."""
        return self._seat.piece(token)

    @property
    def wanted(self) -> Wanted:
        """What was loaded last."""
        return self._seat.wanted

    @property
    def is_connecting(self) -> bool:
        """Whether a server is being asked what it is, which `stop` ends."""
        return self._seat.is_connecting

    def change(self, what: Callable[[], None]) -> None:
        """Do something between two steps, or at once where nothing is being written."""
        self._changes.append(what)
        self._jobs.put(self._take_changes)

    def write(self, request: Request) -> None:
        """Write a reply after everything asked before."""
        self._jobs.put(lambda: self._write(request))
        self.stop_reading_ahead()

    def read_ahead(self, messages: Sequence[Said], key: str, settled: str = "") -> None:
        """Read what the next reply will read, while there is nothing else to do; what is read now for that is left.

        `key` is that of the chat, see `Request`; `settled` is how the question begins whatever is typed over.
        """
        self._ahead = ahead = (tuple(messages), key, settled)
        self._jobs.put(lambda: self._read_ahead(ahead))
        self._stop_reading()

    def stop_reading_ahead(self) -> None:
        """The engine is wanted for something else, or other words are typed."""
        self._ahead = None
        self._stop_reading()

    def listen(self) -> None:
        """Let a draft model that sat idle read the last reply, while there is nothing else to do."""
        self._listens = True
        self._jobs.put(lambda: None)  # after which the pause is looked at

    def _stop_reading(self) -> None:
        with self._reading:
            if self._is_reading_ahead and (session := self._seat.session) is not None:
                session.stop()

    def rewrite(self, job: EngineJob) -> None:
        """Rewrite files or a part of one, or plan that, after everything asked before."""
        self._jobs.put(lambda: self._rewrite(job))
        self.stop_reading_ahead()

    def stop(self) -> None:
        """Stop the reply after its present step, or the loading."""
        self._seat.stop()

    def count(self, text: str) -> int | None:
        """How many tokens a text has; None while no model is loaded. Callable from any thread."""
        return self._seat.count(text)

    def close(self) -> bool:
        """End the thread; False where the engine is inside something that cannot be stopped."""
        self._seat.is_closing = True
        self.stop()
        self._jobs.put(None)
        self._thread.join(_CLOSE_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None and not self._seat.is_closing:
            try:
                job()
            except Exception as error:
                self._post(Trouble(in_one_line(error)))
            self._use_pause()
        self._seat.unload()

    def _take_changes(self) -> None:
        while self._changes:
            try:
                self._changes.popleft()()
            except Exception as error:
                self._post(Trouble(in_one_line(error)))

    # Replies and rewrites.

    def _rewrite(self, job: EngineJob) -> None:
        if self._seat.session is None:
            job.refuse(self._post, NO_MODEL)
            return
        self._seat.stopping.clear()
        # A rewrite is as long as its file, whatever the limit of replies.
        self._seat.session.settings = replace(self._settings(), max_tokens=None)
        try:
            job.run(self._seat.session, self._post, self._take_changes)
        finally:
            self._seat.session.settings = self._settings()

    def _write(self, request: Request) -> None:
        self._listens = False
        session = self._seat.session
        if session is None:
            self._post(Refused(request.turn, NO_MODEL, None))
            return
        self._seat.stopping.clear()
        if request.key != self._seat.key:
            self._seat.save_cache()
        session.messages = list(request.history)
        if request.kind == "check":
            if self._seat.here is not None:
                self._check(self._seat.here, request)
            else:
                self._post(Trouble(f"a reply is checked {ONLY_HERE}"))
                self._post(CheckEnded(request.turn, None))
            return
        before = session.messages[-1:] if request.kind == "go_on" else []
        try:
            if request.kind == "reply":
                session.messages = list(request.history[:-1])
                if self._outgrown(session, request):
                    return
            here = self._seat.here
            if here is not None:
                self._seat.take_up(here, request.key)
            asked = request.history[-1].text
            events = session.reply(asked) if request.kind == "reply" else session.go_on(request.seed)
            if here is None:
                hear(session, request, events, self._post, self._take_changes)
            else:
                Streaming(here, request, self._post, self._take_changes).run(events)
        except Exception as error:
            said = session.messages[-1] if session.messages and session.messages[-1:] != before else None
            self._post(Refused(request.turn, in_one_line(error), said if said and said.role == "assistant" else None))

    def _read_ahead(self, ahead: tuple[tuple[Said, ...], str, str]) -> None:
        session = self._seat.here
        if session is None:  # to a server nothing goes that is not sent
            return
        messages, key, settled = ahead
        if key != self._seat.key:
            self._seat.save_cache()
            session.messages = list(messages[:-1])
            self._seat.take_up(session, key)
        session.messages = list(messages[:-1])
        events = session.read_ahead(messages, settled)
        with self._reading:
            if self._ahead is not ahead:  # more was typed, or the engine is wanted
                return
            self._is_reading_ahead = True
        try:
            for _ in events:
                if self._ahead is not ahead:
                    break
                self._take_changes()
        except Exception:  # the question will say it, when it is asked
            return
        finally:
            with self._reading:
                self._is_reading_ahead = False

    def _use_pause(self) -> None:
        """Let an idle draft model read the last reply, until anything else is wanted."""
        session = self._seat.here
        if not self._listens or session is None:
            return
        batches = session.shadow()
        with self._reading:
            if not self._jobs.empty() or self._seat.is_closing:
                return
            self._is_reading_ahead = True
        try:
            for _ in batches:
                if not self._jobs.empty():
                    break
        except Exception:  # it only wanted to know something
            self._listens = False
        finally:
            with self._reading:
                self._is_reading_ahead = False

    def _outgrown(self, session: Dialogue, request: Request) -> bool:
        """Whether other turns must be read than now, which the screen is asked about. Raises DoesNotFit."""
        from specchat.context_policy import Policy
        from specchat.fitting import fit_turns

        texts = [request.system, *(turn.prompt_text for turn in request.whole)]
        most = sum(len(text.encode("utf-8", "replace")) + _AROUND for text in texts)  # a token is a byte at least
        n_ctx = session.model.n_ctx
        is_short = n_ctx is None or most < n_ctx // 2
        if not request.whole or (is_short and not any(turn.is_dropped for turn in request.whole)):
            return False
        policy, longest = Policy(request.policy), session.settings.max_tokens
        fitted = fit_turns(session.model, request.system, request.whole, policy, longest)
        if fitted.dropping or fitted.returning:
            self._post(Outgrown(request.turn, fitted))
            return True
        return False

    def _check(self, session: ChatSession, request: Request) -> None:
        from specchat.session import Checked, Wrote

        verdict, done = None, 0
        try:
            assert request.seed is not None
            for event in session.check(request.history, request.tokens, request.seed):
                if isinstance(event, Checked):
                    verdict = event
                elif isinstance(event, Wrote):
                    done += 1
                    self._post(CheckProgress(request.turn, done, len(request.tokens)))
        except Exception as error:
            self._post(Trouble(in_one_line(error)))
        self._post(CheckEnded(request.turn, verdict))
