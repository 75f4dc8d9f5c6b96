"""What the full screen costs: decoding in the app against a bare session, keystrokes in a stream, the first frame."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from textual.pilot import Pilot

from specchat.loading import EngineOptions, load_engines
from specchat.opening import reply_settings_of
from specchat.session import ChatSession, Reply
from specchat.settings import GuessSettings, SamplingSettings, Settings, SettingsFile
from specchat.tui.app import SpecchatApp, Start
from specchat.tui.engine_thread import Wanted
from specchat.tui.widgets.prompt import Prompt
from speculation.llama import EngineLog
from tests.conftest import THREADS, model_file

pytestmark = [pytest.mark.bench, pytest.mark.gguf, pytest.mark.pair]

QUESTION = "Why is the sky blue? Explain it in three paragraphs for a curious adult."
TOKENS = 100
ROUNDS = 3


def settings() -> Settings:
    sampling = SamplingSettings(temperature=0.0, max_tokens=TOKENS, seed=1)
    return Settings(model=str(model_file("qwen2.5-coder-1.5b")), guess=GuessSettings(mode="off"), sampling=sampling)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPECCHAT_TEST_MODELS", str(model_file("smollm2-135m").parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path


async def in_the_app(folder: Path) -> list[float]:
    """Seconds a token of replies in the app, prompt reading left out."""
    chosen = settings()
    wanted = Wanted(chosen.model, "none", "off", n_threads=THREADS)
    app = SpecchatApp(Start(chosen, chosen, SettingsFile(folder / "config.toml"), wanted), folder=folder)
    paces = []
    async with app.run_test(size=(110, 34)) as pilot:
        while app.loaded is None:
            await pilot.pause(0.1)
        for _ in range(ROUNDS):
            reply = await one_reply(app, pilot)
            paces.append(reply.totals.seconds / reply.totals.emitted)
            await app.action_new_chat()
    app.engine.close()
    return paces


async def one_reply(app: SpecchatApp, pilot: Pilot[None]) -> Reply:
    app.query_one(Prompt).insert(QUESTION)
    await pilot.press("enter")
    await pilot.pause()
    while app.chat_view.busy is not None:
        await asyncio.sleep(0.05)
    turn = app.chat_view.last_reply
    assert turn is not None
    assert turn.reply is not None
    return turn.reply


def test_decoding_in_the_app_against_a_bare_session(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engines = load_engines(
        model_file("qwen2.5-coder-1.5b"), EngineOptions(n_threads=THREADS), EngineLog(), clock=time.perf_counter
    )
    bare, shown = [], []
    for _ in range(2):
        session = ChatSession(engines, reply_settings_of(settings()))
        for _ in range(ROUNDS):
            session.messages = []
            *_, reply = session.reply(QUESTION)
            assert isinstance(reply, Reply)
            bare.append(reply.totals.seconds / reply.totals.emitted)
        shown += asyncio.run(in_the_app(folder))
    engines.close()
    with capsys.disabled():
        ratio = median(shown) / median(bare)
        print(f"\nms a token: bare {median(bare) * 1e3:.2f}, in the app {median(shown) * 1e3:.2f}, ratio {ratio:.3f} (1.05)")
        print(f"  bare {[round(s * 1e3, 1) for s in bare]}, app {[round(s * 1e3, 1) for s in shown]}")
