"""From the command line to the app: flags over settings, settings that cannot be read, what is kept and what is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from specchat.cli import main
from specchat.settings import GuessSettings, SamplingSettings, Settings, SettingsFile, TargetSettings, ViewSettings
from specchat.settings.keys import Place
from specchat.settings.layers import Origin, Source
from specchat.tui.app import SpecchatApp
from specchat.tui.messages import LoadProgress, ModelMissing, ModelReady, Trouble
from specchat.tui.screens.models import ModelScreen
from specchat.tui.seat import Wanted
from specchat.tui.start import Start, carried
from tests.tui.scripted import LOADED, Script, ScriptedEngine, app_on, engine_of, words
from tests.tui.test_app import ask, drive


def app_set(folder: Path, stored: Settings, flagged: Settings | None = None) -> SpecchatApp:
    """An app with these settings in its file, and with those of flags over them."""
    return SpecchatApp(
        Start(flagged or stored, stored, SettingsFile(folder / "config.toml"), Wanted()),
        engine=lambda post, settings: ScriptedEngine(post, settings, Script()),
        folder=folder,
    )


def test_what_a_change_carries_over_is_the_change_alone() -> None:
    stored = Settings(view=ViewSettings(theme="nord"))
    before = Settings(view=ViewSettings(theme="nord"), sampling=SamplingSettings(temperature=0.0))  # --temp 0
    after = Settings(view=ViewSettings(theme="nord", tint="token"), sampling=SamplingSettings(temperature=0.0))

    kept = carried(before, after, stored)

    assert kept == Settings(view=ViewSettings(theme="nord", tint="token"))


def app_with(tmp_path: Path, text: str) -> SpecchatApp:
    """The app as `run` starts it on a settings file of this text."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    seen: list[SpecchatApp] = []

    def instead(self: SpecchatApp, **_: Any) -> None:
        seen.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECCHAT_CONFIG", str(path))
        patch.setattr(SpecchatApp, "run", instead)
        patch.setattr("specchat.tui.app.EngineThread.close", lambda self: True)
        patch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        assert main(["--temp", "0.5"]) == 0
    return seen[0]


def test_a_corrupt_settings_file_is_told_left_alone_and_the_chat_goes_on(tmp_path: Path) -> None:
    broken = "[guess\nmode = 3"
    app = app_with(tmp_path, broken)
    start = app._start
    assert "config.toml" in start.trouble
    assert "using the defaults" in start.trouble
    assert start.settings.sampling.temperature == 0.5

    scripted = SpecchatApp(
        start, engine=lambda post, settings: ScriptedEngine(post, settings, Script()), folder=tmp_path
    )

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        assert any("config.toml" in notification.message for notification in app._notifications)
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert app.settings.view.tint == "token"
        assert any("not saved" in notification.message for notification in app._notifications)
        await ask(pilot, "hello")
        assert [turn.text for turn in app.chat_view.chat.path()] == ["hello", "An answer."]

    drive(scripted, keys)
    assert (tmp_path / "config.toml").read_text() == broken


def test_an_unknown_key_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    start = app_with(tmp_path, "[view]\ntint = 'off'\ntnit = 'off'\n")._start

    assert "tnit" in start.trouble
    assert start.settings.view.tint == "off"


def test_a_flag_is_never_written_into_the_file(tmp_path: Path) -> None:
    stored = Settings()
    flagged = Settings(sampling=SamplingSettings(temperature=0.0))
    app = app_set(tmp_path, stored, flagged)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("ctrl+t")
        await pilot.pause()

    drive(app, keys)
    kept = SettingsFile(tmp_path / "config.toml").load()
    assert kept.view.tint == "token"
    assert kept.sampling.temperature == 0.7


def test_a_guesser_that_cannot_be_had_is_not_kept_for_the_next_start(tmp_path: Path) -> None:
    app, file = app_on(tmp_path), SettingsFile(tmp_path / "config.toml")

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine._post(ModelReady(replace(LOADED, name="one")))
        await pilot.pause()
        await ask(pilot, "/guess lookup")
        await ask(pilot, "/guess draft")
        assert file.load().target("one").guess == "draft"
        app.engine._post(Trouble("guess lookup as before: no draft is here", guess="lookup"))
        await pilot.pause()
        assert app.settings.guess.mode == file.load().guess.mode == "lookup"
        assert app.settings.target("one").guess == file.load().target("one").guess == "lookup"

    drive(app, keys)


def test_a_guesser_of_a_flag_that_cannot_be_had_changes_nothing_in_the_file(tmp_path: Path) -> None:
    flagged = replace(Settings(), guess=GuessSettings("draft"))
    stored, file = replace(Settings(), guess=GuessSettings("lookup")), SettingsFile(tmp_path / "config.toml")
    file.save(stored)
    app = app_set(tmp_path, stored, flagged)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine._post(Trouble("guess auto as before: no draft is here", guess="auto"))
        await pilot.pause()
        assert app.settings.guess.mode == "auto"
        assert file.load().guess.mode == "lookup"

    drive(app, keys)


def test_the_draft_that_was_chosen_for_a_model_is_loaded_with_it(tmp_path: Path) -> None:
    stored = Settings().remembering("scripted", TargetSettings(draft="near"))
    app = app_set(tmp_path, stored)
    loaded: list[str] = []

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine.load_draft = loaded.append  # type: ignore[method-assign, assignment]
        for _ in range(2):  # it is told once more when the draft is there
            app.engine._post(ModelReady(replace(LOADED, name="scripted")))
            await pilot.pause()

    drive(app, keys)
    assert loaded == ["near"]


def test_the_draft_of_a_model_is_loaded_before_the_guesser_that_needs_it(tmp_path: Path) -> None:
    stored = Settings().remembering("scripted", TargetSettings("draft", "near"))
    app = app_set(tmp_path, stored)
    asked: list[str] = []

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine.load_draft = asked.append  # type: ignore[method-assign, assignment]
        app.engine.choose = asked.append  # type: ignore[method-assign, assignment]
        app.engine._post(ModelReady(replace(LOADED, name="scripted")))
        await pilot.pause()

    drive(app, keys)
    assert asked == ["near", "draft"]


def test_another_guesser_for_a_model_does_not_give_it_the_draft_of_the_one_before(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine._post(ModelReady(replace(LOADED, name="one")))
        await pilot.pause()
        await ask(pilot, "/draft near")
        app.engine._post(ModelReady(replace(LOADED, name="two")))
        await pilot.pause()
        await ask(pilot, "/guess lookup")
        assert app.settings.target("one") == TargetSettings("auto", "near")
        assert app.settings.target("two") == TargetSettings("lookup", None)

    drive(app, keys)


def test_what_was_chosen_for_one_model_does_not_go_on_with_another(tmp_path: Path) -> None:
    stored = Settings().remembering("one", TargetSettings("draft", "near"))
    app = app_set(tmp_path, stored)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        for name, guess in (("one", "draft near"), ("two", "auto auto"), ("one", "draft near")):
            app.engine._post(ModelReady(replace(LOADED, name=name)))
            await pilot.pause()
            assert f"{app.settings.guess.mode} {app.settings.guess.draft}" == guess

    drive(app, keys)


def test_a_draft_that_is_named_is_loaded_once_and_once_more_when_it_is_named_again(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    loaded: list[str] = []

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine.load_draft = loaded.append  # type: ignore[method-assign, assignment]
        await pilot.pause()
        for name in ("near", "near", ""):  # the second one may be another file by now
            await ask(pilot, f"/draft {name}".strip())

    drive(app, keys)
    assert loaded == ["near", "near", "auto"]


def test_a_flag_wins_over_what_was_chosen_for_the_model_and_the_panel_says_so(tmp_path: Path) -> None:
    stored = Settings().remembering("scripted", TargetSettings("draft"))
    flagged = replace(stored, guess=GuessSettings(mode="off"))
    file = SettingsFile(tmp_path / "config.toml")

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine._post(ModelReady(replace(LOADED, name="scripted")))
        await pilot.pause()
        modes.append(app.settings.guess.mode)
        await pilot.press("f2")
        await pilot.pause()
        hints.append([str(each.content) for each in app.query(".hint").results(Static) if each.display])

    modes: list[str] = []
    hints: list[list[str]] = []
    cases: list[dict[Place, Origin]] = [{("guess", "mode"): Origin(Source.FLAG, "--guess")}, {}]
    for origins in cases:
        app = SpecchatApp(
            Start(flagged, stored, file, Wanted(), origins=origins),
            engine=lambda post, settings: ScriptedEngine(post, settings, Script()),
            folder=tmp_path,
        )
        drive(app, keys)

    assert modes == ["off", "draft"]
    assert "from --guess" in hints[0]
    assert "from --guess" not in hints[1]


def test_a_missing_model_opens_the_list_of_models_and_fetches_nothing(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.engine._post(ModelMissing("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", 1_608_720_832))
        for _ in range(20):
            await pilot.pause()
            if isinstance(app.screen, ModelScreen):
                break
        assert isinstance(app.screen, ModelScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, ModelScreen)

    drive(app, keys)


def test_another_model_in_mid_reply_stops_the_reply_and_keeps_what_was_written(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script([words("one two three four")], steps_at_once=2))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "count")
        app.action_models("other")
        for _ in range(20):
            await pilot.pause()
            if len(engine_of(app).loads) == 2:
                break
        assert engine_of(app).loads[-1].model == "other"
        assert app.chat_view.busy is None
        assert [turn.text for turn in app.chat_view.chat.path()] == ["count", "one two "]

    drive(app, keys)


def test_a_model_that_is_gone_is_told_and_a_guesser_that_cannot_be_had_leaves_the_one_before(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "/guess draft")
        app.engine._post(Trouble("guess auto as before: no draft is here", guess="auto"))
        app.engine._post(Trouble("cannot load gone.gguf: No such file", fatal_to="model"))
        app.engine._post(LoadProgress("x", 0.5))
        await pilot.pause()
        assert app.settings.guess.mode == "auto"
        assert app.loaded is None
        assert any("gone.gguf" in notification.message for notification in app._notifications)

    drive(app, keys)


def test_leaving_works_from_everywhere(tmp_path: Path) -> None:
    for keys_before in ([], ["f1"], ["f2"], ["ctrl+s"], ["a", "b"]):
        app = app_on(tmp_path, Script(steps_at_once=0))

        async def go(app: SpecchatApp = app, keys_before: list[str] = keys_before) -> None:
            async with app.run_test() as pilot:
                await pilot.pause()
                if keys_before:
                    await pilot.press(*keys_before)
                await pilot.press("ctrl+q")
                await pilot.pause()
                assert not app.is_running or app._exit

        asyncio.run(go())
