"""The app on a scripted engine, driven by keys: what is asked, shown, stopped, branched, and never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import OptionList

from specchat.conversation import Role
from specchat.session import Checked
from specchat.settings import GuessSettings, Settings
from specchat.tui.app import SpecchatApp
from specchat.tui.screens.help import HelpScreen
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.settings_panel import SettingsPanel
from tests.tui.scripted import Script, app_on, engine_of, mixed, words

Drive = Callable[[Pilot[None], SpecchatApp], Awaitable[None]]


def drive(app: SpecchatApp, keys: Drive, size: tuple[int, int] = (110, 32)) -> None:
    """Run an app under a pilot."""

    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await keys(pilot, app)

    asyncio.run(go())


async def ask(pilot: Pilot[None], text: str) -> None:
    pilot.app.query_one(Prompt).insert(text)
    await pilot.press("enter")
    await pilot.pause()


def texts(app: SpecchatApp) -> list[str]:
    return [turn.text for turn in app.chat_view.chat.path()]


def test_a_question_is_answered_and_both_are_shown(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "why?")
        assert texts(app) == ["why?", "An answer."]
        shown = [view.source for view in app.chat_view.transcript.views]
        assert shown == ["why?", "An answer."]
        assert app.query_one(Prompt).text == ""
        assert engine_of(app).requests[0].history[-1].text == "why?"

    drive(app, keys)


def test_enter_twice_or_a_question_while_one_is_answered_sends_nothing_and_loses_nothing(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script(steps_at_once=0))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        await pilot.press("enter", "enter")
        await ask(pilot, "two")
        assert len(engine_of(app).requests) == 1
        assert app.query_one(Prompt).text == "two"
        engine_of(app).go()
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert [request.history[-1].text for request in engine_of(app).requests] == ["one", "two"]

    drive(app, keys)


def test_escape_stops_a_reply_and_what_was_written_stays_usable(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("one two three four five six")], steps_at_once=3))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "count")
        await pilot.press("escape")
        await pilot.pause()
        assert texts(app) == ["count", "one two three "]
        assert app.chat_view.busy is None
        assert "stopped" in app.chat_view.transcript.views[-1].figures
        engine_of(app).script.steps_at_once = None
        await ask(pilot, "/continue")
        assert texts(app) == ["count", "one two three one two three four five six"]

    drive(app, keys)


def test_a_stop_before_the_first_token_gives_the_question_back(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script(steps_at_once=0))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        engine_of(app).script.steps_at_once = 0
        await ask(pilot, "a long question")
        engine_of(app)._writing = engine_of(app)._write_all(engine_of(app).requests[0], [])
        await pilot.press("escape")
        await pilot.pause()
        assert texts(app) == []
        assert app.query_one(Prompt).text == "a long question"

    drive(app, keys)


def test_a_refused_question_is_given_back_with_a_message(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script(refuse="the prompt has 9000 tokens and the context holds 8192"))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "too long")
        assert texts(app) == []
        assert app.query_one(Prompt).text == "too long"
        assert any("9000 tokens" in notification.message for notification in app._notifications)

    drive(app, keys)


def test_redo_makes_another_version_and_left_and_right_go_between_them(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("first"), words("second")]))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert texts(app) == ["say", "second"]
        assert app.chat_view.transcript.views[-1].branch == "2/2"
        app.chat_view.transcript.focus()
        await pilot.press("left")
        await pilot.pause()
        assert texts(app) == ["say", "first"]
        await pilot.press("right")
        await pilot.pause()
        assert texts(app) == ["say", "second"]
        assert [view.source for view in app.chat_view.transcript.views] == ["say", "second"]

    drive(app, keys)


def test_an_edited_question_becomes_a_branch_and_escape_leaves_it_alone(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("first"), words("second")]))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "old")
        app.chat_view.transcript.focus()
        await pilot.press("g", "e")
        await pilot.pause()
        assert app.query_one(Prompt).text == "old"
        await pilot.press("escape")
        await pilot.pause()
        assert app.query_one(Prompt).text == ""
        app.chat_view.transcript.focus()
        await pilot.press("g", "e")
        await pilot.pause()
        app.query_one(Prompt).put("new")
        await pilot.press("enter")
        await pilot.pause()
        assert texts(app) == ["new", "second"]
        assert app.chat_view.transcript.views[0].branch == "2/2"

    drive(app, keys)


def test_ctrl_g_goes_round_the_guessers_and_the_choice_is_kept_for_the_target(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        for wanted in ("draft", "lookup", "recycling", "off", "auto"):
            await pilot.press("ctrl+g")
            await pilot.pause()
            assert app.settings.guess.mode == wanted
            assert engine_of(app).chosen[-1] == wanted
        await ask(pilot, "/guess lookup")
        assert "lookup" in (tmp_path / "config.toml").read_text()
        assert app.settings.target("qwen2.5-coder-1.5b").guess == "lookup"

    drive(app, keys)


def test_the_settings_panel_changes_the_guesser_while_a_reply_is_written(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("one two three four five six")], steps_at_once=2))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "count")
        await pilot.press("f2")
        await pilot.pause()
        assert len(app.query(SettingsPanel)) == 1
        panel = app.query_one(SettingsPanel)
        panel.post_message(SettingsPanel.Changed(Settings(guess=GuessSettings(mode="off"))))
        await pilot.pause()
        assert engine_of(app).chosen[-1] == "off"
        assert app.chat_view.busy is not None
        await pilot.press("f2")
        await pilot.pause()
        assert len(app.query(SettingsPanel)) == 0

    drive(app, keys)


def test_unknown_commands_and_bare_slashes_say_so_and_stay(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        for text in ("/xyz", "/guess maybe", "/temp hot", "/theme none"):
            app.query_one(Prompt).put(text)
            await pilot.pause()
            app.query_one(Prompt).completing = False
            await pilot.press("enter")
            await pilot.pause()
        await ask(pilot, "")
        app.query_one(Prompt).put("//literal")
        await pilot.press("enter")
        await pilot.pause()
        assert texts(app)[0] == "/literal"

    drive(app, keys)


def test_a_slash_lists_commands_and_tab_completes_them(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("/", "g")
        await pilot.pause()
        assert app.query_one("#completions", OptionList).option_count == 1
        await pilot.press("tab")
        await pilot.pause()
        assert app.query_one(Prompt).text == "/guess "

    drive(app, keys)


def test_a_paste_of_50k_characters_becomes_an_attachment_and_never_sends(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        from textual.events import Paste

        prompt = app.query_one(Prompt)
        prompt.post_message(Paste("line\r\n" * 9_000))
        await pilot.pause()
        assert prompt.text == ""
        assert engine_of(app).requests == []
        await ask(pilot, "what is this?")
        assert engine_of(app).requests[0].history[-1].text.count("line\n") == 9_000
        prompt.post_message(Paste("short\nlines"))
        await pilot.pause()
        assert prompt.text == "short\nlines"
        assert len(engine_of(app).requests) == 1

    drive(app, keys)


async def burst(pilot: Pilot[None], typed: str) -> None:
    """Keys that arrive together, as from another program."""
    for letter in typed:
        key = {"\r": "enter", "\n": "ctrl+j", " ": "space"}.get(letter, letter)
        pilot.app.post_message(Key(key, letter if letter.isprintable() else None))
    await pilot.pause()
    await pilot.pause()


def test_enter_in_a_burst_sends_what_was_typed_before_it(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await burst(pilot, "why is it so\r")
        assert texts(app) == ["why is it so", "An answer."]
        await burst(pilot, "one\ntwo\r")
        assert texts(app)[2] == "one\ntwo"
        assert app.query_one(Prompt).text == ""

    drive(app_on(tmp_path), steps)


def test_what_comes_behind_enter_in_a_burst_is_the_next_message(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await burst(pilot, "first\rsecond\rthird")
        assert texts(app) == ["first", ""]  # its reply is being written
        assert app.query_one(Prompt).text.split() == ["second", "third"]

    drive(app_on(tmp_path, Script([words("one two")], steps_at_once=0)), steps)


def test_a_command_that_is_none_stays_in_the_box(tmp_path: Path) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await burst(pilot, "/nonsense\r")
        assert app.query_one(Prompt).text == "/nonsense"

    drive(app_on(tmp_path), steps)


def test_arrows_recall_earlier_prompts_and_keep_the_one_being_written(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "one")
        await ask(pilot, "two")
        await pilot.press("up")
        assert app.query_one(Prompt).text == "two"
        await pilot.press("up")
        assert app.query_one(Prompt).text == "one"
        await pilot.press("down", "down")
        assert app.query_one(Prompt).text == ""
        app.query_one(Prompt).insert("draft")
        await pilot.press("up")
        assert app.query_one(Prompt).text == "draft"

    drive(app, keys)


def test_provenance_marks_a_copied_piece_and_enter_goes_to_its_turn(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([mixed("a b c d e f g h i j k l m n o p")]))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        app.chat_view.transcript.focus()
        await pilot.press("p")
        await pilot.pause()
        view = app.chat_view.transcript.views[-1]
        assert "copied from" in view.note
        assert view.highlighted is not None
        await pilot.press("enter")
        await pilot.pause()
        assert app.chat_view.transcript.current is not None
        assert app.chat_view.transcript.current.role is Role.USER

    drive(app, keys)


@pytest.mark.parametrize(
    ("checked", "words_in_note"),
    [
        (Checked(12, None, None), "identical to plain decoding, 12 tokens"),
        (Checked(4, (" a", " b"), (0.4127, 0.4126)), "a near tie"),
        (Checked(4, (" a", " b"), (0.2, 0.7)), "not a near tie"),
    ],
)
def test_v_tells_whether_a_reply_is_what_plain_decoding_writes(
    tmp_path: Path, checked: Checked, words_in_note: str
) -> None:
    app = app_on(tmp_path, Script(checked=checked))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        app.chat_view.transcript.focus()
        await pilot.press("v")
        await pilot.pause()
        assert words_in_note in app.chat_view.transcript.views[-1].note
        assert engine_of(app).requests[-1].seed == 7

    drive(app, keys)


def test_f1_explains_and_escape_closes(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("f1")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)

    drive(app, keys)


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (200, 60)])
def test_the_screen_may_have_any_size_and_change_it_in_mid_reply(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(tmp_path, Script([mixed("one two three four five six seven eight nine ten " * 5)], steps_at_once=10))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "count")
        for width, height in ((20, 5), (100, 30), size):
            await pilot.resize_terminal(width, height)
            engine_of(app).go(5)
            await pilot.pause()
        engine_of(app).go()
        await pilot.pause()
        assert texts(app)[1].startswith("one two")

    drive(app, keys, size)
