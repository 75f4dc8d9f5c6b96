"""The catalogue in the app: the user's own that is broken, a pair that suits the machine, drafts of the settings."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from specchat.recommended import GIB
from specchat.session import ReplySettings
from specchat.shelf import Shelf
from specchat.tui.app import SpecchatApp
from specchat.tui.drafts import draft_choices
from specchat.tui.engine_thread import EngineThread
from specchat.tui.messages import ModelReady, Trouble
from specchat.tui.screens.models import ModelScreen
from specchat.tui.seat import Wanted
from tests.gguf import tiny
from tests.tui.scripted import LOADED, app_on
from tests.tui.test_app import drive
from tests.tui.test_engine_thread import Posts

BROKEN = 'schema = 1\n[[model]]\nid = "qwen3-4b"\ncontext = "[bold]"\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own on a machine with 8 GiB."""
    for name in list(os.environ):
        if name.startswith(("SPECCHAT", "XDG")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPECCHAT_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setattr("specchat.shelf.total_memory", lambda: 8 * GIB)
    return tmp_path


def put(name: str) -> None:
    """Have a model here, as far as its size tells."""
    shelf = Shelf()
    shelf.store.folder.mkdir(parents=True, exist_ok=True)
    model = shelf.catalogue.find(name)
    with shelf.store.path(model).open("wb") as file:
        file.truncate(model.file.size)


def news_of_models_screen(folder: Path) -> str:
    """What the models screen says first."""
    said: list[str] = []

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await pilot.press("ctrl+l")
        await pilot.pause()
        assert isinstance(app.screen, ModelScreen)
        assert app.screen.query_one(DataTable).row_count == 47  # all but the head
        said.append(str(app.screen.query_one("#models-news", Static).content))

    drive(app_on(folder), keys)
    return said[0]


def test_with_a_broken_catalogue_of_the_users_a_model_loads_and_the_complaint_is_told(home: Path) -> None:
    (home / "models.toml").write_text(BROKEN)
    file = tiny.write_attention(home / "target.gguf")
    posts = Posts()
    engine = EngineThread(posts.post, ReplySettings)
    engine.start()

    engine.load(Wanted(str(file), n_ctx=256, n_threads=1))

    assert posts.until(ModelReady).loaded.name == "target"
    assert "models.toml, line 4: " in posts.of(Trouble)[0].text
    assert posts.of(Trouble)[0].text.endswith("using the shipped catalogue")
    assert engine.close()


def test_with_a_broken_catalogue_of_the_users_the_models_screen_opens_and_says_so(home: Path) -> None:
    (home / "models.toml").write_text(BROKEN)

    said = news_of_models_screen(home / "app")

    assert "models.toml, line 4: " in said
    assert "must be a whole number above zero, not '[bold]'; using the shipped catalogue" in said


def test_the_models_screen_names_a_pair_that_suits_the_machine_better(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert news_of_models_screen(home / "small") == ""

    monkeypatch.setattr("specchat.shelf.total_memory", lambda: 16 * GIB)
    said = news_of_models_screen(home / "large")

    assert said == "this machine has room for qwen2.5-coder-7b with qwen2.5-coder-0.5b"


def test_drafts_to_choose_from_are_those_here_and_those_that_go_with_the_target() -> None:
    put("smollm2-135m")
    target = Shelf().catalogue.find("qwen3-4b")
    loaded = replace(LOADED, name=target.file.name.removesuffix(".gguf"))

    assert [choice.name for choice in draft_choices(loaded)] == ["smollm2-135m", "qwen3-0.6b", "qwen3-0.6b-q4"]
    assert [choice.name for choice in draft_choices(None)] == ["smollm2-135m", "qwen2.5-coder-0.5b"]
