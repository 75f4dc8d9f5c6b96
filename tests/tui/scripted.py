"""An engine for tests of the screen: the app's own thread class with a script in place of a model. Nothing runs beside
the test: what a request brings is posted before `write` returns, or step by step where the test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from specchat.conversation import Message, Role
from specchat.exactness import follows_exactly
from specchat.live import Live, LiveFigures
from specchat.provenance import Author, Origin, Span
from specchat.session import Checked, Reply
from specchat.settings import Settings, SettingsFile
from specchat.tui.app import SpecchatApp
from specchat.tui.engine_thread import EngineThread
from specchat.tui.messages import CheckEnded, Ended, Figures, Grew, Loaded, ModelReady, ReadingShown, Refused
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from specchat.tui.streaming import Request
from speculation.controllers.base import Plan, Priced
from speculation.stats import totals
from speculation.types import PLAIN, Finish, Step

LOADED = Loaded(
    "qwen2.5-coder-1.5b", "Qwen2.5-Coder 1.5B", "qwen2.5-coder-0.5b", "CPU", 8192, 1_117_000_000, 1.2, (), True
)
PLAIN_S = 0.030


@dataclass(frozen=True, slots=True)
class Piece:
    """What one step of the script writes."""

    text: str
    guesser: str = PLAIN
    accepted: int = 0
    drafted: int = 0
    author: Author = Author.MODEL
    origin: Origin | None = None


def words(text: str) -> list[Piece]:
    """A script of plain steps, a word each."""
    return [Piece(word) for word in text.splitlines(keepends=True) for word in _words(word)]


def _words(line: str) -> list[str]:
    parts = line.split(" ")
    return [part + " " for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def mixed(text: str) -> list[Piece]:
    """A script in which every third step copies and every fifth is drafted."""
    pieces = words(text)
    kinds = {
        0: ("lookup", Author.TURN),
        1: (PLAIN, Author.MODEL),
        2: ("draft", Author.DRAFT),
        3: ("lookup", Author.FILE),
    }
    made = []
    for i, piece in enumerate(pieces):
        guesser, author = kinds[i // 3 % 4]
        origin = Origin(author, "notes.md", 14, 1, 0) if author in (Author.TURN, Author.FILE) else None
        made.append(piece if guesser == PLAIN else Piece(piece.text, guesser, 2, 3, author, origin))
    return made


@dataclass
class Script:
    """What the engine will answer, reply by reply; the last one is repeated."""

    replies: list[list[Piece]] = field(default_factory=lambda: [words("An answer.")])
    steps_at_once: int | None = None  # None: the whole reply; else the test calls `ScriptedEngine.go`
    refuse: str = ""
    checked: Checked | None = None


class ScriptedEngine(EngineThread):
    """See the module."""

    def __init__(self, post: Callable[[Any], object], settings: Callable[[], Any], script: Script) -> None:
        super().__init__(post, settings)
        self.script = script
        self.requests: list[Request] = []
        self.chosen: list[str] = []
        self.drafts: list[str] = []
        self.ahead: list[list[str]] = []
        self.listened = 0
        self.loads: list[Wanted] = []
        self.refreshed = 0
        self.stopped = False
        self._writing: Iterator[None] | None = None
        self._count = 0
        self._live: Live | None = None

    def start(self) -> None:
        """No thread."""

    def load(self, wanted: Wanted) -> None:
        self.loads.append(wanted)
        self._post(ModelReady(LOADED))

    def load_draft(self, name: str) -> None:
        self.drafts.append(name)

    def choose(self, guess: str) -> None:
        self.chosen.append(guess)

    def refresh(self) -> None:
        self.refreshed += 1

    def count(self, text: str) -> int | None:
        return len(text.split())

    def piece(self, token: int) -> bytes:
        return f"<{token}>".encode()

    def read_ahead(self, messages: Sequence[Message], key: str, settled: str = "") -> None:
        self.ahead.append([message.text for message in messages])

    def listen(self) -> None:
        self.listened += 1

    def stop(self) -> None:
        self.stopped = True
        if self._writing is not None:
            self.go()

    def close(self) -> bool:
        return True

    def write(self, request: Request) -> None:
        self.requests.append(request)
        self.stopped = False
        if request.kind == "check":
            self._post(CheckEnded(request.turn, self.script.checked))
            return
        pieces = self.script.replies[min(self._count, len(self.script.replies) - 1)]
        self._count += 1
        self._writing = self._write_all(request, pieces)
        self.go(self.script.steps_at_once)

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def go(self, steps: int | None = None) -> None:
        """Write some more steps, or all that are left."""
        if self._writing is not None:
            for _ in islice(self._writing, steps):
                pass
            if self._live is not None:
                self._post(Figures(self._live))

    def _write_all(self, request: Request, pieces: Sequence[Piece]) -> Iterator[None]:
        self._post(ReadingShown(request.turn, 0, 120, 40, None))
        if self.script.refuse:
            self._post(Refused(request.turn, self.script.refuse, None))
            self._writing = None
            return
        settings = self._settings()
        exact = follows_exactly(settings.rule, settings.sampling.temperature)
        figures = LiveFigures("auto", PLAIN_S, LOADED.n_ctx or 0, exact=exact)
        steps: list[Step] = []
        spans: list[Span] = []
        who: dict[Author, int] = {}
        at, text = len(request.begun), request.begun
        for i, piece in enumerate(pieces):
            if self.stopped:
                break
            n = piece.accepted + 1
            last = i == len(pieces) - 1
            step = Step(
                piece.guesser, piece.drafted, min(n, piece.drafted), piece.accepted, tuple(range(n)), 120 + i,
                0.0001, PLAIN_S * (1 + 0.4 * piece.drafted), 0.0002, finish=Finish.END if last else None,
            )  # fmt: skip
            steps.append(step)
            span = Span(at, at + len(piece.text), piece.author, i, piece.origin)
            spans.append(span)
            who[piece.author] = who.get(piece.author, 0) + piece.accepted
            who[Author.MODEL] = who.get(Author.MODEL, 0) + 1
            text += piece.text
            plan = Plan(piece.guesser, piece.drafted, None, "the last 14 tokens match: and so on",
                        (Priced(PLAIN, 0, 1.0, PLAIN_S), Priced("lookup", 8, 6.1, 2.4 * PLAIN_S)))  # fmt: skip
            figures.add(step, plan)
            if request.keep is not None:
                request.keep(piece.text, step, (span,))
            self._post(Grew(request.turn, piece.text, (span,), max(0, at // 2)))
            self._live = figures.snapshot(context_tokens=120 + i, memory_bytes=1_600_000_000, who=who)
            at += len(piece.text)
            yield
        self._writing = None
        counted = totals(steps)
        finish = None if self.stopped else Finish.END
        reply = Reply(
            text[len(request.begun) :], finish, 7, counted, tuple(steps), 120, 40, 80, 1.0, 1.1, PLAIN_S, exact=exact
        )
        said = Message(Role.ASSISTANT, text) if steps else None
        self._post(Ended(request.turn, reply, said, tuple(spans)))


def app_on(
    tmp_path: Path,
    script: Script | None = None,
    settings: Settings | None = None,
    history: Path | None = None,
    *,
    is_private: bool = False,
    resume: int | None = None,
) -> SpecchatApp:
    """The app on a script, in a folder of its own, at noon; `history` is where it keeps chats."""
    file = SettingsFile(tmp_path / "config.toml")
    chosen = settings or Settings()
    script = script or Script()
    return SpecchatApp(
        Start(
            chosen, chosen, file, Wanted(guess=chosen.guess.mode), history=history, is_private=is_private, resume=resume
        ),
        engine=lambda post, reply_settings: ScriptedEngine(post, reply_settings, script),
        now=lambda: datetime(2026, 11, 29, 12, 4),
        folder=tmp_path,
    )


def engine_of(app: SpecchatApp) -> ScriptedEngine:
    """The scripted engine of an app."""
    assert isinstance(app.engine, ScriptedEngine)
    return app.engine
