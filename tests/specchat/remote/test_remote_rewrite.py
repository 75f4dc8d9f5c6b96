"""Rewriting over an endpoint: the same review and guard rails, the old file as prediction, no speed-up made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specchat import cli
from specchat.rewrite.source import joined
from tests.specchat.remote.chat_server import LAST, ChatServer, breaks_off, delta, event, refuses, says

LINES = [f"line {i} of the file says something of its own" for i in range(40)]
TEXT = joined(LINES)
NEW = TEXT.replace("line 20 of", "row 20 of")
OTHER = {"data": [{"id": "m", "owned_by": "somebody"}]}

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(home: Path, chat: ChatServer) -> Path:
    """A file to rewrite, and the server as the endpoint "work"."""
    home.write_text(f'[endpoints.work]\nurl = "{chat.url}"\nprediction = true\n')
    path = Path("a.txt").absolute()
    path.write_text(TEXT)
    return path


def rewrite(*args: str) -> int:
    return cli.main(["rewrite", "a.txt", "say row in line 20", "--endpoint", "work", *args])


def pieces(text: str) -> list[str]:
    return [text[i : i + 7] for i in range(0, len(text), 7)]


def test_a_file_is_written_again_by_a_server_that_goes_on_with_the_opening_mark(
    file: Path, chat: ChatServer, capsys: Captured
) -> None:
    chat.answers = [says(*pieces(NEW))]
    assert rewrite("-w") == 0
    assert file.read_text() == NEW
    body = chat.bodies[0]
    assert body["messages"][-1] == {"role": "assistant", "content": "<file>\n"}
    assert (body["temperature"], body["stop"], body["continue_final_message"]) == (0.0, ["</file>"], True)
    err = capsys.readouterr().err
    assert "16 tokens · 32.0 tok/s by the server · 2.67 tokens/step · accepted 10 of 16 drafted (62%)" in err
    assert " est" not in err


@pytest.mark.parametrize("reply", [f"<file>\n{NEW}", f"<file>\n{NEW}</file>", NEW, f"```\n{NEW}```\n"])
def test_a_server_that_begins_every_reply_itself_is_read_too(file: Path, chat: ChatServer, reply: str) -> None:
    chat.models = OTHER
    chat.answers = [says(*pieces(reply))]
    assert rewrite("-w") == 0
    assert file.read_text() == NEW
    assert chat.bodies[0]["messages"][-1]["role"] == "user"


def test_the_old_file_is_sent_as_the_prediction_and_once_more_without_where_that_is_refused(
    file: Path, chat: ChatServer
) -> None:
    chat.answers = [refuses(400, {"error": {"message": "prediction: unknown field"}}), says(*pieces(NEW))]
    assert rewrite("-w") == 0
    before, after = chat.bodies
    assert before["prediction"] == {"type": "content", "content": f"{TEXT}</file>"}
    assert "prediction" not in after
    assert file.read_text() == NEW


def test_counts_of_a_prediction_are_shown_and_no_speed_up(file: Path, chat: ChatServer, capsys: Captured) -> None:
    details = {"accepted_prediction_tokens": 30, "rejected_prediction_tokens": 4}
    usage = {"prompt_tokens": 90, "completion_tokens": 40, "completion_tokens_details": details}
    chat.answers = [says(*pieces(NEW), last={"choices": [], "usage": usage})]
    assert rewrite("-D", "--json") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[0])
    figures = found["speculation"]
    assert (figures["prediction_accepted"], figures["prediction_rejected"]) == (30, 4)
    assert (figures["tokens_per_step"], figures["accepted"], figures["speedup"]) == (None, None, None)
    chat.answers = [says(*pieces(NEW), last={"choices": [], "usage": usage})]
    assert rewrite("-D") == 0
    assert "prediction: 30 used, 4 not" in capsys.readouterr().err


def test_guard_rails_hold_over_an_endpoint(file: Path, chat: ChatServer) -> None:
    chat.answers = [says(*pieces(joined(LINES[:10])))]  # most of the file is gone
    assert rewrite("-w") == 5
    assert file.read_text() == TEXT


def test_a_server_that_breaks_off_costs_nothing_that_was_written_and_continue_goes_on(
    file: Path, chat: ChatServer, capsys: Captured
) -> None:
    chat.answers = [breaks_off(*(event(delta(text)) for text in pieces(joined(LINES[:30]))))]
    assert rewrite("-w") == 9
    assert file.read_text() == TEXT
    err = capsys.readouterr().err
    assert "broke off" in err
    assert "--continue` goes on" in err
    chat.answers = [says(*pieces(joined(LINES[25:])), last=None)]
    code = cli.main(["rewrite", "a.txt", "--continue", "--endpoint", "work", "-D"])
    assert code == 0
    asked = chat.bodies[-1]["messages"][0]["content"]
    assert "line 39 of" in asked
    assert "\nline 2 of the file says something of its own\nline 3 " not in asked.split("<file>")[-1]


def test_one_file_that_fails_does_not_stop_the_others(file: Path, chat: ChatServer) -> None:
    Path("b.txt").write_text(TEXT)
    chat.answers = [refuses(500), says(*pieces(NEW))]
    assert cli.main(["rewrite", "a.txt", "b.txt", "say row in line 20", "--endpoint", "work", "-w"]) == 8
    assert (file.read_text(), Path("b.txt").read_text()) == (TEXT, NEW)


def test_a_plan_asks_no_server(file: Path, chat: ChatServer, capsys: Captured) -> None:
    assert rewrite("--dry-run") == 0
    assert chat.seen == []
    assert "40 lines, about " in capsys.readouterr().out


def test_the_bench_has_a_row_for_each_workload_and_no_speed_up(file: Path, chat: ChatServer, capsys: Captured) -> None:
    assert cli.main(["bench", "code", "--endpoint", "work", "--repeat", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (cell,) = found["cells"]
    replies = len(chat.bodies)
    assert replies % 2 == 0
    assert (cell["drafted"], cell["accepted"], cell["tokens"]) == (16 * replies, 10 * replies, 8 * replies)
    assert (cell["clock"], cell["tokens_per_s"], found["speedup"]) == ("server", 32.0, None)
    assert all(body["temperature"] == 0.0 for body in chat.bodies)


def test_the_bench_says_what_is_not_reported(file: Path, chat: ChatServer, capsys: Captured) -> None:
    usage = {"choices": [], "usage": LAST["usage"]}
    chat.answers = [says("a", "b", last=usage)]
    assert cli.main(["bench", "code", "--endpoint", "work", "--repeat", "1", "--csv", "cells.csv"]) == 0
    out, err = capsys.readouterr()
    row = out.splitlines()[1]
    assert "seen here" in row
    assert "not reported" in row
    assert "no speed-up" in err
    assert Path("cells.csv").read_text().startswith("workload,tokens,")


@pytest.mark.parametrize("wrong", [["acceptance"], ["code", "--assert", "auto.speedup>1"]])
def test_the_bench_refuses_what_a_server_cannot_tell(file: Path, chat: ChatServer, wrong: list[str]) -> None:
    assert cli.main(["bench", *wrong, "--endpoint", "work"]) == 2
    assert chat.seen == []
