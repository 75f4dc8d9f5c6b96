"""The app with a server in place of a model: real threads and sockets, on this machine only."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from specchat.folders import history_path
from specchat.history.store import Store
from specchat.settings import Settings, SettingsFile
from specchat.settings.endpoints import Endpoint, checked_url
from specchat.tui.app import SpecchatApp
from specchat.tui.command import endpoint_of
from specchat.tui.notes import remote_mark, title_line
from specchat.tui.screens.models import ModelScreen
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.rewriting import RewritingScreen
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from specchat.tui.widgets.status import Status
from tests.specchat.remote.chat_server import (
    KEY,
    Answer,
    ChatServer,
    breaks_off,
    delta,
    event,
    falls_silent,
    free_port,
    refuses,
    says,
    serving,
    texts,
)
from tests.tui.driving import ask, drive, told
from tests.tui.driving import texts as said

HALF = event(delta("The first half"))
TURNS = 3000  # of the loop below, in which nothing here takes a second

Steps = Callable[[Pilot[None], SpecchatApp], Awaitable[None]]


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    for name in ("STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"SPECCHAT_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("WORK_KEY", KEY)
    with serving(ChatServer(answers=[says("Hello", " there.")])) as running:
        (tmp_path / "config.toml").write_text(f'[endpoints.work]\nurl = "{running.url}"\napi_key_env = "WORK_KEY"\n')
        yield running


def host_of(chat: ChatServer) -> str:
    return chat.url.removeprefix("http://")


def app_at(tmp_path: Path, chat: ChatServer | None, settings: Settings | None = None) -> SpecchatApp:
    """The app with the real engine's thread: on the server, or on a model that is nowhere."""
    chosen = settings or Settings()
    endpoint = None if chat is None else Endpoint(checked_url(chat.url), "work", api_key_env="WORK_KEY")
    wanted = Wanted(str(tmp_path / "missing.gguf")) if endpoint is None else Wanted(endpoint=endpoint)
    file = SettingsFile(tmp_path / "config.toml")
    start = Start(chosen, chosen, file, wanted, history=history_path())
    return SpecchatApp(start, now=lambda: datetime(2026, 11, 29, 12, 4), folder=tmp_path)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(TURNS):
        await pilot.pause(0.01)
        if holds():
            return
    raise AssertionError("it did not come to that")


def run(app: SpecchatApp, steps: Steps, size: tuple[int, int] = (110, 32)) -> None:
    """Drive an app whose server has answered who it is, and end its thread."""

    async def go(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: app.loaded is not None)
        await steps(pilot, app)

    try:
        drive(app, go, size)
    finally:
        app.end_chats()
        assert app.engine.close()


async def answered(pilot: Pilot[None], app: SpecchatApp, text: str) -> None:
    await ask(pilot, text)
    await until(pilot, lambda: app.chat_view.busy is None)


def screen(app: SpecchatApp) -> str:
    """All that is on the screen as text."""
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


def title(app: SpecchatApp) -> str:
    return str(app.query_one("#title", Static).content)


def status(app: SpecchatApp) -> str:
    return str(app.query_one(Status).render())


def test_a_reply_of_a_server_streams_into_the_chat_with_what_the_server_reports(
    tmp_path: Path, chat: ChatServer
) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")
        assert said(app) == ["Why?", "Hello there."]
        view = app.chat_view.transcript.views[-1]
        assert view.who == f"tiny at {host_of(chat)}"
        assert "2.67 tokens/step" in view.figures
        assert "accepted 10 of 16 drafted" in view.figures
        assert "2.67/step" in status(app)
        panel = screen(app)
        assert "tok/s seen" in panel
        assert "drafted" in panel

    run(app_at(tmp_path, chat), steps)
    assert texts(chat.bodies[0]["messages"]) == [("user", "Why?")]


def test_what_a_server_does_not_report_is_said_to_be_so(tmp_path: Path, chat: ChatServer) -> None:
    chat.answers = [says("Fine.", last=None)]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")
        assert "guesses not reported" in app.chat_view.transcript.views[-1].figures
        assert "tokens/step not reported" in status(app)
        assert screen(app).count("not reported") > 5
        assert "0.00" not in screen(app)

    run(app_at(tmp_path, chat), steps)


@pytest.mark.parametrize("size", [(110, 32), (80, 24), (40, 12), (20, 5)])
def test_where_text_goes_is_on_the_screen_at_every_size(
    tmp_path: Path, chat: ChatServer, size: tuple[int, int]
) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        mark = "server on this machine" if size[0] >= 40 else "local server"
        assert mark in screen(app)
        await answered(pilot, app, "Why?")
        assert mark in screen(app)

    run(app_at(tmp_path, chat), steps, size)


def test_a_server_elsewhere_is_marked_with_its_host_before_all_else_in_the_line() -> None:
    far = Endpoint("https://gpu.example:8000/v1", "far")
    assert remote_mark(None, 80) == ""
    line = title_line("a chat", "tiny", 78, mark=remote_mark(far, 80))
    assert line.startswith("remote: gpu.example:8000  a chat")
    assert line.endswith("tiny")
    narrow = title_line("a chat", "tiny", 18, mark=remote_mark(far, 20))
    assert narrow == "remote: gpu.examp\u2026"
    assert title_line("a chat", "tiny", 60, kept=False, mark=remote_mark(far, 62)).startswith(
        "remote: gpu.example:8000  private"
    )


def test_where_text_goes_is_told_once_when_the_server_has_answered(tmp_path: Path, chat: ChatServer) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.pause()
        where = f"what you write is sent to a server on this machine ({host_of(chat)})"
        assert told(app).count(where) == 1

    run(app_at(tmp_path, chat), steps)


def test_esc_stops_a_silent_reply_keeps_what_came_and_the_server_notices(tmp_path: Path, chat: ChatServer) -> None:
    chat.answers = [falls_silent(HALF), says("Again.")]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "Why?")
        await until(pilot, lambda: app.chat_view.transcript.views[-1].source == "The first half")
        await pilot.press("escape")
        await until(pilot, lambda: app.chat_view.busy is None)
        assert said(app) == ["Why?", "The first half"]
        assert app.chat_view.transcript.views[-1].figures.startswith("stopped")
        await answered(pilot, app, "And?")
        assert said(app)[-1] == "Again."

    run(app_at(tmp_path, chat), steps)
    assert chat.left.wait(10)


FAULTS: dict[str, tuple[Answer, str, str]] = {
    "cut in mid-reply": (breaks_off(HALF), "broke off", "The first half"),
    "401": (refuses(401, {"error": {"message": f"bad key {KEY}"}}), "does not accept the key in WORK_KEY (401)", ""),
    "429": (refuses(429, b"", {"Retry-After": "17"}), "is asked too often (429); try again in 17 s", ""),
    "500": (refuses(500, {"detail": "worker died\n\x1b[31m"}), "failed (500): worker died", ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_what_came_stays_and_the_next_question_is_answered(
    tmp_path: Path, chat: ChatServer, fault: str
) -> None:
    answer, line, kept = FAULTS[fault]
    chat.answers = [answer, says("Better.")]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")
        assert sum(line in each for each in told(app)) == 1
        assert KEY not in screen(app) + "".join(told(app))
        assert "\x1b" not in screen(app)
        if kept:
            assert said(app) == ["Why?", kept]
        else:
            assert said(app) == []
            assert app.composer.prompt.text == "Why?"  # to be sent again
            app.composer.clear()
        await answered(pilot, app, "Again?")
        assert said(app)[-1] == "Better."

    run(app_at(tmp_path, chat), steps)


def test_a_reply_is_redone_and_a_question_edited_as_branches(tmp_path: Path, chat: ChatServer) -> None:
    chat.answers = [says("One."), says("Two."), says("Three.")]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.chat_view.busy is None and said(app)[-1] == "Two.")
        view = app.chat_view
        assert [turn.text for turn in view.chat.siblings(view.chat.path()[1])] == ["One.", "Two."]
        view.editing = view.chat.path()[0]
        await answered(pilot, app, "Why not?")
        assert said(app) == ["Why not?", "Three."]
        assert len(view.chat.siblings(view.chat.path()[0])) == 2

    run(app_at(tmp_path, chat), steps)
    assert [texts(body["messages"])[-1][1] for body in chat.bodies] == ["Why?", "Why?", "Why not?"]


def test_an_attached_file_goes_with_the_question(tmp_path: Path, chat: ChatServer) -> None:
    (tmp_path / "notes.txt").write_text("the sky is green\n")

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.composer.attach_file("notes.txt")
        await pilot.pause()
        await answered(pilot, app, "Why?")

    run(app_at(tmp_path, chat), steps)
    assert "the sky is green" in chat.bodies[0]["messages"][-1]["content"]


def test_a_reply_that_was_begun_is_gone_on_with(tmp_path: Path, chat: ChatServer) -> None:
    chat.answers = [breaks_off(HALF), says(" and the second.")]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")
        await app.action_go_on()
        await until(pilot, lambda: app.chat_view.busy is None)
        assert said(app)[-1] == "The first half and the second."
        assert app.chat_view.transcript.views[-1].source == "The first half and the second."

    run(app_at(tmp_path, chat), steps)
    assert chat.bodies[1]["continue_final_message"] is True


NEEDS_A_MODEL_HERE = {
    "/guess lookup": "who guesses is chosen",
    "/draft": "a draft model is loaded",
    "/try": "a draft model is tried",
    "/check": "a reply is checked",
    "/steps": "tells no steps",
    "/tint token": "does not tell what it guessed",
}


@pytest.mark.parametrize("command", NEEDS_A_MODEL_HERE)
def test_what_a_server_cannot_do_says_so_in_one_line(tmp_path: Path, chat: ChatServer, command: str) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")
        before = len(told(app))
        await app.run_command(command)
        await pilot.pause()
        assert [NEEDS_A_MODEL_HERE[command] in line for line in told(app)[before:]] == [True]
        assert len(app.screen_stack) == 1

    run(app_at(tmp_path, chat), steps)
    assert len(chat.bodies) == 1


def test_settings_of_guessing_are_kept_for_models_that_run_here_and_not_for_that_of_a_server(
    tmp_path: Path, chat: ChatServer
) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.change(replace(app.settings, guess=replace(app.settings.guess, mode="lookup")))
        await pilot.pause()
        assert any("decides itself who guesses" in line for line in told(app))
        assert app.settings.guess.mode == "lookup"
        assert app.settings.targets == {}
        await answered(pilot, app, "Why?")
        assert said(app)[-1] == "Hello there."

    run(app_at(tmp_path, chat), steps)


def test_nothing_of_a_question_is_sent_while_it_is_typed(tmp_path: Path, chat: ChatServer) -> None:
    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        asked = len(chat.seen)
        await pilot.press(*"a secret")
        assert app._ahead_due is None
        assert len(chat.seen) == asked
        assert chat.bodies == []

    run(app_at(tmp_path, chat), steps)


def test_the_list_of_models_offers_servers_and_connects_to_none_before_one_is_chosen(
    tmp_path: Path, chat: ChatServer
) -> None:
    async def go(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: bool(told(app)))  # that there is no such file
        app.action_models()
        await until(pilot, lambda: isinstance(app.screen, ModelScreen) and bool(app.screen.query(DataTable)))
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.row_count > 0)
        table.move_cursor(row=table.row_count - 1)
        await pilot.pause()
        about = str(app.screen.query_one("#models-about", Static).content)
        assert about.startswith(f"work: a server on this machine ({host_of(chat)})")
        assert chat.seen == []
        await pilot.press("enter")
        await until(pilot, lambda: app.loaded is not None)
        assert "server on this machine" in title(app)
        await answered(pilot, app, "Why?")
        assert said(app)[-1] == "Hello there."

    app = app_at(tmp_path, None)
    try:
        drive(app, go)
    finally:
        app.end_chats()
        assert app.engine.close()


def test_a_server_that_is_not_there_is_one_line_and_the_app_lives(tmp_path: Path, chat: ChatServer) -> None:
    gone = Endpoint(f"http://127.0.0.1:{free_port()}/v1", "gone")

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.load_model(Wanted(endpoint=gone))
        await until(pilot, lambda: any("cannot be reached" in line for line in told(app)))
        assert app.loaded is not None
        await answered(pilot, app, "Why?")  # by the server from before
        assert said(app)[-1] == "Hello there."

    run(app_at(tmp_path, chat), steps)


def test_esc_ends_the_wait_for_a_server_that_says_nothing(tmp_path: Path, chat: ChatServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", "mute")

        async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
            app.load_model(Wanted(endpoint=mute))
            await until(pilot, lambda: app.engine.is_connecting)
            asked = silent.accept()[0]
            assert asked.recv(1000)
            await pilot.press("escape")
            await until(pilot, lambda: any("was stopped" in line for line in told(app)))
            asked.close()
            await answered(pilot, app, "Why?")  # by the server from before
            assert said(app)[-1] == "Hello there."

        run(app_at(tmp_path, chat), steps)


def test_a_key_that_is_missing_is_said_before_anything_is_sent(
    tmp_path: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORK_KEY")

    async def go(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: any("WORK_KEY is not set" in line for line in told(app)))
        assert app.loaded is None

    app = app_at(tmp_path, chat)
    drive(app, go)
    app.end_chats()
    assert app.engine.close()
    assert chat.seen == []


def test_from_a_server_to_a_model_that_runs_here_and_back(
    tmp_path: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.gguf import tiny

    path = tiny.write_attention(tmp_path / "target.gguf")
    settings = replace(Settings(), context=replace(Settings().context, size=1024, threads=1))
    settings = replace(settings, sampling=replace(settings.sampling, max_tokens=8, seed=3, temperature=0.0))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "one two three")
        app.load_model(Wanted(str(path)))
        await until(pilot, lambda: app.loaded is not None and not app.loaded.is_remote)
        assert "server" not in title(app)
        await answered(pilot, app, "one two three one two")
        reply = app.chat_view.chat.path()[-1].reply
        assert reply is not None
        assert reply.server is None
        assert reply.totals.emitted
        app.load_model(Wanted(endpoint=Endpoint(checked_url(chat.url), "work", api_key_env="WORK_KEY")))
        await until(pilot, lambda: app.loaded is not None and app.loaded.is_remote)
        await answered(pilot, app, "and now?")
        assert said(app)[-1] == "Hello there."

    run(app_at(tmp_path, chat, settings), steps)


def test_a_restored_reply_of_a_server_claims_no_figures(tmp_path: Path, chat: ChatServer) -> None:
    async def write(pilot: Pilot[None], app: SpecchatApp) -> None:
        await answered(pilot, app, "Why?")

    async def look(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.open_stored(chat_id)
        await until(pilot, lambda: said(app) == ["Why?", "Hello there."])
        view = app.chat_view.transcript.views[-1]
        assert view.who == f"tiny at {host_of(chat)}"
        assert "tokens not reported" in view.figures
        assert "0 tok" not in view.figures
        await app.run_command("/steps")
        await pilot.pause()
        assert any("tells no steps" in line for line in told(app))

    run(app_at(tmp_path, chat), write)
    with Store.open(history_path()) as store:
        chat_id = store.chats()[0].id
    run(app_at(tmp_path, chat), look)


def test_a_file_is_rewritten_by_a_server_and_reviewed(tmp_path: Path, chat: ChatServer) -> None:
    old = "alpha = 1\nbeta = 2\n"
    (tmp_path / "notes.py").write_text(old)
    chat.answers = [says("```python\nalpha = 1\nbeta = 3\n```")]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("f4")
        await pilot.pause()
        await pilot.press(*"notes.py", "enter", *"raise beta", "enter")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert (tmp_path / "notes.py").read_text() == old
        await pilot.press("a", "w")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert (tmp_path / "notes.py").read_text() == "alpha = 1\nbeta = 3\n"

    run(app_at(tmp_path, chat), steps)


def test_esc_stops_a_rewrite_by_a_server(tmp_path: Path, chat: ChatServer) -> None:
    (tmp_path / "notes.py").write_text("alpha = 1\nbeta = 2\n")
    chat.answers = [falls_silent(event(delta("```python\nalpha = 1\n")))]

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("f4")
        await pilot.pause()
        await pilot.press(*"notes.py", "enter", *"raise beta", "enter")
        await until(pilot, lambda: isinstance(app.screen, RewritingScreen) and len(chat.bodies) == 1)
        await pilot.press("escape")
        await until(pilot, chat.left.is_set)

    run(app_at(tmp_path, chat), steps)
    assert (tmp_path / "notes.py").read_text() == "alpha = 1\nbeta = 2\n"


def test_an_endpoint_is_named_or_an_address_and_a_wrong_one_is_refused(tmp_path: Path, chat: ChatServer) -> None:
    file = SettingsFile(tmp_path / "config.toml")
    assert endpoint_of("work", file).host == host_of(chat)
    assert endpoint_of(chat.url, file).name == "work"
    with pytest.raises(Exception, match="no endpoint is named 'wrok'; did you mean work"):
        endpoint_of("wrok", file)
    assert chat.seen == []


@pytest.mark.gguf
def test_a_real_server_streams_is_stopped_in_mid_reply_and_answers_again_with_its_own_figures(
    tmp_path: Path, chat: ChatServer
) -> None:
    from tests.conftest import model_file
    from tests.gguf.llama_server import N_GRAMS, running

    with running(model_file("smollm2-135m"), N_GRAMS) as server:
        real = ChatServer(url=server.url)
        settings = replace(Settings(), sampling=replace(Settings().sampling, temperature=0.0, seed=0))

        async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
            await ask(pilot, "Count from one to five hundred.")
            await until(pilot, lambda: len(app.chat_view.transcript.views[-1].source) > 10)
            before = server.length
            await pilot.press("escape")
            await until(pilot, lambda: app.chat_view.busy is None)
            assert said(app)[-1]
            server.wait("stop processing", after=before)  # its slot is free again
            before = server.length
            await answered(pilot, app, "Repeat three times: the quick brown fox jumps over the lazy dog.")
            reply = app.chat_view.chat.path()[-1].reply
            assert reply is not None
            assert reply.server is not None
            server.wait("stop processing", after=before)
            assert server.accepted(before) == (reply.server.accepted, reply.server.drafted)
            assert "tokens/step" in app.chat_view.transcript.views[-1].figures

        limited = replace(settings, sampling=replace(settings.sampling, max_tokens=200))
        run(app_at(tmp_path, real, limited), steps)
