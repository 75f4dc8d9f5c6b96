"""The app is killed in the middle of a reply: what was written is kept, and so is what was not sent yet."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from specchat.history.packing import unpack_steps
from specchat.history.store import Store
from tests.conftest import model_file

pytestmark = [pytest.mark.gguf, pytest.mark.skipif(sys.platform == "win32", reason="terminals")]

LONGEST_S = 60.0
QUESTION = "Write a long story about a dog that travels around the world."
UNSENT = "half a thought"


class OnTerminal:
    """The app on a terminal of its own, driven by keys."""

    def __init__(self, env: dict[str, str], *args: str) -> None:
        import pty

        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "specchat", *args]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        self._screen = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def screen(self) -> str:
        """All that was drawn so far."""
        return self._screen.decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join(LONGEST_S)
        os.close(self._ours)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal says that the other side has gone
            while chunk := os.read(self._ours, 65_536):
                self._screen += chunk


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., OnTerminal]]:
    """Starts the app in a home of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPECCHAT", "XDG"))}
    env = kept | {"HOME": str(tmp_path), "SPECCHAT_DATA_DIR": str(tmp_path), "TERM": "xterm-256color"}
    model = model_file("smollm2-135m")
    started = []

    def new(*args: str) -> OnTerminal:
        flags = ("--model", str(model), "--ctx", "2048", "--guess", "off", "--threads", "1", "--temp", "0")
        started.append(OnTerminal(env, *flags, *args))
        return started[-1]

    yield new
    for each in started:
        if each.process.poll() is None:
            each.kill()


def until(holds: Callable[[], bool], app: OnTerminal) -> None:
    """Wait for another process."""
    latest = time.monotonic() + LONGEST_S
    while not holds():
        assert app.process.poll() is None, app.screen[-2000:]
        assert time.monotonic() < latest, app.screen[-2000:]
        time.sleep(0.02)


def pieces(path: Path) -> list[str]:
    """What the steps of a reply have written, as far as it is in the store."""
    with (
        contextlib.suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db,
    ):
        return [text for (text,) in db.execute("SELECT text FROM pieces ORDER BY number")]
    return []


def test_an_app_that_is_killed_in_mid_reply_loses_nothing_that_was_there(
    tmp_path: Path, start: Callable[..., OnTerminal]
) -> None:
    path = tmp_path / "chats" / "chats.db"
    app = start()
    until(lambda: "ready" in app.screen, app)
    app.type(f"{QUESTION}\r")
    until(lambda: len(pieces(path)) > 20, app)
    app.type(UNSENT)
    until(lambda: any(file.read_text() == UNSENT for file in path.parent.glob("unsent-*.txt")), app)

    written = "".join(pieces(path))
    app.kill()

    assert written  # so it was killed before the reply had ended
    with Store.open(path) as store:
        [chat] = store.chats()
        question, reply = store.load(chat.id).path()
    assert question.text == QUESTION
    assert not reply.is_finished
    assert reply.text.startswith(written)
    assert len(unpack_steps(reply.parts[0].steps)) > 20

    again = start("--resume", str(chat.id))
    until(lambda: UNSENT in again.screen and "not finished" in again.screen, again)
