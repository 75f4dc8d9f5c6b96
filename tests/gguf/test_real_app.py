"""The app on a real model, driven by keys: it chats, and the guesser is switched in mid-reply from the settings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.message import Message
from textual.pilot import Pilot

from specchat.chat import Turn
from specchat.settings import ContextSettings, GuessSettings, SamplingSettings, Settings, SettingsFile
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import Grew
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.settings_panel import SettingsPanel
from speculation.types import PLAIN
from tests.conftest import THREADS, model_file

pytestmark = pytest.mark.gguf

QUESTION = (
    "Write the numbers from one to forty in words, one on each line, twice. one\ntwo\nthree\nfour\nfive\nsix\n" * 3
)


def test_the_guesser_is_switched_in_mid_reply_from_the_panel_and_the_records_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_file("smollm2-135m")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings(
        model=str(model),
        guess=GuessSettings(mode="off"),
        sampling=SamplingSettings(temperature=0.0, seed=1, max_tokens=400),
        context=ContextSettings(size=2048, threads=THREADS),
    )
    wanted = Wanted(settings.model, "auto", "off", 2048, THREADS)
    app = SpecchatApp(Start(settings, settings, SettingsFile(tmp_path / "config.toml"), wanted), folder=tmp_path)

    async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
        for _ in range(2400):
            if holds():
                return
            await pilot.pause(0.05)
        raise AssertionError("nothing happened for two minutes")

    turns: list[Turn] = []
    switched, post = threading.Event(), app.engine._post

    def holding(message: Message) -> object:
        """After its first step the engine waits for the switch, however fast this machine is."""
        posted = post(message)
        if isinstance(message, Grew):
            switched.wait(60)
        return posted

    monkeypatch.setattr(app.engine, "_post", holding)

    async def go() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.loaded is not None)
            app.query_one(Prompt).insert(QUESTION)
            await pilot.press("enter")
            await until(pilot, lambda: bool(app.chat_view.transcript.views[-1].source))
            await pilot.press("f2")
            await until(pilot, lambda: bool(list(app.query(SettingsPanel))))
            await pilot.press("left", "space")  # from off to lookup
            await until(pilot, lambda: app.settings.guess.mode == "lookup")
            switched.set()
            await until(pilot, lambda: app.chat_view.busy is None)
            await pilot.press("escape")
            turns.extend(app.chat_view.chat.path())

    asyncio.run(go())
    assert app.engine.close()

    turn = turns[-1]
    assert turn.reply is not None
    guessers = [step.guesser for step in turn.reply.steps]
    assert "lookup" in guessers
    first = guessers.index("lookup")
    assert first > 0
    assert set(guessers[:first]) == {PLAIN}
    assert 'mode = "lookup"' in (tmp_path / "config.toml").read_text()
