"""What the screens look like: snapshots/SCREEN-THEME-SIZE.svg, in lines that a diff can show."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from specchat.catalogue import Catalogue, Model, ModelFile
from specchat.own_models import OwnModels
from specchat.settings import Settings, ViewSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.fetches import Fetches
from specchat.tui.messages import ReadingShown
from specchat.tui.screens.models import ModelScreen
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.settings_fields import DraftChoice
from tests.tui.conftest import PICTURES, Compare, normalised
from tests.tui.scripted import Piece, Script, app_on, engine_of, mixed

if TYPE_CHECKING:
    from specchat.downloads import Store
    from specchat.shelf import Shelf

THEMES = ("textual-dark", "textual-light")
SIZES = ((80, 24), (120, 40))
STILL = 40  # pauses after which a screen that still changes is a fault of its own

QUESTION = "Rename `load` to `read_all` and say what changed"
ANSWER = """\
## What changed

The function is called **read_all** now, in all three places:

- the definition in `notes.py`
- the call in `main()`
- the test, which also checks that an *empty* file gives an empty list

```python
def read_all(path: Path) -> list[str]:
    \"\"\"The lines of a file, without their ends.\"\"\"
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\\n") for line in file]
```

Nothing else reads the old name, so no alias is left behind. 1. and 2. were copied from your file as they
stood; the docstring is new.
"""
MODELS = (
    ("qwen2.5-coder-1.5b", "Qwen2.5-Coder 1.5B Instruct", ("target",), "qwen2.5-coder-0.5b", "Q4_K_M", 1_117_320_768),
    ("qwen2.5-coder-0.5b", "Qwen2.5-Coder 0.5B Instruct", ("draft", "target"), None, "Q4_K_M", 491_400_064),
    ("smollm2-135m", "SmolLM2 135M Instruct", ("target",), None, "Q4_1", 98_362_432),
    ("large-14b", "A Large One 14B", ("target",), "qwen2.5-coder-0.5b", "Q4_K_M", 8_988_110_272),
)
HERE = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")

Steps = Callable[[Pilot[None], SpecchatApp], Awaitable[None]]


async def ask(pilot: Pilot[None], text: str = QUESTION) -> None:
    pilot.app.query_one(Prompt).insert(text)
    await pilot.press("enter")
    await pilot.pause()


async def at_rest(pilot: Pilot[None]) -> str:
    """The picture of a screen on which nothing moves any more."""
    await pilot.app.workers.wait_for_complete()  # one counts the tokens of the prompt
    before = ""
    for _ in range(STILL):
        await pilot.pause()
        drawn = pilot.app.export_screenshot(simplify=True)
        if drawn == before:
            return drawn
        before = drawn
    raise AssertionError("the screen does not come to rest")


async def welcome(pilot: Pilot[None], app: SpecchatApp) -> None:
    """Nothing asked yet."""


async def reply(pilot: Pilot[None], app: SpecchatApp) -> None:
    await ask(pilot)


async def reading(pilot: Pilot[None], app: SpecchatApp) -> None:
    """The second question of a chat is being read."""
    await ask(pilot)
    engine_of(app).script.steps_at_once = 0
    await ask(pilot, "and the tests?")
    busy = app.chat_view.busy
    assert busy is not None
    app.chat_view.post_message(ReadingShown(busy, 1480, 2212, 1210, 4.2))


async def writing(pilot: Pilot[None], app: SpecchatApp) -> None:
    """In the middle of a block of code, plain decoding a few lines behind."""
    engine_of(app).script.steps_at_once = 64
    await ask(pilot)
    growing = app.chat_view.transcript.growing
    assert growing is not None
    growing.redraw()  # now, whatever the clock says of the next draw


async def settings(pilot: Pilot[None], app: SpecchatApp) -> None:
    await ask(pilot)
    await pilot.press("f2")


async def models(pilot: Pilot[None], app: SpecchatApp) -> None:
    store = SimpleNamespace(
        has=lambda model: model.id in HERE,
        path=lambda model: Path("models", model.file.name),
        begun=lambda model: False,
    )
    known = tuple(
        Model(name, title, roles, draft, "qwen2", 32768, "Apache-2.0", ModelFile(f"{name}.gguf", kind, size, ""), ())
        for name, title, roles, draft, kind, size in MODELS
    )
    shelf = SimpleNamespace(catalogue=Catalogue(known, known[0].id, known[1].id), store=store)
    fetches = Fetches(cast("Store", store), OwnModels(app.folder))
    await app.push_screen(ModelScreen(cast("Shelf", shelf), fetches, "qwen2.5-coder-1.5b", 6_200_000_000))


async def chats(pilot: Pilot[None], app: SpecchatApp) -> None:
    await ask(pilot)
    for question in ("How does a lookup guess differ from a draft, and when is it worth its price? Explain it", "why?"):
        await pilot.press("ctrl+n")
        await ask(pilot, question)
    await pilot.press("ctrl+s")


async def helped(pilot: Pilot[None], app: SpecchatApp) -> None:
    await pilot.press("f1")


SCREENS: dict[str, tuple[Steps, ViewSettings]] = {
    "welcome": (welcome, ViewSettings()),
    "reply": (reply, ViewSettings()),
    "reply-tokens": (reply, ViewSettings(tint="token")),
    "reading": (reading, ViewSettings()),
    "writing": (writing, ViewSettings()),
    "settings": (settings, ViewSettings()),
    "models": (models, ViewSettings()),
    "chats": (chats, ViewSettings()),
    "help": (helped, ViewSettings()),
}
CASES = [(screen, theme, size) for screen in SCREENS for theme in THEMES for size in SIZES]


def name_of(screen: str, theme: str, size: tuple[int, int]) -> str:
    return f"{screen}-{theme.removeprefix('textual-')}-{size[0]}x{size[1]}"


def drafts(loaded: object) -> list[DraftChoice]:
    """The draft models of the settings, whatever this disk and the catalogue have."""
    return [
        DraftChoice("qwen2.5-coder-0.5b", "Qwen2.5-Coder 0.5B Instruct Q4_K_M, 491.4 MB", True, ""),
        DraftChoice("smollm2-135m", "SmolLM2 135M Instruct Q4_1, 98.4 MB", False, "not here yet: Ctrl+L fetches it"),
    ]


def picture(folder: Path, screen: str, theme: str, size: tuple[int, int]) -> str:
    """What a screen looks like."""
    steps, view = SCREENS[screen]
    app = app_on(folder, Script([pieces()]), Settings(view=replace(view, theme=theme)))
    app.animation_level = "none"

    async def go() -> str:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot, app)
            return await at_rest(pilot)

    return asyncio.run(go())


def pieces() -> list[Piece]:
    return mixed(ANSWER)


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the terminal, the clock, the disk or the catalogue shows."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    # Cursors do not blink. To turn that off later is too late: textual keeps lines drawn without a cursor.
    monkeypatch.setattr(TextArea, "_toggle_cursor_blink_visible", lambda area: None)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda line: None)
    monkeypatch.setattr("specchat.tui.drafts.draft_choices", drafts)


@pytest.mark.parametrize(("screen", "theme", "size"), CASES, ids=[name_of(*case) for case in CASES])
def test_a_screen_looks_as_it_did(
    tmp_path: Path, same_picture: Compare, screen: str, theme: str, size: tuple[int, int]
) -> None:
    same_picture(name_of(screen, theme, size), picture(tmp_path, screen, theme, size))


def test_every_kept_picture_is_compared() -> None:
    kept = {path.stem for path in PICTURES.glob("*.svg") if not path.stem.endswith(".new")}
    assert kept == {name_of(*case) for case in CASES}


def test_a_picture_is_the_same_with_other_ids_and_different_with_other_text() -> None:
    svg = '<svg><style>@font-face {\n  src: url("https://x");\n }\n</style><text id="terminal-17-a">{}</text></svg>'
    one, other_ids, other_text = svg.replace("{}", "a"), svg.replace("17", "234").replace("{}", "a"), svg
    assert normalised(one) == normalised(other_ids)
    assert normalised(one) != normalised(other_text)
    assert not re.search(r"https?://x", normalised(one))
