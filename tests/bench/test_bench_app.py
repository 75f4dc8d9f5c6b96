"""What the full screen costs: decoding in the app against a bare session, keystrokes in a stream, the first frame."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import pytest
from textual.pilot import Pilot

from specchat.chat import Chat
from specchat.conversation import Role
from specchat.loading import EngineOptions, load_engines
from specchat.opening import reply_settings_of
from specchat.session import ChatSession, Reply
from specchat.settings import GuessSettings, SamplingSettings, Settings, SettingsFile
from specchat.tui.app import SpecchatApp
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from specchat.tui.widgets.prompt import Prompt
from speculation.llama import EngineLog
from tests.conftest import THREADS, model_file
from tests.tui.scripted import Piece, Script, app_on, engine_of

pytestmark = [pytest.mark.bench, pytest.mark.gguf, pytest.mark.pair]

QUESTION = "Why is the sky blue? Explain it in three paragraphs for a curious adult."
TOKENS = 100
ROUNDS = 3


def settings() -> Settings:
    sampling = SamplingSettings(temperature=0.0, max_tokens=TOKENS, seed=1)
    return Settings(model=str(model_file("qwen2.5-coder-1.5b")), guess=GuessSettings(mode="off"), sampling=sampling)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECCHAT_TEST_MODELS", str(model_file("smollm2-135m").parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


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


def app_paces(folder: Path) -> list[float]:
    return asyncio.run(in_the_app(folder))


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


def bare() -> list[float]:
    """Seconds a token of the same replies without a screen."""
    path = model_file("qwen2.5-coder-1.5b")
    engines = load_engines(path, EngineOptions(n_threads=THREADS), EngineLog())
    session = ChatSession(engines, reply_settings_of(settings()))
    paces = []
    for _ in range(ROUNDS):
        session.messages = []
        *_, reply = session.reply(QUESTION)
        assert isinstance(reply, Reply)
        paces.append(reply.totals.seconds / reply.totals.emitted)
    engines.close()
    return paces


def alone(what: Callable[[], list[float]]) -> list[float]:
    """What a function measures in a process of its own: a second thread that decodes would slow down both."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(what).result()


def test_decoding_in_the_app_against_a_bare_session(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without, shown = list[float](), list[float]()
    for _ in range(2):
        without += alone(bare)
        shown += alone(partial(app_paces, folder))
    ratio = median(shown) / median(without)
    with capsys.disabled():
        print(f"\nms a token: bare {median(without) * 1e3:.2f}, in the app {median(shown) * 1e3:.2f}", end="")
        print(f", ratio {ratio:.3f} (1.05)")
        print(f"  bare {[round(s * 1e3, 1) for s in without]}, app {[round(s * 1e3, 1) for s in shown]}")


STREAMS = {
    "prose": ("Because `expire()` only runs when **something** is written, the entry stays. " * 8 + "\n\n") * 25,
    "table": "| a | b | c |\n|---|---|---|\n" + "".join(f"| row {i} | value {i * i} | text |\n" for i in range(300)),
    "code": "```python\n" + "".join(f"def f{i}(x):  # {i}\n    return x + {i}\n" for i in range(1000)) + "```\n",
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_keystroke_while_300_tokens_a_second_arrive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    text = STREAMS[kind]
    tokens = re.findall(r"\s*\S{1,4}|\s+$", text)[:4000]
    app = app_on(tmp_path, Script([[Piece(token) for token in tokens]], steps_at_once=0))
    waits: list[float] = []

    async def go() -> None:
        async with app.run_test(size=(110, 34)) as pilot:
            prompt = app.query_one(Prompt)
            prompt.insert("go")
            await pilot.press("enter")
            await pilot.pause()
            engine, began, burst = engine_of(app), time.perf_counter(), 0
            while engine.is_writing:
                engine.go(15)
                burst += 1
                if burst % 5 == 0:
                    pressed = time.perf_counter()
                    prompt.insert("x")
                    await pilot.pause()  # until all that it led to is drawn
                    waits.append(time.perf_counter() - pressed)
                await asyncio.sleep(max(0.0, began + burst * 0.05 - time.perf_counter()))
            await pilot.pause()
            assert app.chat_view.transcript.views[-1].source == "".join(tokens)

    asyncio.run(go())
    waits.sort()
    with capsys.disabled():
        p95 = waits[int(0.95 * len(waits))] * 1e3
        print(f"\n{kind}: keystroke to screen median {median(waits) * 1e3:.0f} ms, p95 {p95:.0f} (100)")


def test_opening_a_chat_of_500_long_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat = Chat()
    for i in range(250):
        chat.add(Role.USER, f"Question {i}: " + "why does it do that? " * 40)
        chat.add(Role.ASSISTANT, STREAMS["prose"][:3000] + "\n\n```python\nprint(1)\n```\n")
    app = app_on(tmp_path)
    took: list[float] = []

    async def go() -> None:
        async with app.run_test(size=(110, 34)) as pilot:
            await pilot.pause()
            began = time.perf_counter()
            await app.chat_view.open(chat)
            await pilot.pause()
            took.append(time.perf_counter() - began)

    asyncio.run(go())
    with capsys.disabled():
        print(f"\nopening 500 messages of 3,000 characters: {took[0]:.2f} s (1.0)")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_first_frame_and_leaving_while_a_model_loads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, left = [], []
    for _ in range(3):
        began = time.perf_counter()
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(TERM="xterm-256color", SPECCHAT_CONFIG=str(folder / "config.toml"))
            program = [sys.executable, "-m", "specchat", "--model", str(model_file("qwen2.5-coder-1.5b"))]
            os.execv(sys.executable, program)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 34, 110, 0, 0))
        seen = b""
        while b"Type a question" not in seen:
            seen += os.read(terminal, 65536)
        first.append(time.perf_counter() - began)
        began = time.perf_counter()
        os.write(terminal, b"\x11")  # Ctrl+Q
        with suppress(OSError):  # the other end is closed
            while os.read(terminal, 65536):
                pass
        os.waitpid(child, 0)
        left.append(time.perf_counter() - began)
        os.close(terminal)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "specchat", "--help"], check=True, stdout=subprocess.DEVNULL)
    help_s = time.perf_counter() - began
    with capsys.disabled():
        print(
            f"\nfirst frame {median(first):.2f} s (1.0), leaving {max(left):.2f} s (2.0), "
            f"--help {help_s * 1e3:.0f} ms (200)"
        )
