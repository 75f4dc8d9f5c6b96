"""What is said in line mode becomes a chat like any other, and is kept as it happens."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from specchat.attachments import Attachment
from specchat.chat import Chat
from specchat.context_policy import DoesNotFit, Policy
from specchat.history import database
from specchat.history.keeper import Keeper
from specchat.history.recorder import Recorder
from specchat.history.records import ChatRecord
from specchat.history.restore import to_chat
from specchat.history.store import Store
from specchat.provenance import Author
from specchat.session import ChatSession, Guess, Reading, Reply, Wrote
from specchat.states import StateFiles
from specchat.talk import Talk
from speculation.types import EngineFailure, Step
from tests.specchat.fake_target import model_on, session_on


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "chats.db"


@pytest.fixture
def keeper(path: Path) -> Iterator[Keeper]:
    keeper = Keeper(path, lambda text: pytest.fail(text))
    yield keeper
    keeper.close()


@pytest.fixture
def session(tmp_path: Path) -> ChatSession:
    return session_on(model_on(tmp_path), seed=1, max_tokens=30)


def kept(path: Path, keeper: Keeper) -> list[ChatRecord]:
    assert keeper.flush()
    with Store.open(path) as store:
        return [store.load(chat.id) for chat in store.chats()]


def said(talk: Talk, question: str) -> Reply:
    talk.ask(question, (), Policy.STOP)
    *_, reply = talk.answer()
    assert isinstance(reply, Reply)
    return reply


def test_turns_tokens_steps_and_who_guessed_are_kept(session: ChatSession, keeper: Keeper, path: Path) -> None:
    session.set_system("be kind.")
    session.guess = Guess.LOOKUP
    talk = Talk(session, keeper)

    first, second = said(talk, "ab ab ab ab ab ab"), said(talk, "again?")

    [record] = kept(path, keeper)
    assert (record.system, record.title, record.model) == ("be kind.", "ab ab ab ab ab ab", "fake")
    assert [turn.text for turn in record.path()] == ["ab ab ab ab ab ab", first.text, "again?", second.text]
    assert [turn.tokens for turn in record.path()] == [turn.tokens for turn in talk.chat.path()]
    for turn, reply in zip(record.path()[1::2], (first, second), strict=True):
        [part] = turn.parts
        assert (part.about.guess, part.about.rule, part.totals.steps) == ("lookup", "coupled", len(reply.steps))
        assert (turn.spans[0].start, turn.spans[-1].end) == (0, len(turn.text))
    authors = {span.author for turn in record.turns for span in turn.spans}
    assert Author.MODEL in authors
    assert authors & {Author.PROMPT, Author.REPLY, Author.TURN}


@pytest.mark.parametrize("sources", [("turn",), ("prompt",), ("reply",), ("file",), ()])
def test_lookups_copy_only_from_what_the_settings_name(
    session: ChatSession, keeper: Keeper, path: Path, sources: tuple[str, ...]
) -> None:
    session.guess = Guess.LOOKUP
    talk = Talk(session, keeper, sources=sources)
    replies = [said(talk, "ab ab ab ab ab ab") for _ in range(2)]

    drafted = sum(step.drafted for reply in replies for step in reply.steps)
    assert bool(drafted) == (sources not in ((), ("file",)))  # there is no file here
    [record] = kept(path, keeper)
    authors = {str(span.author) for turn in record.turns for span in turn.spans}
    assert authors <= {"model", *sources}


def test_an_attachment_stays_one(session: ChatSession, keeper: Keeper, path: Path) -> None:
    talk = Talk(session, keeper)
    talk.ask("why", [Attachment("a.txt", "one two")], Policy.STOP)
    list(talk.answer())

    [record] = kept(path, keeper)
    assert record.turns[0].text == "why"
    assert record.turns[0].attachments == (Attachment("a.txt", "one two"),)


def test_a_reply_is_in_the_store_while_it_is_written(session: ChatSession, keeper: Keeper, path: Path) -> None:
    talk = Talk(session, keeper)
    talk.ask("count", (), Policy.STOP)
    with closing(talk.answer()) as events:
        written = ""
        while len(written) < 5:
            event = next(events)
            written += event.text if isinstance(event, Wrote) else ""
        [record] = kept(path, keeper)
        assert [turn.text for turn in record.path()] == ["count", written]
        assert not record.turns[1].is_finished
        assert record.turns[1].spans[-1].end == len(written)

    [record] = kept(path, keeper)
    assert [turn.text for turn in record.path()] == ["count", written]
    assert record.turns[1].is_finished


@pytest.mark.parametrize("before", [0, 1])
def test_a_question_that_is_stopped_before_its_answer_leaves_no_trace(
    session: ChatSession, keeper: Keeper, path: Path, before: int
) -> None:
    talk = Talk(session, keeper)
    for _ in range(before):
        said(talk, "something")
    talk.ask("never mind", (), Policy.STOP)
    for event in talk.answer():
        if isinstance(event, Reading):
            session.stop()

    assert [turn.text for turn in talk.chat.path()][2 * before :] == []
    assert [len(record.turns) for record in kept(path, keeper)] == [2] * before
    assert said(talk, "well?").text
    assert [len(record.turns) for record in kept(path, keeper)] == [2 * before + 2]


def test_a_question_that_is_too_large_leaves_no_trace(session: ChatSession, keeper: Keeper, path: Path) -> None:
    talk = Talk(session, keeper)

    with pytest.raises(DoesNotFit):
        talk.ask("word " * 1000, (), Policy.STOP)

    assert not talk.chat.turns
    assert kept(path, keeper) == []


def test_what_was_written_before_the_engine_failed_is_kept(
    session: ChatSession, keeper: Keeper, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(session, keeper)
    steps = session._engine.steps

    def failing(**options: object) -> Iterator[Step]:
        yield from islice(steps(**options), 3)  # type: ignore[arg-type]
        raise EngineFailure("out of memory")

    monkeypatch.setattr(session._engine, "steps", failing)
    talk.ask("count", (), Policy.STOP)
    with pytest.raises(EngineFailure):
        list(talk.answer())

    [record] = kept(path, keeper)
    assert len(record.turns[1].text) == 3
    assert record.turns[1].is_finished


def test_a_private_talk_writes_nothing(session: ChatSession, path: Path) -> None:
    keeper = Keeper(None)
    said(Talk(session, keeper), "a secret")

    assert keeper.close()
    assert not path.parent.exists()


def test_another_chat_begins_and_a_stored_one_goes_on(session: ChatSession, keeper: Keeper, path: Path) -> None:
    talk = Talk(session, keeper)
    said(talk, "one")
    talk.begin(Chat("be brief."))
    said(talk, "two")
    [second, first] = kept(path, keeper)
    assert (first.title, second.title, second.system) == ("one", "two", "be brief.")

    again = Talk(session, keeper)
    again.begin(to_chat(first), first)
    reply = said(again, "and then?")

    [record, _] = kept(path, keeper)
    assert [turn.text for turn in record.path()][::2] == ["one", "and then?"]
    assert record.id == first.id
    fresh = session_on(session.engines.target, seed=1, max_tokens=30)  # type: ignore[arg-type]
    fresh.messages = to_chat(first).messages()
    *_, expected = fresh.reply("and then?")
    assert isinstance(expected, Reply)
    assert reply.text == expected.text


def test_the_cache_of_a_chat_that_was_left_is_taken_up_again(
    tmp_path: Path, session: ChatSession, keeper: Keeper, path: Path
) -> None:
    states = StateFiles(tmp_path / "states")
    session._pace = 10.0  # as if the model were large
    talk = Talk(session, keeper, states)
    said(talk, "a long question. " * 10)
    assert keeper.flush()
    talk.leave()

    other = session_on(model_on(tmp_path), seed=1, max_tokens=30)
    other._pace = 10.0
    again = Talk(other, keeper, states)
    [record] = kept(path, keeper)
    again.begin(to_chat(record), record)

    assert said(again, "and?").reused_tokens > 170


def test_a_new_system_prompt_holds_from_the_next_answer_on(session: ChatSession, keeper: Keeper, path: Path) -> None:
    talk = Talk(session, keeper)
    said(talk, "one")
    talk.change_system("be brief.")
    said(talk, "two")

    assert session.messages[0].text == "be brief."
    [record] = kept(path, keeper)
    assert record.system == "be brief."


def test_what_is_said_while_the_store_is_held_by_another_program_is_told_to_be_lost(
    path: Path, session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(path).close()
    trouble: list[str] = []
    monkeypatch.setattr(database, "BUSY_S", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        keeper = Keeper(path, trouble.append)
        said(Talk(session, keeper), "one")
        keeper.finish()

    assert len(trouble) == 1
    assert trouble[0].startswith("chats are not saved: ")
    assert "locked" in trouble[0]


def test_a_lock_that_outlasts_the_end_is_told_once(
    path: Path, session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(path).close()
    trouble: list[str] = []
    monkeypatch.setattr(database, "BUSY_S", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        keeper = Keeper(path, trouble.append)
        said(Talk(session, keeper), "one")
        keeper.flush()
        close = Recorder.close
        monkeypatch.setattr(Recorder, "close", lambda self, timeout_s: not close(self, timeout_s))
        keeper.finish()

    assert len(trouble) == 1


def test_a_disk_that_does_not_answer_at_the_end_is_told(
    path: Path, session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble: list[str] = []
    keeper = Keeper(path, trouble.append)
    said(Talk(session, keeper), "one")
    assert keeper.close()
    monkeypatch.setattr(Recorder, "close", lambda self, timeout_s: False)

    keeper.finish()

    assert len(trouble) == 1
    assert "not saved" in trouble[0]
