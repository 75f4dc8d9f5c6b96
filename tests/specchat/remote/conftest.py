"""A server that answers, and sessions on it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specchat.remote.client import Secret, Server, Timeouts
from specchat.remote.events import Limits
from specchat.remote.opening import connect
from specchat.remote.session import RemoteSession
from specchat.reply import ReplySettings
from specchat.settings.endpoints import Endpoint, checked_url
from tests.specchat.remote.chat_server import KEY, ChatServer, says, serving

Connect = Callable[..., RemoteSession]


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with serving(ChatServer(answers=[says("Hello", " there.")])) as running:
        yield running


@pytest.fixture
def session_on() -> Connect:
    """A session on a server, impatient."""

    def session_on(
        chat: ChatServer,
        settings: ReplySettings | None = None,
        *,
        silence_s: float = 20.0,
        limits: Limits | None = None,
        key: str = KEY,
        prediction: bool | None = None,
    ) -> RemoteSession:
        endpoint = Endpoint(checked_url(chat.url), "work", api_key_env="WORK_KEY", prediction=prediction)
        server = Server(endpoint, Secret(key), Timeouts(2.0, silence_s, 5.0), limits)
        return connect(server, None, settings or ReplySettings(seed=7))

    return session_on


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for all that a command reads and keeps; the path of the settings in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"SPECCHAT_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("SPECCHAT_NO_HISTORY", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    settings = tmp_path / "config.toml"
    monkeypatch.setenv("SPECCHAT_CONFIG", str(settings))
    return settings
