"""Who answers: models that run here or a server, and how they come to do so. In the engine's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from specchat.errors import in_one_line
from specchat.machine import decoding_threads
from specchat.tui.connecting import connected
from specchat.tui.messages import Loaded, LoadProgress, ModelMissing, ModelReady, Trouble
from speculation.types import Interrupted

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.dialogue import Dialogue
    from specchat.loading import Engines
    from specchat.remote.client import Server
    from specchat.session import ChatSession, ReplySettings
    from specchat.settings.endpoints import Endpoint
    from specchat.shelf import Shelf
    from speculation.llama import LlamaModel


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


class Seat:
    """The place of who answers, and the cache of the chat that is in it.

    Only `piece`, `count`, `stop` and the reading of `session` are for other threads. Without a model, or with a server
    in it, `here` is None.
    """

    def __init__(self, post: Callable[[Message], object], settings: Callable[[], ReplySettings]) -> None:
        self._post = post
        self._settings = settings
        self.session: Dialogue | None = None
        self.here: ChatSession | None = None  # the same, where its model runs here
        self.wanted = Wanted()  # what was loaded last
        self.stopping = threading.Event()  # of what is being loaded or written
        self.is_closing = False
        self.key = ""  # of the chat whose words are in the cache
        self._engines: Engines | None = None
        self._connecting: Server | None = None
        self._title = ""  # of the loaded model
        self._vocabulary = threading.Lock()  # held while tokens are counted, so that no model goes away meanwhile

    @property
    def is_connecting(self) -> bool:
        """Whether a server is being asked what it is, which `stop` ends."""
        return self._connecting is not None

    def stop(self) -> None:
        """Stop what is being loaded, connected to or written."""
        self.stopping.set()
        if (server := self._connecting) is not None:
            server.stop()
        if (session := self.session) is not None:
            session.stop()

    def piece(self, token: int) -> bytes:
        """The bytes of a token; empty while no model runs here."""
        with self._vocabulary:
            engines = self._engines
            return b"" if engines is None else engines.target.weights.vocabulary.piece(token)

    def count(self, text: str) -> int | None:
        """How many tokens a text has; None while no model is loaded."""
        with self._vocabulary:
            session = self.session
            return None if session is None else session.model.count(text)

    def load(self, wanted: Wanted) -> None:
        """Load a model in place of the present one, or connect to a server; the screen hears how it goes."""
        from specchat.loading import EngineOptions
        from specchat.shelf import Shelf, is_path

        self.stopping.clear()
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
        before, self.wanted = self.wanted, replace(wanted, model=name)
        had = self.session is not None
        self.unload()
        try:
            self._open(self._harmless(shelf, path, title), title, options)
        except Exception as error:
            self._post(Trouble(in_one_line(error), fatal_to="" if had else "model"))
            if had and (before.endpoint is not None or before.model not in (None, name)):
                self.load(before)  # the chat goes on with what there was
            return
        self._equip(shelf, wanted)
        self._ready(title)

    def _connect(self, wanted: Wanted, endpoint: Endpoint) -> None:
        """Ask a server what it is; from then on it answers. What there was before stays until it has said so."""

        def tell_server(server: Server) -> None:
            self._connecting = server

        try:
            session, loaded = connected(endpoint, wanted.model, self._settings(), tell_server)
            if self.stopping.is_set():
                raise Interrupted
        except Exception as error:
            stopped = f"connecting to {endpoint.host} was stopped"
            said = stopped if self.stopping.is_set() else in_one_line(error)
            self._post(Trouble(said, fatal_to="" if self.session is not None else "model"))
            return
        finally:
            self._connecting = None
        self.unload()
        self.wanted = wanted
        with self._vocabulary:
            self.session = session
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
            return not (self.stopping.is_set() or self.is_closing)

        engines = load_engines(path, options, EngineLog(), progress, kept_prices())
        session = ChatSession(engines, self._settings())
        session.take_up(kept_survival().get(engines.target.weights.name))
        with self._vocabulary:
            self._engines, self.session, self.here = engines, session, session

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
            return not (self.stopping.is_set() or self.is_closing)

        return tried(path, kept_trials(), progress, target)

    def _equip(self, shelf: Shelf, wanted: Wanted) -> None:
        """Draft and guesser as wanted, as far as they are here."""
        session = self.here
        assert session is not None
        if wanted.draft not in ("auto", "none") or wanted.guess == "draft":
            try:
                self.load_draft(wanted.draft, shelf)
            except Exception as error:
                self._post(Trouble(in_one_line(error)))
        self.choose(wanted.guess)

    def load_draft(self, name: str, shelf: Shelf | None = None) -> None:
        """Load a draft model; "auto" is the catalogue's, "none" unloads it. Raises ValueError, Refusal, CannotLoad."""
        from specchat.session import Guess
        from specchat.shelf import Shelf, is_path

        engines, session = self._engines, self.here
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
                paired = None if self.wanted.model is None else shelf.paired_draft(self.wanted.model)
                if paired is None:
                    raise ValueError("the catalogue knows no draft for this model; choose one in the settings (F2)")
                name = paired.id
            path = Path(name).expanduser() if is_path(name) else shelf.store.path(shelf.catalogue.find(name))
            if not is_path(name) and not shelf.store.has(shelf.catalogue.find(name)):
                raise ValueError(f"{name} is not here yet: fetch it in the models screen (Ctrl+L)")
            self.stopping.clear()  # what was stopped before is not meant
            engines.load_draft(self._harmless(shelf, path, path.stem, engines.target))
            session.guess = Guess.DRAFT if session.guess is Guess.EAGLE3 else session.guess  # or what stands in for it
        self._ready(None)

    def choose(self, guess: str) -> None:
        """Let another guesser guess; where it cannot be had, the screen hears which one still does."""
        from specchat.session import Guess

        session = self.here
        if session is None:  # a server decides itself who guesses
            return
        try:
            if guess == Guess.DRAFT and session.engines.draft_name is None:
                self.load_draft("auto")
            session.guess = Guess(guess)
        except Exception as error:
            self._post(Trouble(f"guess {session.guess} as before: {in_one_line(error)}", guess=str(session.guess)))

    def refresh(self) -> None:
        """Take up the settings as they are now."""
        if self.session is not None:
            self.session.settings = self._settings()
            self.session.guess = self.session.guess  # guessers and lengths as they are set now

    def _ready(self, title: str | None) -> None:
        engines, session = self._engines, self.here
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

    def unload(self) -> None:
        """Free what is loaded; the cache of the chat and what was learned are kept."""
        from specchat.kept import kept_survival

        self.save_cache()
        with self._vocabulary:
            engines, session, here = self._engines, self.session, self.here
            self._engines = self.session = self.here = None
        if here is not None:
            kept_survival().put(here.engines.target.weights.name, here.learned())
        if engines is not None:
            engines.close()
        elif session is not None:
            session.close()

    def take_up(self, session: ChatSession, key: str) -> None:
        """Go on from the saved cache of a chat that comes to the screen, where that is faster than reading it."""
        if key and key != self.key:
            from specchat.resume import resume_state
            from specchat.states import kept_states

            resume_state(session, kept_states(), key)
        self.key = key

    def save_cache(self) -> None:
        """Save the cache of the chat that leaves the screen, where reading it again would take long."""
        session, key, self.key = self.here, self.key, ""
        if key and session is not None:
            from specchat.resume import keep_state
            from specchat.states import kept_states

            keep_state(session, kept_states(), key)
