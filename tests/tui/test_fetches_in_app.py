"""Fetches of the app: they go on while somebody chats, and what has arrived when it is left is kept."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from textual.pilot import Pilot

from specchat.catalogue import HubSource, Model, ModelFile
from specchat.downloads import Store
from specchat.own_models import UNKNOWN, OwnModels
from specchat.repositories import PREFIX
from specchat.settings.reading import read_settings
from specchat.tui import command
from specchat.tui.app import SpecchatApp
from specchat.tui.fetches import Fetches, State
from specchat.tui.widgets.status import Status
from tests.gguf import tiny
from tests.specchat.hub_server import COMMIT, Fault, Hub, Repo, serving
from tests.tui.driving import ask, drive, texts, told
from tests.tui.scripted import app_on

if TYPE_CHECKING:
    from specchat.shelf import Shelf

NAME = "owner/tiny-GGUF"
CONTENT = b"GGUF" + random.Random(2).randbytes(300_000)


def model(name: str, content: bytes = CONTENT) -> Model:
    file = ModelFile(f"{name}.gguf", "Q8_0", len(content), hashlib.sha256(content).hexdigest())
    sources = (HubSource(NAME, COMMIT, file.name),)
    return Model(name, name.title(), ("target",), None, "llama", 512, "MIT", file, sources)


ONE, TWO = model("one"), model("two")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with serving(Hub({NAME: Repo({"one.gguf": CONTENT, "two.gguf": CONTENT})})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setattr("specchat.hub.POLL_S", 0.02)
        yield hub


def status_of(app: SpecchatApp) -> str:
    return str(app.screen_stack[0].query_one(Status).render())


def fetches_of(app: SpecchatApp, folder: Path) -> Fetches:
    return app.fetches_into(cast("Shelf", SimpleNamespace(store=Store(folder), own=OwnModels(folder))))


async def until_here(fetches: Fetches, pilot: Pilot[None]) -> None:
    assert await asyncio.to_thread(fetches.wait, 60)
    await pilot.pause()


def test_a_chat_goes_on_while_models_are_fetched_and_their_arrival_is_told(tmp_path: Path, hub: Hub) -> None:
    hub.always = {"bytes": Fault("bytes", "stall", 100_000)}
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        fetches = fetches_of(app, tmp_path / "models")
        fetches.add([ONE, TWO])
        while (running := fetches.running) is None or running.progressed is None or running.share == "0 %":
            await pilot.pause(0.02)
        await ask(pilot, "what is it?")
        assert texts(app) == ["what is it?", "An answer."]
        assert "fetching 21 %, 1 waiting" in status_of(app)  # a chunk of 64 kB
        hub.always = {}
        hub.released.set()
        await until_here(fetches, pilot)
        assert told(app)[-2:] == ["one is here: Ctrl+L loads it", "two is here: Ctrl+L loads it"]
        assert "fetching" not in status_of(app)

    drive(app, steps)
    assert (tmp_path / "models" / "two.gguf").read_bytes() == CONTENT


def test_a_fetch_that_fails_is_told_with_its_reason(tmp_path: Path, hub: Hub) -> None:
    hub.repos.clear()
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        fetches = fetches_of(app, tmp_path / "models")
        fetches.add([ONE])
        await until_here(fetches, pilot)
        assert told(app)[-1].startswith(f"one was not fetched: the hub shows no repository {NAME}")

    drive(app, steps)


def test_leaving_the_app_keeps_the_part_says_so_and_the_next_fetch_goes_on_from_it(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.always = {"bytes": Fault("bytes", "stall", 200_000)}
    folder = tmp_path / "models"
    fetches = Fetches(Store(folder), OwnModels(folder))

    class Left:
        """An app that somebody leaves in the middle of a fetch."""

        return_code = 0
        engine = SimpleNamespace(close=lambda: True)
        fault = None

        def __init__(self, start: object) -> None:
            self.fetches = fetches

        def end_chats(self) -> None:
            """No chat was begun."""

        def run(self) -> None:
            fetches.add([ONE, TWO])
            while (running := fetches.running) is None or running.progressed is None or running.share == "0 %":
                pass

    monkeypatch.setattr(command, "SpecchatApp", Left)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    chosen = read_settings({}, {}, tmp_path)

    assert command.run(SimpleNamespace(yes=False, resume=None, private=False, chosen=chosen, endpoint=None)) == 0  # type: ignore[arg-type]

    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"{name} is not all here yet; `specchat models pull {name}` goes on where it stopped" for name in ("one", "two")
    ]
    assert [each.state for each in fetches.all()] == [State.STOPPED, State.STOPPED]
    hub.always = {}
    hub.released.set()
    hub.seen.clear()
    fetches.add([ONE])
    assert fetches.wait(60)
    assert (folder / "one.gguf").read_bytes() == CONTENT
    assert int(hub.ranges()[0].removeprefix("bytes=").removesuffix("-")) >= 65536


def test_a_model_of_the_hub_is_described_by_its_file_once_it_is_here(tmp_path: Path, hub: Hub) -> None:
    content = tiny.write_attention(tmp_path / "x.gguf").read_bytes()
    hub.repos[NAME].files["mine.gguf"] = content
    folder = tmp_path / "models"
    own = OwnModels(folder)
    asked = replace(
        model("mine", content), origin=f"{PREFIX}{NAME}:Q8_0", architecture=UNKNOWN, context=0,
        roles=("target", "draft"), place=folder / "hub" / "mine.gguf",
    )  # fmt: skip
    own.put(asked)
    fetches = Fetches(Store(folder), own)

    fetches.add([asked])
    assert fetches.wait(60)

    (here,) = own.models()
    assert (here.architecture, here.context) == ("llama", tiny.CONTEXT_LENGTH)
