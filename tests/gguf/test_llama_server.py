"""Chat, ask, rewrite, bench and stop against a real llama-server on this machine, with n-gram guessing on and off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from specchat import cli
from specchat.remote.client import Secret, Server
from specchat.remote.errors import RemoteError, ServerFull
from specchat.remote.figures import ServerFigures
from specchat.remote.opening import connect
from specchat.remote.session import RemoteSession
from specchat.reply import Reply, ReplySettings, Wrote
from specchat.rewrite.source import joined
from specchat.settings.endpoints import Endpoint, checked_url
from speculation.sampling import GREEDY
from speculation.types import Finish
from tests.conftest import model_file
from tests.gguf.llama_server import N_GRAMS, LlamaServer, running
from tests.specchat.remote.conftest import home

__all__ = ["home"]

pytestmark = pytest.mark.gguf

REPEAT = "Repeat three times: the quick brown fox jumps over the lazy dog near the old river bank."
LINES = [f"The {name} stands near the {place}." for name, place in zip("abcdef", "uvwxyz", strict=True)]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def guessing() -> Iterator[LlamaServer]:
    """A server that guesses with n-grams."""
    with running(model_file("smollm2-135m"), N_GRAMS) as server:
        yield server


@pytest.fixture(scope="module")
def plain() -> Iterator[LlamaServer]:
    """A server that does not guess."""
    with running(model_file("smollm2-135m")) as server:
        yield server


def session_on(server: LlamaServer, max_tokens: int | None = 60, key: str = "") -> RemoteSession:
    endpoint = Endpoint(checked_url(server.url), "test", api_key_env="TEST_KEY")
    return connect(Server(endpoint, Secret(key)), None, ReplySettings(GREEDY, 0, max_tokens))


def asked(session: RemoteSession, text: str) -> tuple[Reply, ServerFigures]:
    *pieces, reply = session.reply(text)
    assert isinstance(reply, Reply)
    assert reply.server is not None
    assert "".join(piece.text for piece in pieces if isinstance(piece, Wrote)) == reply.text
    return reply, reply.server


def test_what_is_shown_as_accepted_is_what_the_servers_log_says(guessing: LlamaServer) -> None:
    before = guessing.length
    session = session_on(guessing)
    assert session.model.facts.claims is True
    reply, figures = asked(session, REPEAT)
    guessing.wait("stop processing", after=before)
    accepted, drafted = guessing.accepted(before)
    assert (figures.accepted, figures.drafted) == (accepted, drafted)
    assert accepted > 0
    assert figures.output_tokens is not None
    assert figures.tokens_per_step == figures.output_tokens / (figures.output_tokens - accepted)
    assert reply.finish in (Finish.END, Finish.LENGTH)
    assert session.notices == []


def test_without_guessing_nothing_is_shown_as_guessed(plain: LlamaServer) -> None:
    before = plain.length
    session = session_on(plain)
    assert session.model.facts.claims is False
    _, figures = asked(session, REPEAT)
    plain.wait("stop processing", after=before)
    assert plain.accepted(before) == (0, 0)
    assert (figures.drafted, figures.accepted, figures.tokens_per_step) == (0, 0, 1.0)


def test_a_chat_goes_on_where_it_was_and_the_server_reads_only_what_is_new(guessing: LlamaServer) -> None:
    session = session_on(guessing, 20)
    asked(session, "What is a ferry?")
    second, figures = asked(session, "And a harbour?")
    assert [message.role for message in session.messages] == ["user", "assistant"] * 2
    assert second.reused_tokens > 20
    assert figures.prompt_tokens == second.reused_tokens + second.read_tokens
    assert session.model.n_ctx == 2048
    assert session.model.name.startswith("SmolLM2-135M")


def test_a_reply_that_is_cut_goes_on_as_one_run_would_have_written_it(plain: LlamaServer) -> None:
    whole, _ = asked(session_on(plain, 24), "Count from one to twenty in words.")
    session = session_on(plain, 8)
    begun, _ = asked(session, "Count from one to twenty in words.")
    assert begun.finish is Finish.LENGTH
    session.settings = ReplySettings(GREEDY, 0, 16)
    for _ in session.go_on(0):
        pass
    assert session.messages[-1].text.startswith(begun.text)
    assert session.messages[-1].text[: len(begun.text) + 8] == whole.text[: len(begun.text) + 8]


def test_a_stop_in_mid_reply_frees_the_slot_at_once(guessing: LlamaServer) -> None:
    before = guessing.length
    session = session_on(guessing, None)
    written = ""
    for event in session.reply("Write a very long story about a whale and a lighthouse."):
        if isinstance(event, Wrote):
            written += event.text
            if len(written) > 40:
                session.stop()
    assert isinstance(event, Reply)
    assert (event.finish, event.text) == (None, written)
    assert session.messages[-1].text == written
    guessing.wait("stop processing", after=before)
    following, _ = asked(session, "Now say hello.")  # in the only slot that there is
    assert following.text


def test_a_chat_that_does_not_fit_is_refused_in_one_line_and_stays_as_it_was(plain: LlamaServer) -> None:
    session = session_on(plain)
    with pytest.raises(ServerFull, match=r"longer than the context of .* exceeds the available context size"):
        list(session.reply("hello " * 3000))
    assert session.messages == []
    assert asked(session, "Say hello.")[0].text


def test_a_server_with_a_key_takes_the_right_one_only() -> None:
    with running(model_file("smollm2-135m"), ["--api-key", "sk-right-one"], n_ctx=256) as server:
        assert asked(session_on(server, 4, "sk-right-one"), "Hi")[0].text
        with pytest.raises(RemoteError, match=r"does not accept the key in TEST_KEY \(401\)") as caught:
            asked(session_on(server, 4, "sk-wrong-one"), "Hi")
        assert "sk-" not in str(caught.value)


def test_ask_shows_the_figures_of_the_log(home: Path, guessing: LlamaServer, capsys: Captured) -> None:
    before = guessing.length
    assert cli.main(["ask", REPEAT, "--endpoint", guessing.url, "--temp", "0", "--max-tokens", "60"]) == 0
    guessing.wait("stop processing", after=before)
    accepted, drafted = guessing.accepted(before)
    out, err = capsys.readouterr()
    assert "quick brown fox" in out
    assert f"accepted {accepted} of {drafted} drafted" in err


def test_a_rewrite_is_reviewed_as_ever_and_its_figures_are_those_of_the_log(
    home: Path, guessing: LlamaServer, capsys: Captured
) -> None:
    Path("a.txt").write_text(joined(LINES))
    before = guessing.length
    command = ["rewrite", "a.txt", "Change nothing at all.", "--endpoint", guessing.url, "-D", "--json", "--force"]
    assert cli.main(command) == 0
    guessing.wait("stop processing", after=before)
    accepted, drafted = guessing.accepted(before)
    found = json.loads(capsys.readouterr().out.splitlines()[0])
    figures = found["speculation"]
    assert (figures["accepted"], figures["drafted"]) == (accepted, drafted)
    assert accepted > 0
    assert figures["tokens_per_step"] > 1.5  # it copies what it reads
    assert figures["speedup"] is None
    assert Path("a.txt").read_text() == joined(LINES)


@pytest.mark.parametrize("which", ["guessing", "plain"])
def test_the_bench_counts_what_the_log_counts(
    home: Path, which: str, request: pytest.FixtureRequest, capsys: Captured
) -> None:
    server: LlamaServer = request.getfixturevalue(which)
    before = server.length
    command = ["bench", "json", "--endpoint", server.url, "--repeat", "1", "--max-tokens", "16", "--json"]
    assert cli.main(command) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    server.wait("stop processing", after=before)
    assert (cell["accepted"], cell["drafted"]) == server.accepted(before)
    assert cell["clock"] == "server"
    assert (cell["tokens_per_step"] == 1.0) is (cell["accepted"] == 0)


def test_a_piped_chat_runs_against_the_server(
    home: Path, plain: LlamaServer, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["What is a ferry?", "/stats"])

    def line(_: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", line)
    assert cli.main(["--plain", "--endpoint", plain.url, "--max-tokens", "12"]) == 0
    out, err = capsys.readouterr()
    assert len(out.split()) > 3
    assert re.search(r"context \d+ of 2048 tokens", err)
    assert "drafted 0, accepted 0, tokens per step 1.00" in err
