"""Chats with a server are kept as any other, with the name of who wrote them, and their statistics claim nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specchat import cli
from tests.specchat.remote.chat_server import KEY, ChatServer, breaks_off, delta, event

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def kept(home: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """The server as the endpoint "work", in a house where chats are kept."""
    monkeypatch.delenv("SPECCHAT_NO_HISTORY")
    home.write_text(f'[endpoints.work]\nurl = "{chat.url}"\napi_key_env = "WORK_KEY"\n')
    monkeypatch.setenv("WORK_KEY", KEY)
    return chat


def shown(capsys: Captured) -> str:
    capsys.readouterr()
    assert cli.main(["chats", "show", "last"]) == 0
    return capsys.readouterr().out


def test_a_chat_with_a_server_is_kept_with_its_model_and_host(kept: ChatServer, capsys: Captured) -> None:
    assert cli.main(["ask", "Why is that?", "--endpoint", "work"]) == 0
    assert "Hello there." in shown(capsys)
    assert cli.main(["chats", "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert f"tiny at {kept.url.removeprefix('http://')}" in listed
    assert KEY not in listed


def test_the_part_of_a_reply_that_came_before_a_server_broke_off_is_kept(kept: ChatServer, capsys: Captured) -> None:
    kept.answers = [breaks_off(event(delta("The first half")))]
    assert cli.main(["ask", "Why is that?", "--endpoint", "work"]) == 9
    assert "The first half" in shown(capsys)


def test_a_private_question_leaves_no_trace(kept: ChatServer, capsys: Captured) -> None:
    assert cli.main(["ask", "Why is that?", "--endpoint", "work", "--private"]) == 0
    capsys.readouterr()
    cli.main(["chats", "list", "--json"])
    assert "Why is that" not in capsys.readouterr().out


def test_statistics_of_kept_replies_do_without_figures_that_a_server_never_told(
    kept: ChatServer, capsys: Captured
) -> None:
    assert cli.main(["ask", "Why is that?", "--endpoint", "work"]) == 0
    capsys.readouterr()
    assert cli.main(["stats", "--json"]) in (0, 1)
    out = capsys.readouterr().out
    assert "NaN" not in out
    json.loads(out)
