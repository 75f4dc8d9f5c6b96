"""Chats are kept as they happen, and come back as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from specchat.chat import Chat
from specchat.context_policy import Fitted
from specchat.conversation import Role
from specchat.fitting import FittedTurns
from specchat.history.export import exported
from specchat.history.records import ChatRecord, TurnRecord
from specchat.history.store import Store
from specchat.provenance import Author
from specchat.settings import ContextSettings, HistorySettings, Settings
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import Outgrown
from specchat.tui.notes import Shown
from specchat.tui.screens.ask_line import AskLine
from specchat.tui.screens.chats import ChatScreen
from specchat.tui.screens.line import Line
from specchat.tui.screens.question import Question
from specchat.tui.unsent import Unsent
from specchat.tui.weighing import weighed
from specchat.tui.widgets.chat_list import ChatList
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.settings_priced import PricedField
from tests.tui.driving import Drive, ask, drive, shown, slow, texts, told
from tests.tui.scripted import Script, app_on, engine_of, mixed, words

LONG_S = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "chats.db"


def kept(path: Path) -> list[ChatRecord]:
    with Store.open(path) as store:
        return [store.load(chat.id) for chat in store.chats()]


def said(record: ChatRecord) -> list[str]:
    return [turn.text for turn in record.path()]


def run(app: SpecchatApp, steps: Drive, size: tuple[int, int] = (110, 32)) -> None:
    """Drive an app that keeps chats, and leave it as the command line does."""
    drive(app, steps, size)
    assert app.end_chats()


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Let threads come to their end."""
    for _ in range(400):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"it never came to that: {pilot.app.screen}, {list(pilot.app._notifications)}")


async def open_chats(pilot: Pilot[None], app: SpecchatApp, rows: int) -> ChatScreen:
    await pilot.press("ctrl+s")
    await until(
        pilot, lambda: isinstance(app.screen, ChatScreen) and len(lines(app)) == rows and lines(app)[0] != " ..."
    )
    assert isinstance(app.screen, ChatScreen)
    return app.screen


def lines(app: SpecchatApp) -> list[str]:
    """The rows of the list of chats."""
    return app.screen.query_one(ChatList).shown if app.screen.query(ChatList) else []


def test_a_reply_is_in_the_store_while_it_is_written(tmp_path: Path, path: Path) -> None:
    app = app_on(tmp_path, slow(), history=path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "count")
        engine_of(app).go(3)
        assert app.keeper.flush(LONG_S)
        [record] = kept(path)
        assert said(record) == ["count", "one two three "]
        assert not record.turns[1].is_finished
        engine_of(app).go()
        await pilot.pause()

    run(app, steps)
    [record] = kept(path)
    assert said(record) == ["count", "one two three four five six"]
    assert record.turns[1].is_finished
    assert record.turns[1].parts[0].about.model == "qwen2.5-coder-1.5b"
    assert record.turns[1].parts[0].totals.emitted == 6


def test_a_private_chat_leaves_nothing_and_says_so(tmp_path: Path, path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "a secret")
        app.query_one(Prompt).put("another one")
        app.keep_unsent()
        await pilot.pause()
        assert "private, nothing is kept" in str(app.query_one("#title").render())

    private = app_on(tmp_path, history=path, is_private=True)
    run(private, steps)
    off = app_on(tmp_path, settings=Settings(history=HistorySettings(enabled=False)), history=path)
    run(off, steps)
    assert not path.parent.exists()


def test_a_private_chat_beside_kept_ones_is_left_out(tmp_path: Path, path: Path) -> None:
    app = app_on(tmp_path, history=path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "open word")
        await ask(pilot, "/private")
        await ask(pilot, "secret word")
        await pilot.press("ctrl+n")
        await ask(pilot, "second word")
        await open_chats(pilot, app, 3)
        assert "private" in lines(app)[0]

    run(app, steps)
    assert sorted(record.title for record in kept(path)) == ["open word", "second word"]
    assert b"secret" not in path.read_bytes()


def test_branches_title_pins_and_system_prompt_come_back(tmp_path: Path, path: Path) -> None:
    async def before(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "/system Be short.")
        await ask(pilot, "one")
        await ask(pilot, "/redo")
        await ask(pilot, "/continue")
        await ask(pilot, "/pin")
        await ask(pilot, "/title A name")
        beside.update({turn.id: one for turn, one in app.chat_view.beside(app.chat_view.chat).items()})

    beside: dict[int, Shown] = {}
    script = Script(
        [mixed("first answer here, of many words that come from everywhere"), words("second"), words(" more")]
    )
    app = app_on(tmp_path, script, history=path)
    run(app, before)
    [record] = kept(path)

    async def after(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: bool(texts(app)))
        chat = app.chat_view.chat
        assert texts(app) == shown(app) == ["one", "second more"]
        assert (chat.title, chat.system) == ("A name", "Be short.")
        [_, reply] = chat.path()
        assert reply.is_pinned
        view = app.chat_view.transcript.view(reply.id)
        assert view is not None
        assert view.branch == "pinned  2/2"
        for turn, one in app.chat_view.beside(chat).items():
            expected = beside[turn.id]
            assert (one.spans, one.took, one.continued) == (expected.spans, expected.took, expected.continued)
            assert one.who.startswith(expected.who)
        app.chat_view.transcript.focus()
        await pilot.press("left")
        await pilot.pause()
        assert shown(app)[1].startswith("first answer")

    again = app_on(tmp_path, history=path, resume=record.id)
    run(again, after)
    [record] = kept(path)
    assert said(record)[1].startswith("first answer")  # the version that was chosen last


def test_a_reply_that_was_cut_off_comes_back_as_far_as_it_was(tmp_path: Path, path: Path) -> None:
    async def before(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "count")
        engine_of(app).go(2)

    written = Script([mixed("one two three four")], steps_at_once=0)
    run(app_on(tmp_path, written, history=path), before)

    async def after(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: bool(texts(app)))
        assert texts(app) == ["count", "one two "]
        view = app.chat_view.transcript.views[-1]
        assert "not finished" in view.figures
        [_, reply] = app.chat_view.chat.path()
        spans = app.chat_view.beside(app.chat_view.chat)[reply].spans
        assert [(span.start, span.end, span.author) for span in spans] == [(0, 4, Author.TURN), (4, 8, Author.TURN)]
        await ask(pilot, "/continue")
        await ask(pilot, "and on")

    [record] = kept(path)
    run(app_on(tmp_path, Script([words("three")]), history=path, resume=record.id), after)
    [record] = kept(path)
    assert said(record) == ["count", "one two three", "and on", "three"]


def test_the_list_finds_messages_and_opens_them_there(tmp_path: Path, path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "about apples")
        await pilot.press("ctrl+n")
        await ask(pilot, "about pears")
        await open_chats(pilot, app, 2)
        await pilot.press(*"harvest")
        await until(pilot, lambda: len(lines(app)) == 1)
        assert "about apples" in lines(app)[0]
        await pilot.press("enter")
        await until(pilot, lambda: texts(app)[:1] == ["about apples"])
        current = app.chat_view.transcript.current
        assert current is not None
        assert current.text == "the harvest is in"
        await open_chats(pilot, app, 2)
        await pilot.press(*"zzz")
        await until(pilot, lambda: not lines(app))
        await pilot.press("escape")
        await until(pilot, lambda: len(lines(app)) == 2)

    script = Script([words("the harvest is in"), words("nothing")])
    run(app_on(tmp_path, script, history=path), steps)


def test_a_chat_is_renamed_pinned_deleted_and_taken_back(tmp_path: Path, path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "first")
        await pilot.press("ctrl+n")
        await ask(pilot, "second")
        await open_chats(pilot, app, 2)
        await pilot.press("tab", "down")
        assert "first" in lines(app)[1]
        await pilot.press("r", *" things", "enter")
        await until(pilot, lambda: "first things" in lines(app)[1])
        await pilot.press("p")
        await until(pilot, lambda: "first things" in lines(app)[0] and lines(app)[0].startswith("*"))
        await pilot.press("end", "d")
        await pilot.pause()
        await pilot.press("right", "enter")
        await until(pilot, lambda: len(lines(app)) == 1 and "first things" in lines(app)[0])
        assert texts(app) == []  # it was the open one
        assert "second is deleted; u takes that back" in str(app.screen.query_one("#chats-news", Static).render())
        await pilot.press("u")
        await until(pilot, lambda: len(lines(app)) == 2)

    run(app_on(tmp_path, history=path), steps)
    assert [(record.title, record.is_pinned) for record in kept(path)] == [("first things", True), ("second", False)]
    assert [said(record)[-1] for record in kept(path)] == ["An answer.", "An answer."]


def test_what_a_killed_app_had_not_sent_is_in_the_box_again(tmp_path: Path, path: Path) -> None:
    dead = Unsent(path)
    dead.keep("half a question")
    live = Unsent(path)
    live.keep("of a process that runs")
    dead.close()

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: app.query_one(Prompt).text == "half a question")
        app.query_one(Prompt).put("another half")
        app.keep_unsent()
        await until(pilot, lambda: any("another" in file.read_text() for file in path.parent.glob("unsent-*.txt")))

    run(app_on(tmp_path, history=path), steps)
    assert Unsent(path).take_up() == "another half"
    live.keep("")
    live.close()
    assert not list(path.parent.glob("unsent-*"))


def test_a_store_that_cannot_be_used_is_said_once_and_the_chat_goes_on(tmp_path: Path, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"")
    path.parent.chmod(0o700)
    path.unlink()
    path.mkdir()  # no file at all

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        await ask(pilot, "two")
        app.keeper.flush(LONG_S)
        await until(pilot, lambda: bool(told(app)))
        assert texts(app) == ["one", "An answer.", "two", "An answer."]
        assert len([line for line in told(app) if "chats" in line]) == 1

    drive(app_on(tmp_path, history=path), steps)


def test_a_chat_is_exported_to_a_file_that_is_not_there_yet(tmp_path: Path, path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "Apples, and pears?")
        await ask(pilot, "/export")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.focused is not None)
        await pilot.press("enter")
        await until(pilot, lambda: (tmp_path / "apples-and-pears.md").exists())
        await ask(pilot, "/export apples-and-pears.md")
        await until(pilot, lambda: isinstance(app.screen, Question) and app.screen.focused is not None)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await ask(pilot, "/export talk.html")
        await until(pilot, lambda: (tmp_path / "talk.html").exists())
        await ask(pilot, "/private")
        await ask(pilot, "a secret")
        await ask(pilot, "/export secret.json")
        await until(pilot, lambda: (tmp_path / "secret.json").exists())

    run(app_on(tmp_path, history=path), steps)
    assert "An answer." in (tmp_path / "apples-and-pears.md").read_text()
    assert "a secret" in (tmp_path / "secret.json").read_text()
    assert len(kept(path)) == 1


def test_the_chats_of_a_file_are_taken_up_in_the_list(tmp_path: Path, path: Path) -> None:
    with Store.open(tmp_path / "other" / "chats.db") as store:
        store.put(ChatRecord(title="from elsewhere", turns=(TurnRecord(1, None, Role.USER, "hello"),), latest=1, tip=1))
        (tmp_path / "talk.json").write_text(exported(store.load(1), "json"))
    (tmp_path / "broken.json").write_text("{")

    async def take_up(pilot: Pilot[None], app: SpecchatApp, name: str, expected: str) -> None:
        news = app.screen.query_one("#chats-news", Static)
        await pilot.press("i")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.focused is not None)
        app.screen.query_one(Line).value = str(tmp_path / name)
        await pilot.press("enter")
        await until(pilot, lambda: expected in str(news.render()))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "first")
        await open_chats(pilot, app, 1)
        await pilot.press("tab")
        await take_up(pilot, app, "talk.json", "1 chat taken up")
        await until(pilot, lambda: len(lines(app)) == 2)
        await take_up(pilot, app, "talk.json", "0 chats taken up; 1 was here already")
        await take_up(pilot, app, "broken.json", "broken.json, line 1")
        await take_up(pilot, app, "nothing.json", "No such file")

    run(app_on(tmp_path, history=path), steps)
    assert sorted(record.title for record in kept(path)) == ["first", "from elsewhere"]


def test_the_settings_say_what_a_temperature_costs(tmp_path: Path, path: Path) -> None:
    talk = " ".join(f"word{n}" for n in range(60))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for temperature in ("0.2", "1.0"):
            await ask(pilot, f"/temp {temperature}")
            await ask(pilot, "go on")
        assert app.keeper.flush(LONG_S)
        await pilot.press("f2")
        await pilot.pause()
        await pilot.press("ctrl+pagedown")
        field = app.query_one(PricedField)
        await until(pilot, lambda: "costs 60% of tokens per step here (1.0, at 0.2 2.5)" in hint(field))
        field.query_one(Input).value = "0.5"
        await until(pilot, lambda: hint(field) == "")
        field.query_one(Input).value = "0.2"
        await until(pilot, lambda: hint(field) == "2.5 tokens per step here")

    def hint(field: PricedField) -> str:
        return str(field.query_one(".hint", Static).render()) if field.query_one(".hint").display else ""

    run(app_on(tmp_path, Script([mixed(talk), words(talk)]), history=path), steps)


def test_a_list_of_ten_thousand_chats_is_read_as_it_is_looked_at(tmp_path: Path, path: Path) -> None:
    with Store.open(path) as store:
        store.put_new(ChatRecord(title=f"chat {i}", changed=float(i + 1), key=str(i)) for i in range(10_000))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("ctrl+s")
        await until(
            pilot, lambda: isinstance(app.screen, ChatScreen) and app.screen.query_one(ChatList).row is not None
        )
        chats = app.screen.query_one(ChatList)
        await pilot.press("tab", "end")
        await until(pilot, lambda: chats.row is not None)
        assert chats.at == 9_999
        assert len(chats._pages) == 2
        assert chats.row.title == "chat 0"  # type: ignore[union-attr]

    run(app_on(tmp_path, history=path), steps)


def test_old_chats_are_deleted_when_the_settings_say_so(tmp_path: Path, path: Path) -> None:
    with Store.open(path) as store:
        store.put(ChatRecord(title="old", changed=1.0))
        store.put(ChatRecord(title="pinned", changed=1.0, is_pinned=True))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: bool(told(app)))
        assert told(app) == ["1 chat is deleted, whose last word is 30 days old (history.keep_days)"]

    run(app_on(tmp_path, settings=Settings(history=HistorySettings(keep_days=30)), history=path), steps)
    assert [record.title for record in kept(path)] == ["pinned"]


async def outgrow(pilot: Pilot[None], app: SpecchatApp) -> None:
    """A question for which the first round has to go."""
    await ask(pilot, "third")
    path = app.chat_view.chat.path()
    fitted = Fitted((2, 3, 4), (0, 1), 300, newly_dropped=(0, 1), rounds=1, freed=120)
    app.chat_view.post_message(Outgrown(path[-1].id, FittedTurns(fitted, tuple(path[:2]), (), {}, 0)))
    await pilot.pause()


def after_two_rounds(tmp_path: Path, path: Path, steps: Drive, policy: str = "ask") -> None:
    script = Script([words("one.")], steps_at_once=0)

    async def all_steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for text in ("first", "second"):
            await ask(pilot, text)
            engine_of(app).go()
            await pilot.pause()
        await outgrow(pilot, app)
        await steps(pilot, app)

    run(app_on(tmp_path, script, Settings(context=ContextSettings(policy=policy)), path), all_steps)


def test_when_the_context_is_full_the_user_says_what_happens(tmp_path: Path, path: Path) -> None:
    async def dropped(pilot: Pilot[None], app: SpecchatApp) -> None:
        assert isinstance(app.screen, Question)
        await pilot.press("enter")
        await pilot.pause()
        engine_of(app).go()
        await pilot.pause()
        assert [said.text for said in engine_of(app).requests[-1].history] == ["second", "one.", "third"]
        marks = [(view.branch, view.has_class("-dropped")) for view in app.chat_view.transcript.views]
        assert marks == [("not read any more", True)] * 2 + [("", False)] * 4

    after_two_rounds(tmp_path, path, dropped)
    assert [turn.is_dropped for turn in kept(path)[0].path()] == [True, True, False, False, False, False]


def test_stopping_at_a_full_context_gives_the_question_back(tmp_path: Path, path: Path) -> None:
    async def stopped(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("escape")
        await pilot.pause()
        assert app.query_one(Prompt).text == "third"
        assert texts(app) == ["first", "one.", "second", "one."]
        assert app.chat_view.busy is None

    after_two_rounds(tmp_path, path, stopped)
    assert said(kept(path)[0]) == ["first", "one.", "second", "one."]


def test_always_dropping_is_remembered_and_said_each_time(tmp_path: Path, path: Path) -> None:
    async def always(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("right", "enter")
        await pilot.pause()
        engine_of(app).go()
        await pilot.pause()
        assert app.settings.context.policy == "drop"
        await outgrow(pilot, app)
        assert not isinstance(app.screen, Question)
        assert len([line for line in told(app) if "not read any more" in line]) == 2

    after_two_rounds(tmp_path, path, always)


def test_the_engine_reads_ahead_while_a_question_is_typed_unless_the_settings_say_no(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "first")
        app.query_one(Prompt).put("/title not read")
        app._read_ahead()
        app.query_one(Prompt).put("and then")
        if app.settings.context.read_ahead:
            await until(pilot, lambda: bool(engine_of(app).ahead))
            assert engine_of(app).ahead == [["first", "An answer.", "and then"]]
        else:
            assert app._ahead_due is None

    drive(app_on(tmp_path), steps)
    drive(app_on(tmp_path, settings=Settings(context=ContextSettings(read_ahead=False))), steps)


def test_an_idle_draft_model_may_read_a_reply_when_it_has_ended_unless_the_settings_say_no(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        assert engine_of(app).listened == 0
        await ask(pilot, "first")
        await pilot.pause()
        assert engine_of(app).listened == app.settings.context.read_ahead

    drive(app_on(tmp_path), steps)
    drive(app_on(tmp_path, settings=Settings(context=ContextSettings(read_ahead=False))), steps)


def test_each_message_is_weighed() -> None:
    chat = Chat("Be short.")
    question = chat.add(Role.USER, "why\nso?")
    chat.add(Role.ASSISTANT, "Because.")
    question.is_pinned = True
    text = weighed(chat.path(), {1: 30, 2: 12}, 8, 100, "ask")
    assert text.splitlines()[0] == "50 of 100 tokens are taken (50%)"
    assert "     30  you    (pinned)  why so?" in text
