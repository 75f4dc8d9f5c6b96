"""Text of models, users, files and errors is data: it neither ends the app, nor styles it, nor steers the terminal."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.screen import Screen

from specchat.provenance import Author, Origin
from specchat.session import Checked
from specchat.settings import GuessSettings, Settings, ViewSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import LoadProgress, ModelMissing, ModelReady, Refused, Trouble
from specchat.tui.screens.chats import ChatScreen
from specchat.tui.screens.text import TextScreen
from specchat.tui.widgets.prompt import LONG_PASTE, Prompt
from tests.tui.scripted import LOADED, Piece, Script, app_on, engine_of, words

Drive = Callable[[Pilot[None], SpecchatApp], Awaitable[None]]

MARKUP = (
    "[/]", "[bold", "[0]", "# [/mnt/data/models]", "[b + c", "[@click=app.quit]x[/]", "[red]red[/red]", "[link=http://e]l[/]",
    "\\[", "[on red]", "[[", "]]", "$primary", ":smile:",
)  # fmt: skip
STEERING = (
    "\x1b]52;c;QUJD\x07", "\x1b[31mred", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "\x1b]8;;http://e\x1b\\l", "\x9b31m",
    "\x90q\x9c",
    "\x00", "\x07", "\x08\x08", "\r", "\x0b\x0c", "\x7f", "\x85", "\u202eevil", "\u2066x\u2069", "\u2028l", "\u2029p",
    "\ud800", "\udfff\ud800", "a\tb", "\ufeff", "\u200b",
)  # fmt: skip
ALL = " ".join((*MARKUP, *STEERING))
GROUPS = (" ".join(MARKUP), " ".join(STEERING), ALL)
FEW = ("[/]", "[bold", "[@click=app.quit]x[/]", *GROUPS)


def screen_text(screen: Screen[Any]) -> str:
    """What the terminal is sent, line by line, after a look at every piece of it."""
    lines = []
    for strip in screen._compositor.render_strips(screen.size):
        for segment in strip:
            assert segment.control is None
            assert not [c for c in segment.text if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs")], segment
            assert not set(segment.text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"), segment
            assert segment.style is None or segment.style.link is None
            assert segment.style is None or "@click" not in segment.style.meta
        lines.append("".join(segment.text for segment in strip))
    return "\n".join(lines)


def squeezed(text: str) -> str:
    return "".join(text.split())


def drive(app: SpecchatApp, steps: Drive, size: tuple[int, int] = (120, 50)) -> None:
    async def go() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            await steps(pilot, app)
            await settled(pilot)
            for screen in app.screen_stack:
                screen_text(screen)
            assert app.is_running

    asyncio.run(go())


async def settled(pilot: Pilot[None]) -> None:
    """Until no worker is left and what was said has come to the screen."""
    await pilot.app.workers.wait_for_complete()
    for _ in range(3):
        await pilot.pause()


async def send(pilot: Pilot[None], text: str) -> None:
    prompt = pilot.app.query_one(Prompt)
    prompt.put(text)
    await pilot.pause()
    prompt.completing = False
    await pilot.press("enter")
    await pilot.pause()


def test_prompts_and_replies_are_shown_as_they_are(tmp_path: Path) -> None:
    texts = (*MARKUP, *GROUPS)
    replies = [[Piece(f"say {text}"), Piece(f" and `{text}`\n\n> {text}\n\n- {text}")] for text in texts]
    app = app_on(tmp_path, Script(replies))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for text in texts:
            app.query_one(Prompt).insert(f"typed {text}")
            await pilot.pause()
            screen_text(app.screen)
            await pilot.press("enter")
            await settled(pilot)
            shown = squeezed(screen_text(app.screen))
            if text in MARKUP:
                said = text.replace("\\[", "[")  # which in Markdown is a bracket
                assert squeezed(f"typed {text}") in shown
                assert squeezed(f"say {said}") in shown
        for command in ("/tint token", "/tint off", "/raw"):
            await send(pilot, command)
            screen_text(app.screen)

    drive(app, steps)


def test_titles_of_any_kind_are_listed(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for text in FEW:
            await send(pilot, f"ask {text}\nsecond line")
            assert text not in MARKUP or squeezed(f"specchat ask {text}") in squeezed(screen_text(app.screen))
            await pilot.press("ctrl+n")
            await pilot.pause()
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert isinstance(app.screen, ChatScreen)
        await pilot.press("home")
        await pilot.pause()
        assert squeezed("ask [@click=app.quit]x[/]") in squeezed(screen_text(app.screen))

    drive(app, steps)


def test_the_prompt_holds_only_what_can_be_shown(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        prompt = app.query_one(Prompt)
        for text in ("a\tb", *GROUPS):
            prompt.put("")
            prompt.post_message(Paste(f"pasted {text} end"))
            await pilot.pause()
            assert prompt.text.startswith("pasted")
            assert prompt.text.endswith("end")
            screen_text(app.screen)
            prompt.put(f"{text} of the editor")
            await pilot.pause()
            screen_text(app.screen)
            await pilot.press("enter")
            await pilot.pause()
            await pilot.press("up")
            await pilot.pause()
            assert prompt.text.endswith("of the editor")
            screen_text(app.screen)

    drive(app, steps)


def test_a_long_paste_of_any_kind_becomes_text_that_a_model_can_be_sent(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.query_one(Prompt).post_message(Paste(ALL * LONG_PASTE))
        await pilot.pause()
        await send(pilot, "about what I pasted")
        text = engine_of(app).requests[-1].history[-1].text
        assert "[pasted text 1]" in text
        assert text.encode().decode() == text

    drive(app, steps)


def test_keys_type_brackets_but_nothing_unprintable(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for character in ("\u202e", "\u2028", "[", "/", "]", "\u200b"):
            await pilot.press(character)
        await pilot.pause()
        assert app.query_one(Prompt).text == "[/]"

    drive(app, steps)


def test_errors_and_names_of_the_engine_are_shown_as_they_are(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script(steps_at_once=0))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for text in FEW:
            loaded = replace(LOADED, title=text, draft=text, back_end=text, notices=(text, "second"))
            for message in (LoadProgress(text, 0.3), Trouble(f"cannot load {text}"), ModelReady(loaded)):
                app.chat_view.post_message(message)
                await settled(pilot)
                screen_text(app.screen)
            shown = squeezed(screen_text(app.screen))
            assert text not in MARKUP or squeezed(f"cannot load {text}") in shown
            app.clear_notifications()
        await send(pilot, "/guess off")
        await send(pilot, "why?")
        reply = app.chat_view.busy
        assert reply is not None
        app.chat_view.post_message(Refused(reply, f"no room: {ALL}", None))
        await settled(pilot)
        screen_text(app.screen)
        assert app.query_one(Prompt).text == "why?"
        await pilot.press("f2")
        await pilot.pause()
        screen_text(app.screen)

    drive(app, steps)


def test_a_missing_model_of_any_name_is_asked_for(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.chat_view.post_message(ModelMissing(ALL, ALL, 1_000))
        await pilot.pause()
        await pilot.pause()
        screen_text(app.screen)
        await pilot.press("escape")

    drive(app, steps)


@pytest.mark.parametrize("text", [GROUPS[0], GROUPS[1].replace("\0", "")])
def test_notes_and_attachments_are_shown_as_they_are(tmp_path: Path, text: str) -> None:
    origin = Origin(Author.FILE, "copied.txt", 2, 1, 0)
    answer = [*words("some words of my own, "), Piece("copied words", "lookup", 2, 3, Author.FILE, origin)]
    app = app_on(tmp_path, Script([answer], checked=Checked(2, (text, f"{text}\n"), (0.25, 0.75))))
    (tmp_path / "copied.txt").write_text(f"first\ncopied words {text}", encoding="utf-8", errors="replace")

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await send(pilot, "/attach copied.txt")
        await send(pilot, "copy it")
        app.chat_view.transcript.focus()
        for key in ("v", "x", "escape", "y", "c", "t", "left", "p", "enter"):
            await pilot.press(key)
            await settled(pilot)
            screen_text(app.screen)
        assert isinstance(app.screen, TextScreen)
        await pilot.press("escape")
        app.push_screen(TextScreen(f"{text}.txt", f"{text}\n" * 3, 2))
        await settled(pilot)
        shown = squeezed(screen_text(app.screen))
        assert squeezed("[/] [bold [0]") in shown or "]52;c;QUJD" in shown
        app.push_screen(TextScreen("\\[a\\\\[b[/c", "", 9))
        await settled(pilot)
        assert "\\[a\\\\[b[/c" in screen_text(app.screen)

    drive(app, steps)


def test_a_file_name_of_any_kind_can_be_attached(tmp_path: Path) -> None:
    names = ["[bold]x[0].md", "a\nb.txt", "\x1b[31m.py", "\u202e.rs", "[@click=app.quit]y[0]"]
    for name in names:
        (tmp_path / name).write_text("text")
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for name in names:
            app.composer.attach_file(str(tmp_path / name))
            await pilot.pause()
        assert "[bold]x[0].md" in screen_text(app.screen)
        await send(pilot, "what are these?")
        shown = screen_text(app.screen)
        assert "with [bold]x[0].md, a␊b.txt, ␛[31m.py" in shown
        await pilot.press("@")
        await settled(pilot)
        screen_text(app.screen)

    drive(app, steps)


NUMBERS = ("9" * 5_000, "-1", "nan", "inf", "1e999", str(2**64), "٣", "\u00b2")


@pytest.mark.parametrize(
    "command", ["theme", "tint", "guess", "draft", "seed", "temp", "system", "attach", "model", "", "xyz "]
)
def test_arguments_of_any_kind_get_an_answer(tmp_path: Path, command: str) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        for text in (ALL, "[/]", *(NUMBERS if command in ("seed", "temp") else ())):
            await send(pilot, f"/{command} {text}")
            screen_text(app.screen)
        await send(pilot, "still there?")
        assert engine_of(app).requests[-1].history[-1].text == "still there?"

    drive(app, steps)


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "[red]", "no such theme"])
def test_settings_may_name_any_theme(tmp_path: Path, theme: str) -> None:
    app = app_on(tmp_path, settings=Settings(view=ViewSettings(theme=theme), guess=GuessSettings(draft="[bold]d")))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await send(pilot, "hello")
        await pilot.press("f2")
        await pilot.pause()

    drive(app, steps)
