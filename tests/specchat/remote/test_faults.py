"""Servers that fail: one clear line, the right exit code, what came is kept, and no key anywhere."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from specchat import cli
from specchat.remote.client import Secret, Server
from specchat.remote.errors import RemoteError, ServerFull
from specchat.remote.events import Limits
from specchat.settings.endpoints import Endpoint
from tests.specchat.remote.chat_server import (
    KEY,
    Answer,
    ChatServer,
    Handler,
    breaks_off,
    delta,
    ends,
    event,
    falls_silent,
    free_port,
    never_ends,
    refuses,
    says,
    sends,
    serving,
)
from tests.specchat.remote.conftest import Connect

HALF = event(delta("The answer is né"))


def cuts_in_mid_character(handler: Handler) -> None:
    whole = event(delta("é"))
    breaks_off(HALF, whole[: whole.index("é".encode()) + 1])(handler)


def resets(handler: Handler) -> None:
    handler.begin()
    handler.chunk(HALF)
    handler.cut()


MIDDLE: dict[str, tuple[Answer, str]] = {
    "cut in mid-character": (cuts_in_mid_character, "broke off"),
    "cut in mid-event": (breaks_off(HALF, b'data: {"choices": [{"del'), "broke off"),
    "reset": (resets, "broke off"),
    "an end without an end": (sends(HALF), "ended the reply without saying that it is complete"),
    "an end in mid-event": (sends(HALF, b'data: {"choices"'), "broke off in the middle"),
    "garbage": (sends(HALF, b"data: <html>\xff\xfe</html>\n\n"), "no part of a reply"),
    "no object": (sends(HALF, event("[1, 2]")), "no part of a reply"),
    "an error inside": (
        sends(HALF, event({"error": {"message": f"out of memory for {KEY}"}})),
        r"broke off: out of memory for \*\*\*",
    ),
    "a line without end": (sends(HALF, b"data: " + b"x" * 5000), "a line of more than 1000 bytes"),
    "an event without end": (sends(HALF, b"data: xxxxxxxx\n" * 900), "an event of more than 3000 bytes"),
    "a reply that never ends": (never_ends(HALF), "sends without end"),
    "withheld": (sends(HALF, event(ends("content_filter"))), "withholds the rest"),
}
LIMITS = Limits(line=1000, event=3000, total=1 << 20)


@pytest.mark.parametrize("fault", MIDDLE)
def test_what_came_before_a_fault_is_kept_and_one_line_says_what_happened(
    chat: ChatServer, session_on: Connect, fault: str
) -> None:
    answer, said = MIDDLE[fault]
    chat.answers = [answer]
    session = session_on(chat, limits=LIMITS)
    shown = ""

    def read() -> None:
        nonlocal shown
        for each in session.reply("Why?"):
            shown += getattr(each, "text", "")

    with pytest.raises(RemoteError, match=said) as caught:
        read()
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 9
    assert shown.startswith("The answer is né")
    assert [message.text for message in session.messages] == ["Why?", shown]
    chat.answers = [says("Better.")]
    *_, reply = session.reply("Again?")
    assert getattr(reply, "text", "") == "Better."


def test_a_silent_server_is_left_and_what_it_said_is_kept(chat: ChatServer, session_on: Connect) -> None:
    chat.answers = [falls_silent(HALF)]
    session = session_on(chat, silence_s=0.2)
    with pytest.raises(RemoteError, match=r"has said nothing for 0\.2 s"):
        list(session.reply("Why?"))
    assert session.messages[-1].text == "The answer is né"
    assert chat.left.wait(10)


def test_a_slow_server_is_waited_for_as_long_as_it_says_something(chat: ChatServer, session_on: Connect) -> None:
    data = b"".join(map(event, [delta("slow"), ends(), "[DONE]"]))
    chat.answers = [sends(*(data[i : i + 1] for i in range(len(data))))]  # a byte a chunk
    *_, reply = session_on(chat).reply("Why?")
    assert getattr(reply, "text", "") == "slow"


REFUSED: dict[str, tuple[Answer, int, str]] = {
    "401": (refuses(401, {"error": {"message": f"bad key {KEY}"}}), 9, "does not accept the key in WORK_KEY (401)"),
    "403": (refuses(403), 9, "does not accept the key in WORK_KEY (403)"),
    "404": (refuses(404, {"error": {"message": "no model m"}}), 9, "(404): no model m; check url and model"),
    "429": (refuses(429, b"", {"Retry-After": "17"}), 9, "is asked too often (429); try again in 17 s"),
    "429 without a time": (refuses(429), 9, "is asked too often (429); try again later"),
    "500": (refuses(500, {"detail": "worker died\n\x1b[31m"}), 9, "failed (500): worker died"),
    "502 with a page": (refuses(502, b"<html>Bad gateway</html>", {"Content-Type": "text/html"}), 9, "failed (502)"),
    "503": (refuses(503, {"error": {"message": "Loading model"}}), 9, "is not ready (503): Loading model"),
    "400": (refuses(400, {"error": {"message": "no such field"}}), 9, "does not take the request (400): no such field"),
    "too long": (
        refuses(400, {"error": {"message": "request (6031 tokens) exceeds", "type": "exceed_context_size_error"}}),
        3,
        "longer than the context of",
    ),
    "elsewhere": (refuses(307, b"", {"Location": "https://evil.example/v1"}), 9, "sends on to https://evil.example/v1"),
    "a web page": (sends(b"<html>hello</html>", kind="text/html"), 9, "answers with text/html and no reply"),
    "compressed": (refuses(200, b"\x1f\x8b", {"Content-Encoding": "gzip"}), 9, "sends compressed"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_refusal_is_one_line_with_the_right_exit_code_and_the_chat_is_as_it_was(
    chat: ChatServer, session_on: Connect, fault: str
) -> None:
    answer, code, said = REFUSED[fault]
    session = session_on(chat)
    chat.answers = [answer]
    with pytest.raises((RemoteError, ServerFull)) as caught:
        list(session.reply("Why?"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == code
    assert session.messages == []
    assert len(chat.bodies) == 1


def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(session_on: Connect, chat: ChatServer) -> None:
    with serving(ChatServer(answers=[says("Gotcha.")])) as other:
        session = session_on(chat)
        chat.answers = [refuses(308, b"", {"Location": f"{other.url}/v1/chat/completions"})]
        with pytest.raises(RemoteError, match="sends on to"):
            list(session.reply("Why?"))
        assert other.seen == []


@pytest.mark.parametrize("fault", [*MIDDLE, *REFUSED])
def test_the_key_is_in_no_message_no_traceback_no_repr_and_no_log(
    chat: ChatServer, session_on: Connect, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    chat.answers = [MIDDLE[fault][0] if fault in MIDDLE else REFUSED[fault][0]]
    with caplog.at_level(logging.DEBUG):
        session = session_on(chat, limits=LIMITS)
        with pytest.raises((RemoteError, ServerFull)) as caught:
            list(session.reply("Why?"))
    assert any(headers.get("authorization") == f"Bearer {KEY}" for _, headers in chat.seen)
    error = caught.value
    ours = error.__traceback__.tb_next if error.__traceback__ else None  # without this test, whose server has seen it
    told = [
        str(error),
        repr(error),
        "".join(traceback.TracebackException(type(error), error, ours, capture_locals=True).format()),
        repr([session, vars(session), vars(session._server), session.model, vars(session.model)]),
        caplog.text,
    ]
    assert KEY not in "\n".join(told)


def test_a_key_shows_itself_to_nobody() -> None:
    key = Secret(KEY)
    assert KEY not in f"{key} {key!r} {[key]}"
    assert key.hidden_in(f"wrong: {KEY}!") == "wrong: ***!"
    assert Secret("").hidden_in("nothing") == "nothing"
    assert not Secret("")
    assert not hasattr(key, "__dict__")


def run(*args: str) -> int:
    return cli.main(args)


@pytest.fixture
def work(home: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """The server as the endpoint "work" of the settings, with a key."""
    home.write_text(f'[endpoints.work]\nurl = "{chat.url}"\napi_key_env = "WORK_KEY"\n')
    monkeypatch.setenv("WORK_KEY", KEY)
    return chat


Captured = pytest.CaptureFixture[str]


def test_ask_says_where_text_goes_and_what_it_took(work: ChatServer, capsys: Captured) -> None:
    assert run("ask", "Why?", "--endpoint", "work") == 0
    out, err = capsys.readouterr()
    assert out == "Hello there.\n"
    where, figures = err.splitlines()
    assert where == f"what you write is sent to a server on this machine ({work.url.removeprefix('http://')})"
    assert figures.startswith(
        "16 tokens · 32.0 tok/s by the server · 2.67 tokens/step · accepted 10 of 16 drafted (62%)"
    )
    assert KEY not in out + err


def test_ask_as_json_has_null_for_what_is_not_reported(work: ChatServer, capsys: Captured) -> None:
    work.answers = [says("Fine.", last=None)]
    assert run("ask", "Why?", "--endpoint", "work", "--json", "--seed", "5") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["seed"], found["model"]) == ("Fine.", 5, "tiny")
    assert found["usage"] == {"prompt_tokens": None, "cached_tokens": None, "output_tokens": None}
    assert found["speculation"]["tokens_per_step"] is found["speculation"]["speedup"] is None


def test_what_is_not_reported_is_said_to_be_so(work: ChatServer, capsys: Captured) -> None:
    work.answers = [says("Fine.", last=None)]
    assert run("ask", "Why?", "--endpoint", "work", "--seed", "5") == 0
    assert "tokens not reported · guesses not reported · seed 5 · prompt not reported" in capsys.readouterr().err


def test_ask_keeps_the_part_that_came_and_ends_with_9(work: ChatServer, capsys: Captured) -> None:
    work.answers = [breaks_off(HALF)]
    assert run("ask", "Why?", "--endpoint", "work") == 9
    out, err = capsys.readouterr()
    assert out == "The answer is né\n"
    assert [line for line in err.splitlines() if line.startswith("specchat: ")] == [err.splitlines()[-1]]
    assert run("ask", "Why?", "--endpoint", "work", "--json") == 9
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["finish"]) == ("The answer is né", "failed")
    assert "broke off" in found["error"]


@pytest.mark.parametrize(
    ("answer", "code"), [(refuses(401), 9), (refuses(500), 9), (breaks_off(HALF), 9), (says("x", finish="length"), 3)]
)
def test_a_piped_chat_ends_with_the_code_of_what_went_wrong(
    work: ChatServer, capsys: Captured, monkeypatch: pytest.MonkeyPatch, answer: Answer, code: int
) -> None:
    lines = iter(["Why?"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    work.answers = [answer]
    assert run("--plain", "--endpoint", "work") == code
    assert KEY not in "".join(capsys.readouterr())


def test_a_server_that_is_not_there_is_said_to_be_so(home: Path, capsys: Captured) -> None:
    assert run("ask", "Why?", "--endpoint", f"http://127.0.0.1:{free_port()}") == 9
    assert "cannot be reached: Connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "said"), [(401, "wants a key (401); [endpoints.NAME] in the settings"), (404, "(404)")]
)
def test_a_list_of_models_that_is_refused_is_one_line(
    home: Path, chat: ChatServer, capsys: Captured, status: int, said: str
) -> None:
    chat.models = status
    assert run("ask", "Why?", "--endpoint", chat.url) == 9
    assert said in capsys.readouterr().err
    assert chat.bodies == []


def test_a_server_without_a_list_is_asked_for_the_model_that_was_named(
    home: Path, chat: ChatServer, capsys: Captured
) -> None:
    chat.models = 404
    assert run("ask", "Why?", "--endpoint", chat.url, "-m", "mine") == 0
    assert chat.bodies[0]["model"] == "mine"
    assert "authorization" not in chat.seen[0][1]


def test_nothing_connects_to_an_endpoint_that_was_not_chosen(
    work: ChatServer, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(args: object) -> object:
        raise RemoteError("it was to be answered here")

    monkeypatch.setattr("specchat.opening.open_here", here)
    assert run("ask", "Why?") == 9
    assert work.seen == []


def test_a_proxy_of_the_environment_sees_nothing_of_a_server_on_this_machine(
    work: ChatServer, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert run("ask", "Why?", "--endpoint", "work") == 0


def test_a_server_asks_for_nothing_beyond_its_own_host(chat: ChatServer) -> None:
    server = Server(Endpoint(chat.url + "/v1"), Secret(KEY))
    chat.pages["/slots"] = [{"speculative": True}]
    assert server.data("/slots", at_root=True) == [{"speculative": True}]
    assert server.data("/models") == chat.models


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_ends_a_silent_reply_at_once_with_its_code_and_the_server_notices(work: ChatServer) -> None:
    work.answers = [falls_silent(HALF)]
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "specchat", "ask", "Why?", "--endpoint", "work"]
    paths = os.pathsep.join([str(root / "app"), str(root)])
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"},
    )
    assert process.stdout is not None
    begun = process.stdout.read(len("The answer is né".encode()))
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (begun + rest).decode() == "The answer is né\n"
    assert work.left.wait(10)
    assert b"Traceback" not in err
