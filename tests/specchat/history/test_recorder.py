"""Chats are kept as they happen, by one process or by two, and trouble costs nothing but a line."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.attachments import Attachment
from specchat.chat import Chat
from specchat.conversation import Role
from specchat.history import recorder as recording
from specchat.history.keeping import Action, KeptChat
from specchat.history.packing import unpack_steps
from specchat.history.recorder import Recorder
from specchat.history.records import ChatRecord
from specchat.history.restore import to_chat
from specchat.history.store import Store
from specchat.provenance import Author, Origin, Span
from tests.specchat.history.making import ABOUT, answer, finish, shape, step

LONG_S = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "chats.db"


@pytest.fixture
def trouble() -> list[str]:
    return []


@pytest.fixture
def another(path: Path, trouble: list[str]) -> Iterator[Callable[[], Recorder]]:
    """Makes recorders on one store, as several processes have them; their clocks tick once a look."""
    made = []
    ticks = itertools.count(1000)

    def make() -> Recorder:
        made.append(Recorder(path, trouble.append, lambda: float(next(ticks))))
        return made[-1]

    yield make
    for each in made:
        assert each.close(LONG_S)


@pytest.fixture
def recorder(another: Callable[[], Recorder]) -> Recorder:
    return another()


@pytest.fixture
def kept(recorder: Recorder) -> KeptChat:
    return recorder.keep(Chat("be brief"))


def stored(recorder: Recorder, path: Path, kept: KeptChat) -> ChatRecord:
    assert recorder.flush(LONG_S)
    assert kept.id is not None
    with Store.open(path) as store:
        return store.load(kept.id)


def loaded(recorder: Recorder, path: Path, kept: KeptChat) -> KeptChat:
    """The same chat as another process that opens it has it."""
    record = stored(recorder, path, kept)
    return recorder.keep(to_chat(record), record)


# As it happens.


def test_a_question_is_kept_before_its_reply(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "why?", attachments=[Attachment("a.txt", "text of a file")])
    kept.save()

    record = stored(recorder, path, kept)

    [turn] = record.turns
    assert (turn.text, turn.attachments) == ("why?", (Attachment("a.txt", "text of a file"),))
    assert (record.title, record.system, record.is_named) == ("why?", "be brief", False)


def test_nothing_is_written_before_something_is_said(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.save()
    kept.note(model="qwen", unsent="wh")

    assert recorder.flush(LONG_S)
    with Store.open(path) as store:
        assert store.chats() == []
    assert kept.id is None


def test_a_reply_can_be_read_while_it_is_written(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "why?")
    turn = kept.chat.add(Role.ASSISTANT, "")
    writing = kept.begin_reply(turn, ABOUT)
    writing.step("Be", step(1))
    writing.step("", step(2, 3))
    writing.step("cause", None)

    begun = stored(recorder, path, kept).turns[1]

    assert (begun.text, begun.is_finished, begun.tokens) == ("Because", False, None)
    assert unpack_steps(begun.parts[0].steps) == (step(1), step(2, 3))
    assert (begun.parts[0].totals.emitted, begun.parts[0].about) == (3, ABOUT)


def test_a_reply_is_kept_with_its_figures(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "why?")
    spans = (Span(0, 7, Author.TURN, 0, Origin(Author.TURN, "an earlier question", 1, 1, 0)),)
    turn = answer(kept, "Be", "cause", spans=spans)

    record = stored(recorder, path, kept)
    back = to_chat(record).turn(turn.id)

    assert record.turns[1].is_finished
    assert record.turns[1].spans == spans
    assert (back.text, back.tokens) == ("Because", turn.tokens)
    assert turn.reply is not None
    assert back.reply == replace(turn.reply, text="Because")


def test_a_chat_is_kept_as_it_is_after_any_change(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    chat = kept.chat
    first = chat.add(Role.USER, "one")
    answer(kept, "two")
    chat.branch_from(first)
    other = chat.add(Role.USER, "one, edited")
    answer(kept, "three")
    other.is_pinned = True
    chat.choose(first)
    chat.named = "numbers"
    chat.system = "be long"
    kept.save()

    record = stored(recorder, path, kept)

    assert shape(to_chat(record)) == shape(chat)
    assert record.title == "numbers"


def test_a_reply_that_was_taken_back_leaves_nothing(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "one")
    answer(kept, "two")
    question = kept.chat.add(Role.USER, "three")
    writing = kept.begin_reply(kept.chat.add(Role.ASSISTANT, ""), ABOUT)
    kept.chat.remove(question)
    kept.save()
    writing.step("late", step(1))

    assert [turn.text for turn in stored(recorder, path, kept).turns] == ["one", "two"]


def test_a_reply_that_went_wrong_keeps_what_was_written(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "one")
    turn = kept.chat.add(Role.ASSISTANT, "")
    writing = kept.begin_reply(turn, ABOUT)
    writing.step("half", step(1))
    turn.text = "half"
    writing.end(turn, None)

    reply = stored(recorder, path, kept).turns[1]

    assert (reply.text, reply.is_finished) == ("half", True)


def test_a_reply_that_goes_on_has_two_parts(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "one")
    turn = answer(kept, "two", " three")
    writing = kept.begin_reply(turn, ABOUT)
    writing.step(" four", step(9))

    begun = stored(recorder, path, kept).turns[1]
    finish(writing, turn, " four and")
    ended = stored(recorder, path, kept).turns[1]

    assert (begun.text, begun.is_finished, len(begun.parts)) == ("two three four", False, 2)
    assert (ended.text, ended.is_finished) == ("two three four and", True)
    assert [part.totals.steps for part in ended.parts] == [2, 1]


def test_who_proposed_what_is_known_of_a_reply_that_is_cut_off(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    origin = Origin(Author.TURN, "an earlier question", 1, 1, 0)
    kept.chat.add(Role.USER, "one")
    turn = answer(kept, "two", spans=(Span(0, 3, Author.MODEL, 0, None),))
    writing = kept.begin_reply(turn, ABOUT)
    writing.step(" thr", step(1), (Span(3, 6, Author.TURN, 0, origin), Span(6, 7, Author.MODEL, 0, None)))
    writing.step("", step(2), (Span(7, 9, Author.DRAFT, 1, None),))  # held back
    writing.step("e", step(3), (Span(9, 12, Author.DRAFT, 2, None),))

    begun = stored(recorder, path, kept).turns[1]

    assert begun.text == "two thre"
    assert begun.spans == (
        Span(0, 3, Author.MODEL, 0, None),
        Span(3, 6, Author.TURN, 0, origin),
        Span(6, 7, Author.MODEL, 0, None),
        Span(7, 8, Author.DRAFT, 1, None),
    )


def test_what_is_typed_and_chosen_is_kept_beside(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "one")
    kept.note(unsent="and now", model="qwen", settings={"guess": "auto"})

    record = stored(recorder, path, kept)

    assert (record.unsent, record.model, record.settings) == ("and now", "qwen", {"guess": "auto"})


def test_only_what_is_said_moves_a_chat_to_the_top_of_the_list(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    first = kept.chat.add(Role.USER, "one")
    kept.chat.branch_from(first)
    kept.chat.add(Role.USER, "two")
    kept.save()
    before = stored(recorder, path, kept).changed

    kept.chat.choose(first)
    kept.note(unsent="x")
    assert stored(recorder, path, kept).changed == before

    answer(kept, "three")
    assert stored(recorder, path, kept).changed > before


def test_saving_without_a_change_writes_nothing(recorder: Recorder, kept: KeptChat) -> None:
    written: list[Action] = []
    kept.chat.add(Role.USER, "one")
    kept.save()
    kept._do = written.append

    kept.save()

    assert written == []


def test_stored_chats_are_renamed_deleted_and_put_back(recorder: Recorder, kept: KeptChat, path: Path) -> None:
    kept.chat.add(Role.USER, "one")
    kept.save()
    record = stored(recorder, path, kept)
    recorder.rename(record.id, "another")
    recorder.pin(record.id, is_pinned=True)
    recorder.flush(LONG_S)
    with Store.open(path) as store:
        assert [(chat.title, chat.is_pinned) for chat in store.chats()] == [("another", True)]

        recorder.delete([record.id])
        recorder.flush(LONG_S)
        assert store.chats() == []

        recorder.put(record)
        recorder.flush(LONG_S)
        assert [chat.title for chat in store.chats()] == ["one"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(["ask", "answer", "branch", "choose", "remove", "go on"]), st.integers(0, 99)))
)
def test_whatever_is_done_a_chat_comes_back_as_it_was(
    recorder: Recorder, path: Path, done: list[tuple[str, int]]
) -> None:
    kept = recorder.keep(Chat())
    chat = kept.chat
    chat.add(Role.USER, "first")
    kept.save()
    for verb, number in done:
        turn = chat.turns[number % len(chat.turns)]
        if verb == "ask":
            chat.add(Role.USER, f"question {number}")
        elif verb == "answer" and chat.tip is not None and chat.tip.role is Role.USER:
            answer(kept, f"answer {number}")
        elif verb == "branch":
            chat.branch_from(turn)
            chat.add(Role.USER, f"instead {number}")
        elif verb == "choose":
            chat.choose(turn)
        elif verb == "remove" and len(chat.turns) > 1 and turn.parent is not None:
            chat.remove(turn)
        elif verb == "go on" and turn.role is Role.ASSISTANT:
            finish(kept.begin_reply(turn, ABOUT), turn, " and", " more")
        kept.save()

    assert shape(to_chat(stored(recorder, path, kept))) == shape(chat)


def test_a_chat_goes_on_in_the_same_store_when_its_index_is_damaged(
    recorder: Recorder, kept: KeptChat, path: Path, trouble: list[str]
) -> None:
    kept.chat.add(Role.USER, "one")
    kept.save()
    recorder.flush(LONG_S)
    before = kept.id
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE words_data SET block = x'000000008f5201c818' WHERE id = 10")
        connection.commit()

    kept.chat.add(Role.USER, "two")
    kept.save()

    record = stored(recorder, path, kept)
    assert (record.id, [turn.text for turn in record.turns]) == (before, ["one", "two"])
    assert trouble == []
    with Store.open(path) as store:
        assert len(store.search("two")) == 1


# Two processes.


def test_two_processes_that_answer_one_question_make_two_branches(another: Callable[[], Recorder], path: Path) -> None:
    one, two = another(), another()
    here = one.keep(Chat())
    here.chat.add(Role.USER, "why?")
    here.save()
    one.flush(LONG_S)
    there = loaded(two, path, here)

    answer(here, "because")
    one.flush(LONG_S)
    answer(there, "therefore")
    there.chat.add(Role.USER, "really?")
    there.save()

    chat = to_chat(stored(two, path, here))
    assert [turn.text for turn in chat.siblings(chat.turn(2))] == ["because", "therefore"]
    assert [turn.text for turn in chat.path()] == ["why?", "therefore", "really?"]


def test_replies_that_two_processes_write_at_once_do_not_mix(another: Callable[[], Recorder], path: Path) -> None:
    one, two = another(), another()
    here = one.keep(Chat())
    here.chat.add(Role.USER, "why?")
    here.save()
    one.flush(LONG_S)
    there = loaded(two, path, here)
    turns = [each.chat.add(Role.ASSISTANT, "") for each in (here, there)]
    writings = [each.begin_reply(turn, ABOUT) for each, turn in zip((here, there), turns, strict=True)]
    for n in range(20):
        for writing, name in zip(writings, "ab", strict=True):
            writing.step(f"{name}{n} ", step(n))

    one.flush(LONG_S)
    texts = sorted(turn.text for turn in stored(two, path, here).turns[1:])

    assert texts == ["".join(f"{name}{n} " for n in range(20)) for name in "ab"]


def test_a_chat_that_was_deleted_elsewhere_comes_back_with_the_next_word(
    another: Callable[[], Recorder], path: Path
) -> None:
    one, two = another(), another()
    here = one.keep(Chat())
    here.chat.add(Role.USER, "one")
    answer(here, "two")
    two.delete([_id_of(one, here)])
    two.flush(LONG_S)

    here.chat.add(Role.USER, "three")
    here.save()

    record = stored(one, path, here)
    assert [turn.text for turn in record.turns] == ["one", "two", "three"]
    assert record.turns[1].parts[0].totals.steps == 1


def test_a_reply_survives_that_its_chat_is_deleted_elsewhere(another: Callable[[], Recorder], path: Path) -> None:
    one, two = another(), another()
    here = one.keep(Chat())
    here.chat.add(Role.USER, "one")
    turn = here.chat.add(Role.ASSISTANT, "")
    writing = here.begin_reply(turn, ABOUT)
    writing.step("two", step(1))
    two.delete([_id_of(one, here)])
    two.flush(LONG_S)

    finish(writing, turn, " three", " four")

    assert [turn.text for turn in stored(one, path, here).turns] == ["one", " three four"]


def test_a_branch_below_a_message_that_is_removed_elsewhere_stays(another: Callable[[], Recorder], path: Path) -> None:
    one, two = another(), another()
    here = one.keep(Chat())
    here.chat.add(Role.USER, "one")
    answer(here, "two")
    one.flush(LONG_S)
    there = loaded(two, path, here)
    answer_to = there.chat.add(Role.USER, "three")
    there.save()
    two.flush(LONG_S)

    here.chat.remove(here.chat.turn(2))
    here.save()

    assert answer_to.text in [turn.text for turn in stored(one, path, here).turns]
    assert [turn.text for turn in to_chat(stored(one, path, here)).turns] == ["one", "two", "three"]


def test_a_message_removed_elsewhere_comes_back_when_it_is_answered(
    another: Callable[[], Recorder], path: Path
) -> None:
    one, two = another(), another()
    here = one.keep(Chat())
    here.chat.add(Role.USER, "one")
    answer(here, "two")
    one.flush(LONG_S)
    there = loaded(two, path, here)
    here.chat.remove(here.chat.turn(2))
    here.save()
    one.flush(LONG_S)

    there.chat.add(Role.USER, "three")
    there.save()

    assert [turn.text for turn in to_chat(stored(two, path, here)).path()] == ["one", "two", "three"]


def test_a_writer_waits_for_another_one(another: Callable[[], Recorder], path: Path, trouble: list[str]) -> None:
    recorder = another()
    kept = recorder.keep(Chat())
    kept.chat.add(Role.USER, "one")
    kept.save()
    recorder.flush(LONG_S)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kept.chat.add(Role.USER, "two")
        kept.save()
        assert not recorder.flush(0.1)
        other.execute("ROLLBACK")

    assert len(stored(recorder, path, kept).turns) == 2
    assert trouble == []


# Trouble.


def test_a_store_that_cannot_be_opened_is_said_once_and_tried_again(
    path: Path, trouble: list[str], monkeypatch: pytest.MonkeyPatch, another: Callable[[], Recorder]
) -> None:
    monkeypatch.setattr(recording, "RETRY_S", 0.01)
    path.parent.parent.mkdir(exist_ok=True)
    path.parent.touch()  # a file where the folder should be
    recorder = another()
    kept = recorder.keep(Chat())
    for text in ("one", "two"):
        kept.chat.add(Role.USER, text)
        kept.save()
        recorder.flush(LONG_S)
    assert len(trouble) == 1
    assert trouble[0].startswith("chats are not saved")

    path.parent.unlink()
    kept.chat.add(Role.USER, "three")
    kept.save()

    recorder.flush(LONG_S)
    assert [turn.text for turn in stored(recorder, path, kept).turns] == ["one", "two", "three"]


def test_a_fault_in_one_change_does_not_keep_back_the_others(
    recorder: Recorder, kept: KeptChat, path: Path, trouble: list[str]
) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM turns")
        raise ValueError("a fault of ours")

    kept.chat.add(Role.USER, "one")
    kept.save()
    recorder.do(Action(fails))
    kept.chat.add(Role.USER, "two")
    kept.save()

    assert [turn.text for turn in stored(recorder, path, kept).turns] == ["one", "two"]
    assert trouble == ["something is not saved: a fault of ours"]


def test_a_chat_goes_on_in_a_new_store_when_the_old_one_is_damaged(
    recorder: Recorder, kept: KeptChat, path: Path, trouble: list[str]
) -> None:
    kept.chat.add(Role.USER, "one")
    answer(kept, "two")
    recorder.flush(LONG_S)

    def finds_damage(_: sqlite3.Connection) -> None:
        if not [file for file in path.parent.iterdir() if "damaged" in file.name]:
            path.write_bytes(b"no database at all" * 999)
            error = sqlite3.DatabaseError("database disk image is malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

    recorder.do(Action(finds_damage))
    kept.chat.add(Role.USER, "three")
    kept.save()

    assert [turn.text for turn in stored(recorder, path, kept).turns] == ["one", "two", "three"]
    assert ["moved to" in line for line in trouble] == [True]


def _id_of(recorder: Recorder, kept: KeptChat) -> int:
    assert recorder.flush(LONG_S)
    assert kept.id is not None
    return kept.id
