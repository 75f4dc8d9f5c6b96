"""Several chats, keys pressed twice, messages that come late, replies that are stopped, refused or deleted."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from specchat.conversation import Role
from specchat.session import Checked
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import CheckEnded
from specchat.tui.streaming import Request
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.settings_panel import SettingsPanel
from tests.tui.driving import ask, drive, shown, slow, texts
from tests.tui.scripted import Script, ScriptedEngine, app_on, engine_of, words

# Several chats.


def test_each_chat_shows_its_own_messages(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("first reply"), words("second reply")]))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "in the first")
        first = app.chat_view.chat
        await pilot.press("ctrl+n")
        await pilot.pause()
        assert shown(app) == []
        await ask(pilot, "in the second")
        assert shown(app) == ["in the second", "second reply"]
        await app.chat_view.open(first)
        await pilot.pause()
        assert shown(app) == texts(app) == ["in the first", "first reply"]

    drive(app, steps)


def test_no_chat_is_opened_while_a_reply_is_written(tmp_path: Path) -> None:
    app = app_on(tmp_path, slow())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        engine_of(app).script.steps_at_once = None
        await ask(pilot, "one")
        await pilot.press("ctrl+n")
        await pilot.pause()
        engine_of(app).script.steps_at_once = 2
        await ask(pilot, "two")
        chat = app.chat_view.chat
        await pilot.press("ctrl+n")
        assert app.chat_view.chat is chat
        await pilot.press("ctrl+s")
        await pilot.pause()
        await pilot.press("up", "enter")
        await pilot.pause()
        assert app.chat_view.chat is chat
        engine_of(app).go()
        await pilot.pause()
        assert texts(app) == shown(app) == ["two", "one two three four five six"]

    drive(app, steps)


class CheckingLate(ScriptedEngine):
    """Says what a check found when the test wants it."""

    def write(self, request: Request) -> None:
        if request.kind == "check":
            self.requests.append(request)
        else:
            super().write(request)


def test_a_check_is_noted_at_its_message_though_another_chat_is_shown(tmp_path: Path) -> None:
    script = Script()
    app = app_on(tmp_path, script)
    app.engine = CheckingLate(app._post, app._reply_settings, script)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        first = app.chat_view.chat
        await ask(pilot, "/check")
        await ask(pilot, "/check")
        assert [request.kind for request in engine_of(app).requests] == ["reply", "check"]
        await pilot.press("ctrl+n")
        await pilot.pause()
        await ask(pilot, "two")
        app.chat_view.post_message(CheckEnded(engine_of(app).requests[1].turn, Checked(12, None, None)))
        await pilot.pause()
        assert [view.note for view in app.chat_view.transcript.views] == ["", ""]
        await app.chat_view.open(first)
        await pilot.pause()
        assert "identical" in app.chat_view.transcript.views[-1].note
        assert not app.chat_view.stop()

    drive(app, steps)


# Keys twice, messages late.


def test_deleting_twice_at_once_deletes_once(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        await ask(pilot, "two")
        transcript = app.chat_view.transcript
        reply = app.chat_view.chat.path()[-1]
        for verb in ("delete", "delete", "copy", "left", "steps", "provenance", "jump", "unfold"):
            transcript.post_message(transcript.Asked(verb, reply.id))
        await pilot.pause()
        assert texts(app) == shown(app) == ["one", "An answer.", "two"]
        transcript.focus()
        await pilot.press("d", "d", "d", "d", "d")
        await pilot.pause()
        assert texts(app) == shown(app) == []
        await ask(pilot, "three")
        assert texts(app) == ["three", "An answer."]

    drive(app, steps)


def test_a_question_that_was_deleted_while_it_was_edited_is_asked_as_a_new_one(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "old")
        app.chat_view.transcript.focus()
        await pilot.press("g", "e")
        await pilot.pause()
        app.chat_view.transcript.focus()
        await pilot.press("g", "d")
        await pilot.pause()
        assert texts(app) == []
        app.composer.focus_prompt()
        await pilot.press("enter")
        await pilot.pause()
        assert texts(app) == ["old", "An answer."]

    drive(app, steps)


def test_an_edited_question_that_is_refused_leads_back_to_the_version_before(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "old")
        app.chat_view.transcript.focus()
        await pilot.press("g", "e")
        await pilot.pause()
        engine_of(app).script.refuse = "too long"
        await ask(pilot, "new")
        assert texts(app) == shown(app) == ["old", "An answer."]
        assert app.query_one(Prompt).text == "new"
        engine_of(app).script.refuse = ""
        await pilot.press("enter")
        await pilot.pause()
        assert texts(app) == ["new", "An answer."]
        assert app.chat_view.transcript.views[0].branch == "2/2"

    drive(app, steps)


def test_a_version_chosen_in_the_middle_of_a_chat_stays_the_current_message(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words(f"reply {n}") for n in range(40)]))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "first")
        await pilot.press("ctrl+r")
        await pilot.pause()
        chat = app.chat_view.chat
        for n in range(30):
            chat.add(Role.USER, f"more {n}")
            chat.add(Role.ASSISTANT, f"reply {n + 2}")
        await app.chat_view.open(chat)
        transcript = app.chat_view.transcript
        transcript.focus()
        await pilot.press("g", "j")
        await pilot.pause()
        assert transcript.current is not None
        assert transcript.current.text == "reply 1"
        await pilot.press("left")
        await pilot.pause()
        assert texts(app) == shown(app) == ["first", "reply 0"]
        await pilot.press("right")
        await pilot.pause()
        await pilot.pause()
        assert transcript.current.text == "reply 1"
        assert len(texts(app)) == 62
        view = next(view for view in transcript.views if view.source == "reply 1")
        assert 0 <= view.virtual_region.y - transcript.scroll_y < transcript.size.height

    drive(app, steps)


def test_f2_twice_opens_and_closes_and_escape_with_f2_does_not_open_again(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("f2", "f2")
        await pilot.pause()
        assert len(app.query(SettingsPanel)) == 0
        await pilot.press("f2")
        await pilot.pause()
        app.query_one(SettingsPanel).post_message(SettingsPanel.Closed())
        await pilot.press("f2")
        await pilot.pause()
        assert len(app.query(SettingsPanel)) == 0
        await pilot.press("f2", "f2", "f2")
        await pilot.pause()
        assert len(app.query(SettingsPanel)) == 1

    drive(app, steps)


def test_a_second_check_and_an_ended_one_leave_escape_as_it_was(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script(checked=Checked(3, None, None)))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        app.chat_view.transcript.focus()
        await pilot.press("v", "v")
        await pilot.pause()
        assert not app.chat_view.stop()
        await pilot.press("f2")
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.query(SettingsPanel)) == 0

    drive(app, steps)


def test_nothing_is_checked_redone_or_deleted_while_a_reply_is_written(tmp_path: Path) -> None:
    app = app_on(tmp_path, slow())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        engine_of(app).go(2)
        await pilot.pause()
        app.chat_view.transcript.focus()
        await pilot.press("v", "r", "d", "g", "e", "d", "left", "right")
        await ask(pilot, "/redo")
        await ask(pilot, "/check")
        await ask(pilot, "/continue")
        assert len(engine_of(app).requests) == 1
        engine_of(app).go()
        await pilot.pause()
        assert texts(app) == shown(app) == ["one", "one two three four five six"]

    drive(app, steps)


def test_a_reply_continued_and_stopped_at_once_stays_and_can_be_continued(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("begun "), [], words("and more")]))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        await ask(pilot, "/continue")  # which writes nothing
        assert app.chat_view.busy is None
        assert texts(app) == shown(app) == ["one", "begun "]
        await ask(pilot, "/continue")
        assert texts(app) == shown(app) == ["one", "begun and more"]
        assert not app.chat_view._activity

    drive(app, steps)
