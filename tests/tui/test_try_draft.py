"""A draft model is tried on what was said, stopped, and unloaded; the chat that runs is not disturbed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from specchat.chat import Chat
from specchat.context_policy import Policy
from specchat.conversation import Role
from specchat.history.keeper import Keeper
from specchat.kept import Kept
from specchat.loading import EngineOptions, load_engines
from specchat.session import ChatSession, ReplySettings
from specchat.talk import Talk
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import TryEnded, TryMoved
from specchat.tui.replaying import MOST, NONE_YET, ReplayJob, Written, kept_replies, last_replies
from specchat.tui.widgets.status import Status
from speculation.llama import EngineLog
from speculation.sampling import GREEDY
from tests.gguf import tiny
from tests.tui.driving import ask, drive, told
from tests.tui.scripted import app_on


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("try")
    return {
        "target": tiny.write_attention(folder / "target.gguf"),
        "near": tiny.write_attention(folder / "near.gguf", drift=0.05),
        "other": tiny.write_attention(folder / "other.gguf", replace_token=(99, "odd one")),
    }


@pytest.fixture
def session(files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatSession]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prices = Kept(tmp_path / "prices.json")
    engines = load_engines(files["target"], EngineOptions(n_ctx=1024, n_threads=1), EngineLog(), prices=prices)
    yield ChatSession(engines, ReplySettings(sampling=GREEDY, seed=3, max_tokens=80))
    engines.close()


def said_in(session: ChatSession) -> list[Written]:
    chat = Chat()
    for question in ("one two three", "the world", "hello", "return self", "import it"):
        chat.add(Role.USER, question)
        list(session.reply(question))
        message = session.messages[-1]
        chat.add(Role.ASSISTANT, message.text, tokens=message.tokens)
    return last_replies([chat])


def run(job: ReplayJob, session: ChatSession) -> list[Any]:
    posts: list[Any] = []
    job.run(session, posts.append, lambda: None)
    return posts


def test_a_draft_is_tried_on_the_replies_of_a_chat_and_unloaded(session: ChatSession, files: dict[str, Path]) -> None:
    posts = run(ReplayJob(str(files["near"]), None, said_in(session)), session)

    assert posts[-1].text.startswith("on your last 5 replies near would have given ")
    assert posts[-1].text.endswith(" s")
    assert not posts[-1].is_problem
    assert {type(post) for post in posts[:-1]} == {TryMoved}
    assert session.engines.draft is None
    list(session.reply("and on"))
    assert session.messages[-1].text


def test_a_draft_that_does_not_fit_or_is_not_here_says_why(session: ChatSession, files: dict[str, Path]) -> None:
    said = said_in(session)

    unfit, missing, unnamed = (
        run(ReplayJob(name, None, said), session)[-1] for name in (str(files["other"]), "nothing-like-it", "auto")
    )

    assert "odd one" in unfit.text
    assert "nothing-like-it was not tried: there is no model" in missing.text
    assert "the catalogue knows no draft for this model" in unnamed.text
    assert all(each.is_problem for each in (unfit, missing, unnamed))


def test_a_trial_that_is_stopped_says_so_and_is_no_problem(session: ChatSession, files: dict[str, Path]) -> None:
    job = ReplayJob(str(files["near"]), None, said_in(session))
    job.stop()

    (*_, ended) = run(job, session)

    assert "was stopped" in ended.text
    assert not ended.is_problem


def test_the_last_replies_are_those_whose_tokens_are_known_the_newest_last() -> None:
    chats = []
    for number in range(MOST + 2):
        chat = Chat("be brief")
        chat.add(Role.USER, f"question {number}")
        chat.add(Role.ASSISTANT, "answer", tokens=None if number == MOST else (number,))
        chats.append(chat)

    found = last_replies(chats)

    assert len(found) == MOST
    assert [each.tokens for each in found][-2:] == [(MOST - 1,), (MOST + 1,)]
    assert [message.text for message in found[-1].history] == ["be brief", f"question {MOST + 1}"]


def test_kept_replies_of_the_model_are_tried_before_those_of_private_chats(
    session: ChatSession, files: dict[str, Path], tmp_path: Path
) -> None:
    keeper = Keeper(tmp_path / "chats" / "chats.db")
    talk = Talk(session, keeper)
    for question in ("one two three", "the world"):
        talk.ask(question, (), Policy.STOP)
        list(talk.answer())
    name = session.engines.target.weights.name

    found = kept_replies(keeper, name, MOST)
    job = ReplayJob(str(files["near"]), None, found[:1], lambda model, most: kept_replies(keeper, model, most))

    assert [each.history[-1].text for each in found] == ["one two three", "the world"]
    assert kept_replies(keeper, name, 1) == found[1:]
    assert kept_replies(keeper, "another", MOST) == []
    assert run(job, session)[-1].text.startswith("on your last 3 replies near would have given ")
    assert keeper.close()


def test_without_a_reply_there_is_nothing_to_try(session: ChatSession, files: dict[str, Path]) -> None:
    assert run(ReplayJob(str(files["near"]), None, []), session)[-1].text == NONE_YET


class Caught:
    """Takes the jobs of an engine without a thread."""

    def __init__(self, app: SpecchatApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[Any] = []
        monkeypatch.setattr(app.engine, "rewrite", self.jobs.append)


def test_the_app_tries_what_is_named_shows_how_far_it_is_and_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(tmp_path)
    caught = Caught(app, monkeypatch)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "/try small")
        assert told(app)[-1] == "no reply has been written yet to try a draft model on"
        await ask(pilot, "one")
        turn = app.chat_view.last_reply
        assert turn is not None
        turn.tokens = turn.tokens or (1, 2, 3)
        await ask(pilot, "/try small")
        (job,) = caught.jobs
        assert job.draft == "small"
        app._post(TryMoved("small", 0.4))
        await pilot.pause()
        status = app.query_one(Status)
        assert "trying small on your replies: 40%  Esc stops" in str(status.render())
        await ask(pilot, "/try other")
        assert len(caught.jobs) == 1
        await pilot.press("escape")
        assert job._stopped
        app._post(TryEnded("on your last reply small would have given [2.0] \x1b tokens"))
        await pilot.pause()
        assert told(app)[-1] == "on your last reply small would have given [2.0] \u241b tokens"
        await ask(pilot, "/try")
        assert caught.jobs[-1].draft == "auto"

    drive(app, steps)
