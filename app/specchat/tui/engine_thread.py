"""The one thread that touches the engine. It takes jobs, posts messages, and never touches a widget."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from textual.message import Message

from specchat.errors import in_one_line
from specchat.machine import decoding_threads
from specchat.tui.connecting import connected
from specchat.tui.hearing import hear
from specchat.tui.messages import (
    ONLY_HERE,
    CheckEnded,
    CheckProgress,
    Loaded,
    LoadProgress,
    ModelMissing,
    ModelReady,
    Outgrown,
    Refused,
    Trouble,
)
from specchat.tui.streaming import Request, Streaming
from speculation.types import Interrupted

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.conversation import Message as Said
    from specchat.dialogue import Dialogue
    from specchat.loading import Engines
    from specchat.remote.client import Server
    from specchat.session import ChatSession, ReplySettings
    from specchat.settings.endpoints import Endpoint
    from specchat.shelf import Shelf
    from speculation.llama import LlamaModel

NO_MODEL = "no model is loaded: choose one with Ctrl+L"
_AROUND = 24  # tokens, more than a template writes around a turn
_CLOSE_S = 1.5  # that closing waits for the engine to come to a halt


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which models to load, and how."""

    model: str | None = None  # None: the catalogue's default
    draft: str = "auto"
    guess: str = "auto"
    n_ctx: int | None = None
    n_threads: int | None = None
    cache_type: str = "f16"
    endpoint: Endpoint | None = None  # a server to answer instead; `model` is then one of its models


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
        self._session: Dialogue | None = None
        self._here: ChatSession | None = None  # the same, where its model runs here
        self._engines: Engines | None = None
        self._connecting: Server | None = None
        self._wanted = Wanted()
        self._title = ""  # of the loaded model
        self._ahead: tuple[tuple[Said, ...], str, str] | None = None  # what is to be read ahead, see `read_ahead`
        self._listens = False  # whether a draft model may read the last reply in pauses, see `listen`
        self._is_reading_ahead = False
        self._reading = threading.Lock()  # around that it begins and ends, so that nothing else is stopped
        self._key = ""  # of the chat whose words are in the cache
        self._stopping = threading.Event()  # of what is being loaded or written
        self._closing = False
        self._vocabulary = threading.Lock()  # held while tokens are counted, so that no model goes away meanwhile
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def load(self, wanted: Wanted) -> None:
        """Load a model in place of the present one."""
        self._jobs.put(lambda: self._load(wanted))
        self.stop_reading_ahead()

    def load_draft(self, name: str) -> None:
        """Load a draft model between two steps; "none" unloads it."""
        self.change(lambda: self._load_draft(name))

    def choose(self, guess: str) -> None:
        """Let another guesser guess, from the next step on."""
        self.change(lambda: self._choose(guess))

    def refresh(self) -> None:
        """Take up the settings anew: who guesses how far from the next step on, sampling with the next reply."""
        self.change(self._refresh)

    def piece(self, token: int) -> bytes:
        """The bytes of a token; empty while no model runs here. Callable from any thread."""
        with self._vocabulary:
            engines = self._engines
            return b"" if engines is None else engines.target.weights.vocabulary.piece(token)

    @property
    def wanted(self) -> Wanted:
        """What was loaded last."""
        return self._wanted

    @property
    def is_connecting(self) -> bool:
        """Whether a server is being asked what it is, which `stop` ends."""
        return self._connecting is not None

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
            if self._is_reading_ahead and (session := self._session) is not None:
                session.stop()

    def rewrite(self, job: EngineJob) -> None:
        """Rewrite files or a part of one, or plan that, after everything asked before."""
        self._jobs.put(lambda: self._rewrite(job))
        self.stop_reading_ahead()

    def stop(self) -> None:
        """Stop the reply after its present step, or the loading."""
        self._stopping.set()
        if (server := self._connecting) is not None:
            server.stop()
        if (session := self._session) is not None:
            session.stop()

    def count(self, text: str) -> int | None:
        """How many tokens a text has; None while no model is loaded. Callable from any thread."""
        with self._vocabulary:
            session = self._session
            return None if session is None else session.model.count(text)

    def close(self) -> bool:
        """End the thread; False where the engine is inside something that cannot be stopped."""
        self._closing = True
        self.stop()
        self._jobs.put(None)
        self._thread.join(_CLOSE_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None and not self._closing:
            try:
                job()
            except Exception as error:
                self._post(Trouble(in_one_line(error)))
            self._use_pause()
        self._unload()

    # Models.

    def _load(self, wanted: Wanted) -> None:
        from specchat.loading import EngineOptions
        from specchat.shelf import Shelf, is_path

        self._stopping.clear()
        if wanted.endpoint is not None:
            self._connect(wanted, wanted.endpoint)
            return
        shelf = Shelf(lambda text: self._post(Trouble(text)))
        name = wanted.model or shelf.catalogue.default_target
        if is_path(name):
            path = Path(name).expanduser()
            title = path.stem
        else:
            model = shelf.catalogue.find(name)
            path, title = shelf.store.path(model), model.title
            if not shelf.store.has(model):
                draft = shelf.paired_draft(name)
                missing = [m for m in (model, draft) if m is not None and not shelf.store.has(m)]
                self._post(ModelMissing(name, draft.id if draft else None, sum(m.file.size for m in missing)))
                return
        options = EngineOptions(wanted.n_ctx, wanted.n_threads or decoding_threads(), wanted.cache_type)
        before, self._wanted = self._wanted, replace(wanted, model=name)
        had = self._session is not None
        self._unload()
        try:
            self._open(self._harmless(shelf, path, title), title, options)
        except Exception as error:
            self._post(Trouble(in_one_line(error), fatal_to="" if had else "model"))
            if had and (before.endpoint is not None or before.model not in (None, name)):
                self._load(before)  # the chat goes on with what there was
            return
        self._equip(shelf, wanted)
        self._ready(title)

    def _connect(self, wanted: Wanted, endpoint: Endpoint) -> None:
        """Ask a server what it is; from then on it answers. What there was before stays until it has said so."""

        def tell_server(server: Server) -> None:
            self._connecting = server

        try:
            session, loaded = connected(endpoint, wanted.model, self._settings(), tell_server)
            if self._stopping.is_set():
                raise Interrupted
        except Exception as error:
            stopped = f"connecting to {endpoint.host} was stopped"
            said = stopped if self._stopping.is_set() else in_one_line(error)
            self._post(Trouble(said, fatal_to="" if self._session is not None else "model"))
            return
        finally:
            self._connecting = None
        self._unload()
        self._wanted = wanted
        with self._vocabulary:
            self._session = session
        self._post(ModelReady(loaded))

    def _open(self, path: Path, title: str, options: Any) -> None:
        from specchat.kept import kept_prices, kept_survival
        from specchat.loading import load_engines
        from specchat.session import ChatSession
        from speculation.llama import EngineLog

        shown = -1.0

        def progress(done: float) -> bool:  # called many times a second, also while steps are timed
            nonlocal shown
            if done - shown >= 0.01 or (done == 1.0 and shown != done):
                shown = done
                self._post(LoadProgress(title, done))
            return not (self._stopping.is_set() or self._closing)

        engines = load_engines(path, options, EngineLog(), progress, kept_prices())
        session = ChatSession(engines, self._settings())
        session.take_up(kept_survival().get(engines.target.weights.name))
        with self._vocabulary:
            self._engines, self._session, self._here = engines, session, session

    def _harmless(self, shelf: Shelf, path: Path, title: str, target: LlamaModel | None = None) -> Path:
        """The path to load a file by, after a trial unless somebody vouches for it. Raises what `tried` does.

        `target`: for which what the file holds would guess.
        """
        from specchat.kept import kept_trials
        from specchat.trial import NOTE, tried, vouched_for

        if vouched_for(path, shelf.catalogue.models, shelf.store):
            return path
        shown = -1.0

        def progress(done: float) -> bool:
            nonlocal shown
            if done - shown >= 0.01:
                shown = done
                self._post(LoadProgress(title, done, NOTE))
            return not (self._stopping.is_set() or self._closing)

        return tried(path, kept_trials(), progress, target)

    def _equip(self, shelf: Shelf, wanted: Wanted) -> None:
        """Draft and guesser as wanted, as far as they are here."""
        session = self._here
        assert session is not None
        if wanted.draft not in ("auto", "none") or wanted.guess == "draft":
            try:
                self._load_draft(wanted.draft, shelf)
            except Exception as error:
                self._post(Trouble(in_one_line(error)))
        self._choose(wanted.guess)

    def _load_draft(self, name: str, shelf: Shelf | None = None) -> None:
        from specchat.session import Guess
        from specchat.shelf import Shelf, is_path

        engines, session = self._engines, self._here
        if engines is None or session is None:
            return
        if name == "none":
            if session.guess in (Guess.DRAFT, Guess.EAGLE3):
                session.guess = Guess.AUTO
            engines.drop_draft()
            session.guess = session.guess  # takes the draft model out of the engine's guessers
        else:
            shelf = shelf or Shelf(lambda _: None)  # what is wrong with it was told when the target was loaded
            if name == "auto":
                paired = None if self._wanted.model is None else shelf.paired_draft(self._wanted.model)
                if paired is None:
                    raise ValueError("the catalogue knows no draft for this model; choose one in the settings (F2)")
                name = paired.id
            path = Path(name).expanduser() if is_path(name) else shelf.store.path(shelf.catalogue.find(name))
            if not is_path(name) and not shelf.store.has(shelf.catalogue.find(name)):
                raise ValueError(f"{name} is not here yet: fetch it in the models screen (Ctrl+L)")
            self._stopping.clear()  # what was stopped before is not meant
            engines.load_draft(self._harmless(shelf, path, path.stem, engines.target))
            session.guess = Guess.DRAFT if session.guess is Guess.EAGLE3 else session.guess  # or what stands in for it
        self._ready(None)

    def _choose(self, guess: str) -> None:
        from specchat.session import Guess

        session = self._here
        if session is None:  # a server decides itself who guesses
            return
        try:
            if guess == Guess.DRAFT and session.engines.draft_name is None:
                self._load_draft("auto")
            session.guess = Guess(guess)
        except Exception as error:
            self._post(Trouble(f"guess {session.guess} as before: {in_one_line(error)}", guess=str(session.guess)))

    def _refresh(self) -> None:
        if self._session is not None:
            self._session.settings = self._settings()
            self._session.guess = self._session.guess  # guessers and lengths as they are set now

    def _ready(self, title: str | None) -> None:
        engines, session = self._engines, self._here
        assert engines is not None
        assert session is not None
        weights = engines.target.weights
        self._title = title or self._title
        self._post(
            ModelReady(
                Loaded(
                    name=weights.name,
                    title=self._title,
                    draft=engines.draft_name,
                    back_end=weights.back_end,
                    n_ctx=engines.target.n_ctx,
                    size_bytes=weights.size_bytes,
                    load_s=engines.load_s,
                    notices=tuple(session.notices),
                    can_guess=engines.target.can_rewind,
                    own=engines.own,
                )
            )
        )

    def _unload(self) -> None:
        from specchat.kept import kept_survival

        self._save_cache()
        with self._vocabulary:
            engines, session, here = self._engines, self._session, self._here
            self._engines = self._session = self._here = None
        if here is not None:
            kept_survival().put(here.engines.target.weights.name, here.learned())
        if engines is not None:
            engines.close()
        elif session is not None:
            session.close()

    def _take_changes(self) -> None:
        while self._changes:
            try:
                self._changes.popleft()()
            except Exception as error:
                self._post(Trouble(in_one_line(error)))

    # Replies and rewrites.

    def _rewrite(self, job: EngineJob) -> None:
        if self._session is None:
            job.refuse(self._post, NO_MODEL)
            return
        self._stopping.clear()
        # A rewrite is as long as its file, whatever the limit of replies.
        self._session.settings = replace(self._settings(), max_tokens=None)
        try:
            job.run(self._session, self._post, self._take_changes)
        finally:
            self._session.settings = self._settings()

    def _write(self, request: Request) -> None:
        self._listens = False
        session = self._session
        if session is None:
            self._post(Refused(request.turn, NO_MODEL, None))
            return
        self._stopping.clear()
        if request.key != self._key:
            self._save_cache()
        session.messages = list(request.history)
        if request.kind == "check":
            if self._here is not None:
                self._check(self._here, request)
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
            here = self._here
            if here is not None:
                self._take_up(here, request.key)
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
        session = self._here
        if session is None:  # to a server nothing goes that is not sent
            return
        messages, key, settled = ahead
        if key != self._key:
            self._save_cache()
            session.messages = list(messages[:-1])
            self._take_up(session, key)
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
        session = self._here
        if not self._listens or session is None:
            return
        batches = session.shadow()
        with self._reading:
            if not self._jobs.empty() or self._closing:
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

    def _take_up(self, session: ChatSession, key: str) -> None:
        """Go on from the saved cache of a chat that comes to the screen, where that is faster than reading it."""
        if key and key != self._key:
            from specchat.resume import resume_state
            from specchat.states import kept_states

            resume_state(session, kept_states(), key)
        self._key = key

    def _save_cache(self) -> None:
        """Save the cache of the chat that leaves the screen, where reading it again would take long."""
        session, key, self._key = self._here, self._key, ""
        if key and session is not None:
            from specchat.resume import keep_state
            from specchat.states import kept_states

            keep_state(session, kept_states(), key)

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
