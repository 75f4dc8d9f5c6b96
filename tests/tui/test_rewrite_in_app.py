"""F4 and `/rewrite` from the question to the file on disk, on a real session over a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot

from specchat.folders import refused_folder
from specchat.session import ChatSession
from specchat.settings import Settings, SettingsFile
from specchat.tui import review_words
from specchat.tui.app import SpecchatApp
from specchat.tui.engine_thread import EngineJob
from specchat.tui.screens.question import Question
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.rewriting import RewritingScreen
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from tests.specchat.rewrite.scripted import Script as Writes
from tests.specchat.rewrite.scripted import ScriptedModel, edited, session_on
from tests.tui.scripted import Script, ScriptedEngine
from tests.tui.test_app import drive

TEXT = "alpha = 1\nbeta = 2\ngamma = 3\n" + "".join(f"line {i}\n" for i in range(20)) + "omega = 9\n"


class RewritingEngine(ScriptedEngine):
    """Runs the jobs at once."""

    writes: Writes
    before: Callable[[EngineJob], None] = staticmethod(lambda job: None)
    prepared: Callable[[ScriptedModel], None] = staticmethod(lambda model: None)
    n_ctx = 20_000
    limit: int | None = None  # tokens of a reply
    session: ChatSession | None = None  # one for all, so that what was begun can go on

    def rewrite(self, job: EngineJob) -> None:
        self.before(job)
        if self.session is None:
            model = ScriptedModel(self.writes, self.n_ctx)
            self.prepared(model)
            self.session = session_on(model, max_tokens=self.limit)
        cast(ScriptedModel, self.session.engines.target).script = self.writes
        job.run(self.session, self._post, lambda: None)


def app_that(tmp_path: Path, writes: Writes) -> SpecchatApp:
    def engine(post: object, settings: object) -> RewritingEngine:
        made = RewritingEngine(post, settings, Script())  # type: ignore[arg-type]
        made.writes = writes
        return made

    start = Start(Settings(), Settings(), SettingsFile(tmp_path / "config.toml"), Wanted())
    return SpecchatApp(start, engine=engine, folder=tmp_path)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config.toml"))


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(200):
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        if holds():
            return
    raise AssertionError("it did not come to that")


async def asked(pilot: Pilot[None], app: SpecchatApp) -> None:
    await pilot.press("f4")
    await pilot.pause()
    await pilot.press(*"notes.py", "enter", *"rename", "enter")


def test_a_file_is_rewritten_reviewed_and_written_with_only_what_was_accepted(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_bytes(TEXT.replace("\n", "\r\n").encode())
    change = edited(lambda text: text.replace("beta = 2", "beta = 20").replace("omega = 9", "omega = 90"))
    app = app_that(tmp_path, change)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await asked(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert file.read_bytes() == TEXT.replace("\n", "\r\n").encode()
        await pilot.press("y", "n", "w")
        await until(pilot, lambda: b"beta = 20" in file.read_bytes())

    drive(app, keys)
    assert file.read_bytes() == TEXT.replace("beta = 2\n", "beta = 20\n").replace("\n", "\r\n").encode()


def test_nothing_to_change_says_so_and_leaves_the_chat(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(TEXT)
    app = app_that(tmp_path, edited(lambda text: text))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await asked(pilot, app)
        await until(pilot, lambda: any("nothing to change" in each.message for each in app._notifications))
        assert not isinstance(app.screen, RewritingScreen | ReviewScreen)

    drive(app, keys)


def test_a_file_that_cannot_be_rewritten_is_told_before_the_model_runs(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_bytes(b"\0\1\2")
    app = app_that(tmp_path, edited(lambda text: text))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await asked(pilot, app)
        await until(pilot, lambda: any("is not text" in each.message for each in app._notifications))
        assert not isinstance(app.screen, RewritingScreen)

    drive(app, keys)


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, edited(lambda text: text.replace("beta = 2", "beta = 20")))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await asked(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        file.write_text("others wrote this\n")
        await pilot.press("y", "w")
        await until(pilot, lambda: any("changed" in each.message for each in app._notifications))

    drive(app, keys)
    assert file.read_text() == "others wrote this\n"
    (kept,) = refused_folder().iterdir()
    assert kept.read_text() == TEXT.replace("beta = 2", "beta = 20")
    assert any(str(kept) in each.message for each in app._notifications)


@pytest.mark.parametrize(
    ("writes", "word", "can_be_written"),
    [
        (edited(lambda text: "... rest unchanged ...\n"), "CHECK", True),
        (lambda text, closing: "\ufffd\n" + text + closing, "STOP", False),
    ],
)
def test_what_breaks_a_rule_is_reviewed_with_the_rule_and_written_after_a_yes_only_where_one_may_say_so(
    tmp_path: Path, writes: Writes, word: str, can_be_written: bool
) -> None:
    file = tmp_path / "notes.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, writes)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await asked(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert isinstance(app.screen, ReviewScreen)
        reasons = str(review_words.reasons(app.screen.state))
        assert word in reasons
        assert file.read_text() == TEXT
        await pilot.press("a", "w")
        await pilot.pause()
        assert isinstance(app.screen, Question) == can_be_written
        assert file.read_text() == TEXT
        if can_be_written:
            await pilot.press("down", "enter")
            await until(pilot, lambda: file.read_text() == "... rest unchanged ...\n")
        else:
            (kept,) = refused_folder().iterdir()
            assert str(kept) in reasons
            assert kept.read_text() == "\ufffd\n" + TEXT

    drive(app, keys)
    assert (file.read_text() == TEXT) != can_be_written


def test_one_hunk_is_written_anew_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, edited(lambda text: text.replace("beta = 2", "beta = 20")))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        assert isinstance(app.engine, RewritingEngine)
        await asked(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        app.engine.writes = edited(lambda text: text.replace("beta = 2", "beta = 21"))
        await pilot.press("r")
        await pilot.pause()
        await pilot.press(*"21", "enter")
        await until(pilot, lambda: any("written anew" in each.message for each in app._notifications))
        await pilot.press("y", "w")
        await until(pilot, lambda: "beta = 21" in file.read_text())

    drive(app, keys)
    assert file.read_text() == TEXT.replace("beta = 2\n", "beta = 21\n")
