"""The engine's thread on tiny random models: what it posts, what it survives, and that it ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from specchat.chat import Chat
from specchat.conversation import Role
from specchat.dialogue import Dialogue
from specchat.provenance import Author
from specchat.session import ReplySettings
from specchat.tui.engine_thread import EngineThread
from specchat.tui.messages import CheckEnded, Ended, Figures, Grew, LoadProgress, ModelReady, Refused, Trouble
from specchat.tui.rewrite_messages import RewriteFailed
from specchat.tui.seat import Wanted
from specchat.tui.streaming import Request
from speculation.sampling import GREEDY
from speculation.types import PLAIN
from tests.gguf import tiny
from tests.specchat.test_trial import Crafted

QUESTION = "one two three one two three one two"
WAIT_S = 60  # a hang is a failure; nothing here takes a second
Kind = TypeVar("Kind")


class Posts:
    """The messages of a thread, in order."""

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.seen: list[Any] = []
        self.on_post: Callable[[Any], None] = lambda message: None

    def post(self, message: Any) -> None:
        self.on_post(message)  # in the engine's thread, between two steps
        self._arrived.put(message)

    def until(self, kind: type[Kind]) -> Kind:
        """The next message of a kind; those before it are kept in `seen`."""
        while True:
            message = self._arrived.get(timeout=WAIT_S)
            self.seen.append(message)
            if isinstance(message, kind):
                return message

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [message for message in self.seen if isinstance(message, kind)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("engine-thread")
    broken = folder / "broken.gguf"
    broken.write_bytes(tiny.write_attention(folder / "whole.gguf").read_bytes()[:5_000])
    return {
        "target": tiny.write_attention(folder / "target.gguf"),
        "near": tiny.write_attention(folder / "near.gguf", drift=0.05),
        "other": tiny.write_attention(folder / "other.gguf", replace_token=(99, "odd one")),
        "recurrent": tiny.write_recurrent(folder / "recurrent.gguf"),
        "broken": broken,
        "crafted": Crafted("llama.block_count", 0).write(folder / "crafted.gguf"),
        "missing": folder / "missing.gguf",
    }


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def posts() -> Posts:
    return Posts()


@pytest.fixture
def engine(posts: Posts) -> Iterator[EngineThread]:
    thread = EngineThread(posts.post, lambda: ReplySettings(sampling=GREEDY, seed=3, max_tokens=60))
    thread.start()
    yield thread
    assert thread.close()


def wanted(path: Path, **others: Any) -> Wanted:
    return Wanted(str(path), n_ctx=1024, n_threads=1, **others)


def asked(question: str = QUESTION) -> tuple[Chat, Request]:
    chat = Chat()
    turn = chat.add(Role.USER, question)
    request = Request(turn=7, kind="reply", history=tuple(chat.messages()), path=tuple(chat.path(turn)))
    return chat, request


def test_a_model_is_loaded_with_progress_and_named(engine: EngineThread, posts: Posts, files: dict[str, Path]) -> None:
    engine.load(wanted(files["target"]))
    loaded = posts.until(ModelReady).loaded
    assert (loaded.name, loaded.n_ctx, loaded.can_guess) == ("target", 1024, True)
    trial = [message.done for message in posts.of(LoadProgress) if message.note]
    assert trial == sorted(trial)  # nobody vouches for this file
    shares = [message.done for message in posts.of(LoadProgress) if not message.note]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert engine.count("hello world")


def test_all_text_arrives_in_order_with_its_authors(engine: EngineThread, posts: Posts, files: dict[str, Path]) -> None:
    engine.load(wanted(files["target"], guess="lookup"))
    engine.write(asked()[1])
    ended = posts.until(Ended)

    text = "".join(message.text for message in posts.of(Grew))
    assert text == ended.reply.text
    assert ended.said is not None
    assert ended.said.text == text
    assert [span.start for span in ended.spans] == [0, *(span.end for span in ended.spans[:-1])]
    assert ended.spans[-1].end == len(text)
    copied = sum(span.end - span.start for span in ended.spans if span.author is not Author.MODEL)
    assert (copied > 0) == (ended.reply.totals.accepted > 0)
    last = posts.of(Figures)[-1].live
    assert last.totals == ended.reply.totals
    assert sum(last.who.values()) == ended.reply.totals.emitted


def test_the_guesser_is_switched_between_two_steps_and_the_text_stays(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"], guess="off"))
    engine.write(asked()[1])
    plain = posts.until(Ended).reply

    def switch(message: Any) -> None:
        if isinstance(message, Grew):
            posts.on_post = lambda _: None
            engine.choose("lookup")

    posts.on_post = switch
    engine.write(asked()[1])
    switched = posts.until(Ended).reply

    guessers = [step.guesser for step in switched.steps]
    assert guessers[0] == PLAIN
    assert "lookup" in guessers
    assert switched.text == plain.text


def test_a_draft_is_loaded_in_mid_reply_and_the_text_and_cache_stay(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"], guess="off"))
    engine.write(asked()[1])
    plain = posts.until(Ended).reply

    def load(message: Any) -> None:
        if isinstance(message, Grew):
            posts.on_post = lambda _: None
            engine.load_draft(str(files["near"]))
            engine.choose("draft")

    posts.on_post = load
    engine.write(asked()[1])
    ended = posts.until(Ended).reply

    assert posts.of(ModelReady)[-1].loaded.draft == "near"
    assert "draft" in [step.guesser for step in ended.steps]
    assert ended.text == plain.text
    engine.load_draft("none")
    assert posts.until(ModelReady).loaded.draft is None
    engine.write(asked()[1])
    assert posts.until(Ended).reply.text == plain.text


def test_a_draft_that_does_not_fit_is_refused_with_the_reason_and_the_chat_goes_on(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"]))
    engine.load_draft(str(files["other"]))
    assert "token 99 is 'odd one'" in posts.until(Trouble).text
    engine.write(asked()[1])
    assert posts.until(Ended).reply.totals.emitted > 0


@pytest.mark.parametrize("name", ["missing", "broken"])
def test_a_model_that_cannot_be_loaded_leaves_the_one_before(
    engine: EngineThread, posts: Posts, files: dict[str, Path], name: str
) -> None:
    engine.load(wanted(files["target"]))
    posts.until(ModelReady)
    engine.load(wanted(files[name]))
    trouble = posts.until(Trouble)
    assert str(files[name].name) in trouble.text
    assert trouble.fatal_to == ""
    assert posts.until(ModelReady).loaded.name == "target"
    engine.write(asked()[1])
    assert posts.until(Ended).reply.totals.emitted > 0


def test_without_a_model_a_question_is_refused_and_the_first_failure_is_told(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["missing"]))
    assert posts.until(Trouble).fatal_to == "model"
    engine.write(asked()[1])
    assert "no model is loaded" in posts.until(Refused).text
    assert engine.count("text") is None


def test_a_question_too_long_for_the_context_is_refused_and_the_next_one_answered(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"]))
    engine.write(asked("word " * 2000)[1])
    assert "the context holds 1024" in posts.until(Refused).text
    engine.write(asked()[1])
    assert posts.until(Ended).reply.totals.emitted > 0


def test_a_stop_lands_between_two_steps_and_what_was_written_stays(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"], guess="off"))
    posts.on_post = lambda message: engine.stop() if isinstance(message, Grew) else None
    engine.write(asked()[1])
    ended = posts.until(Ended)
    assert ended.reply.finish is None
    assert 0 < ended.reply.totals.emitted < 60
    assert ended.said is not None
    assert "".join(message.text for message in posts.of(Grew)) == ended.said.text


def test_a_reply_that_goes_on_places_its_spans_behind_what_was_begun(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"], guess="lookup"))
    chat, request = asked()
    engine.write(request)
    first = posts.until(Ended)
    assert first.said is not None
    begun = first.said
    turn = chat.add(Role.ASSISTANT, begun.text, tokens=begun.tokens)
    history = tuple(chat.messages())
    engine.write(Request(8, "go_on", history, tuple(chat.path(turn)), seed=3, begun=begun.text))
    ended = posts.until(Ended)

    assert ended.said is not None
    assert ended.said.text == begun.text + ended.reply.text
    assert ended.spans[0].start == len(begun.text)
    assert ended.spans[-1].end == len(ended.said.text)


def test_a_check_of_a_reply_finds_it_identical(engine: EngineThread, posts: Posts, files: dict[str, Path]) -> None:
    engine.load(wanted(files["target"], guess="lookup"))
    _, request = asked()
    engine.write(request)
    reply = posts.until(Ended).reply
    tokens = tuple(token for step in reply.steps for token in step.tokens)
    engine.write(Request(7, "check", request.history, request.path, tokens=tokens, seed=reply.seed))
    checked = posts.until(CheckEnded).checked
    assert checked is not None
    assert checked.differs is None
    assert checked.tokens == len(tokens)


def test_copies_may_be_limited_to_some_sources(engine: EngineThread, posts: Posts, files: dict[str, Path]) -> None:
    from dataclasses import replace

    engine.load(wanted(files["target"], guess="lookup"))
    _, request = asked()
    engine.write(replace(request, sources=("file",)))
    assert posts.until(Ended).reply.totals.drafted == 0
    engine.write(request)
    assert posts.until(Ended).reply.totals.drafted > 0


@dataclass
class Limits:
    """A job that only notes how long a reply may become while it runs."""

    seen: list[int | None]

    def refuse(self, post: Callable[[Any], object], text: str) -> None:
        raise AssertionError(text)

    def run(self, session: Dialogue, post: Callable[[Any], object], between_steps: Callable[[], None]) -> None:
        self.seen.append(session.settings.max_tokens)
        post(RewriteFailed(0, "done"))


def test_the_limit_of_replies_does_not_cut_a_rewrite_and_comes_back(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"]))
    posts.until(ModelReady)
    job = Limits([])

    engine.rewrite(job)
    posts.until(RewriteFailed)
    _, request = asked()
    engine.write(request)

    assert job.seen == [None]
    assert posts.until(Ended).reply.totals.emitted <= 60


def test_a_draft_model_listens_in_pauses_until_the_engine_is_wanted(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"]))
    posts.until(ModelReady)
    session, begun, ended = engine._seat.here, threading.Event(), threading.Event()
    assert session is not None

    def shadow() -> Iterator[int]:
        session._stop = False
        return batches()

    def batches() -> Iterator[int]:
        while not session._stop:  # else it would never end
            begun.set()
            yield 1
        ended.set()

    session.shadow = shadow  # type: ignore[method-assign]
    engine.write(asked()[1])
    posts.until(Ended)
    assert not begun.is_set()
    engine.listen()
    assert begun.wait(WAIT_S)

    engine.stop_reading_ahead()  # as when somebody types
    assert ended.wait(WAIT_S)
    begun.clear()
    engine.listen()
    assert begun.wait(WAIT_S)
    engine.write(asked()[1])
    posts.until(Ended)


def test_an_idle_draft_model_has_read_the_reply_when_the_next_question_comes(
    engine: EngineThread, posts: Posts, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specchat.session.was_idle", lambda guesser, steps: True)
    engine.load(wanted(files["target"], draft=str(files["near"])))
    posts.until(ModelReady)
    engine.write(asked()[1])
    posts.until(Ended)
    session, done = engine._seat.here, threading.Event()
    assert session is not None
    assert session.engines.draft is not None
    real = session.shadow

    def shadow() -> Iterator[int]:
        yield from real()
        done.set()

    session.shadow = shadow  # type: ignore[method-assign]
    engine.listen()

    assert done.wait(WAIT_S)
    assert session.engines.draft.n_past == session.context_tokens - 1


def test_a_recurrent_model_says_that_it_cannot_guess(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["recurrent"]))
    loaded = posts.until(ModelReady).loaded
    assert not loaded.can_guess
    assert any("cannot take tokens back" in notice for notice in loaded.notices)
    engine.load_draft(str(files["near"]))
    assert "nothing can guess for it" in posts.until(Trouble).text


@pytest.mark.parametrize("moment", [LoadProgress, Grew])
def test_closing_ends_the_thread_whatever_it_is_at(posts: Posts, files: dict[str, Path], moment: type[Any]) -> None:
    engine = EngineThread(posts.post, lambda: ReplySettings(sampling=GREEDY, seed=3))
    engine.start()
    engine.load(wanted(files["target"]))
    engine.write(asked()[1])
    posts.until(moment)
    assert engine.close()


def test_ten_switches_of_target_and_draft_leave_one_of_each(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    for _ in range(5):
        engine.load(wanted(files["target"], draft=str(files["near"])))
        assert posts.until(ModelReady).loaded.name == "target"
        engine.load(wanted(files["recurrent"]))
        while posts.until(ModelReady).loaded.name != "recurrent":
            pass
    engine.load(wanted(files["target"]))
    while posts.until(ModelReady).loaded.name != "target":
        pass
    engine.write(asked()[1])
    assert posts.until(Ended).reply.totals.emitted > 0


def test_a_crafted_file_crashes_a_process_of_its_own_and_the_chat_goes_on(
    engine: EngineThread, posts: Posts, files: dict[str, Path]
) -> None:
    engine.load(wanted(files["target"]))
    posts.until(ModelReady)

    engine.load(wanted(files["crafted"]))
    assert "makes the engine crash (SIGABRT" in posts.until(Trouble).text
    assert posts.until(ModelReady).loaded.name == "target"
    engine.load_draft(str(files["crafted"]))
    assert "makes the engine crash (SIGABRT" in posts.until(Trouble).text

    engine.write(asked()[1])
    assert posts.until(Ended).reply.text
