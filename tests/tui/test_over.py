"""Screens over the chat while the engine speaks, Ctrl+C in its three meanings, names and copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from specchat.conversation import Role
from specchat.provenance import Author, Origin
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import ModelReady, Trouble
from specchat.tui.screens.chats import ChatScreen
from specchat.tui.screens.help import HelpScreen
from specchat.tui.screens.models import ModelScreen
from specchat.tui.screens.text import TextScreen
from specchat.tui.widgets.prompt import Prompt
from tests.tui.driving import ask, drive, shown, slow, texts, told
from tests.tui.scripted import LOADED, Piece, Script, app_on, engine_of, words

# Screens over the chat.


@pytest.mark.parametrize("key", ["f1", "ctrl+s", "ctrl+l", "ctrl+p"])
def test_a_reply_goes_on_and_ends_under_any_screen(tmp_path: Path, key: str) -> None:
    app = app_on(tmp_path, slow())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        engine_of(app).go(2)
        await pilot.press(key)
        await pilot.pause()
        assert len(app.screen_stack) == 2
        engine_of(app).go(2)
        await pilot.pause()
        engine_of(app).go()  # its end is on its way when the screen closes
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert app.chat_view.busy is None
        assert texts(app) == shown(app) == ["one", "one two three four five six"]

    drive(app, steps)


def test_keys_of_the_chat_do_nothing_under_another_screen(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        chat, settings = app.chat_view.chat, app.settings
        await pilot.press("ctrl+s")
        await pilot.pause()
        await pilot.press("ctrl+n", "ctrl+s", "ctrl+l", "ctrl+g", "ctrl+t", "ctrl+r", "ctrl+o", "f2", "f3", "f4")
        await pilot.pause()
        assert isinstance(app.screen, ChatScreen)
        assert len(app.screen_stack) == 2
        assert (app.chat_view.chat, app.settings, len(engine_of(app).requests)) == (chat, settings, 1)
        await pilot.press("escape")
        await pilot.press("ctrl+l", "ctrl+l")
        await pilot.pause()
        await pilot.press("ctrl+l")
        await pilot.pause()
        assert [type(screen) for screen in app.screen_stack[1:]] == [ModelScreen]
        await pilot.press("escape", "f1", "f1")
        await pilot.pause()
        assert not any(isinstance(screen, HelpScreen) for screen in app.screen_stack)

    drive(app, steps)


def test_the_palette_does_what_it_lists(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        tint = app.settings.view.tint
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*"tint")
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("down", "enter")
        await pilot.pause()
        await pilot.pause()
        assert app.settings.view.tint != tint

    drive(app, steps)


def test_trouble_with_a_model_leaves_the_one_in_use(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "/model nobody-knows-it")
        app.chat_view.post_message(Trouble("the catalogue has no nobody-knows-it"))
        await pilot.pause()
        assert app._status._message.endswith("ready")
        app.chat_view.post_message(Trouble("cannot load it", fatal_to="model"))
        await pilot.pause()
        assert "no model is loaded" in app._status._message
        await ask(pilot, "still there?")
        assert texts(app)[0] == "still there?"

    drive(app, steps)


# Ctrl+C.


def test_ctrl_c_copies_a_selection_and_stops_without_one(tmp_path: Path) -> None:
    app = app_on(tmp_path, slow())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "copy me")
        engine_of(app).go(2)
        await pilot.pause()
        view = app.chat_view.transcript.views[0]
        app.screen.selections = {view: Selection.from_offsets(Offset(2, 1), Offset(6, 1))}
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app.clipboard == "copy"
        assert app.chat_view.busy is not None
        app.screen.clear_selection()
        await pilot.press("ctrl+c", "ctrl+c")
        await pilot.pause()
        assert app.chat_view.busy is None
        assert texts(app) == ["copy me", "one two "]
        assert app.is_running

    drive(app, steps)


def test_ctrl_c_twice_leaves_when_nothing_is_written(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "Ctrl+C again leaves" in told(app)
        assert not app._exit
        await pilot.press("ctrl+c")
        assert app._exit

    drive(app, steps)


def test_ctrl_c_copies_what_is_selected_in_the_prompt(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        prompt = app.query_one(Prompt)
        prompt.put("some text")
        prompt.select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "some text"
        assert not app._asked_to_leave

    drive(app, steps)


# Names, copies.


def test_a_reply_keeps_the_name_of_the_model_that_wrote_it(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        app.chat_view.post_message(ModelReady(replace(LOADED, title="Another")))
        await pilot.pause()
        await ask(pilot, "two")
        await pilot.press("ctrl+r")
        await pilot.pause()
        names = [view.who for view in app.chat_view.transcript.views]
        assert names == ["You", "Qwen2.5-Coder 1.5B", "You", "Another"]
        chat = app.chat_view.chat
        await pilot.press("ctrl+n")
        await app.chat_view.open(chat)
        assert [view.who for view in app.chat_view.transcript.views] == names

    drive(app, steps)


def test_code_blocks_are_copied_in_turn_from_the_first_of_each_message(tmp_path: Path) -> None:
    code = "```py\na = 1\n```\n\n```py\nb = 2\n```\n"
    app = app_on(tmp_path, Script([[Piece(code)], [Piece("```py\nc = 3\n```\n\n~~~\nd\n~~~\n")]]))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        await ask(pilot, "two")
        app.chat_view.transcript.focus()
        copied = []
        for key in ("c", "c", "c", "k", "k", "c", "c"):
            await pilot.press(key)
            await pilot.pause()
            copied.append(app.clipboard)
        assert [copied[i] for i in (0, 1, 2, 5, 6)] == ["c = 3\n", "d\n", "c = 3\n", "a = 1\n", "b = 2\n"]
        await pilot.press("s")
        await pilot.pause()
        assert (tmp_path / "code-1.py").read_text() == "a = 1\n"

    drive(app, steps)


def test_what_was_copied_from_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    origin = Origin(Author.FILE, "gone.txt", 2, 1, 0)
    app = app_on(tmp_path, Script([[Piece("copied words", "lookup", 2, 3, Author.FILE, origin)]]))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        app.chat_view.transcript.focus()
        await pilot.press("p", "enter")
        await pilot.pause()
        assert not isinstance(app.screen, TextScreen)
        assert any("gone.txt" in line for line in told(app))
        await ask(pilot, "/continue")
        app.chat_view.transcript.focus()
        await pilot.press("p")
        await pilot.pause()
        assert "24 characters" in app.chat_view.transcript.views[-1].note

    drive(app, steps)


def test_the_role_of_a_message_is_not_told_by_the_name_of_a_model(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("**bold**")]))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.chat_view.post_message(ModelReady(replace(LOADED, title="You")))
        await pilot.pause()
        await ask(pilot, "**asked**")
        lines = [view.render_line(1).text for view in app.chat_view.transcript.views]
        assert "**asked**" in lines[0]
        assert "**" not in lines[1]
        assert [turn.role for turn in app.chat_view.chat.path()] == [Role.USER, Role.ASSISTANT]

    drive(app, steps)
