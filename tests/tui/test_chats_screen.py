"""What the list of chats looks like: large, small, searched, with a question over it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from specchat.conversation import Role
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.history.store import Store
from specchat.settings import Settings, ViewSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.screens.chats import ChatScreen
from specchat.tui.widgets.chat_list import ChatList
from speculation.stats import Totals
from tests.tui.conftest import Compare
from tests.tui.driving import drive
from tests.tui.scripted import app_on

DAY_S = 86_400
SAID = (
    ("Rename `load` to `read_all` and say what changed", "`load` is now `read_all`; both callers follow."),
    ("A letter to the landlord about the heating", "Dear Ms Ortega, the heating has been out since Monday."),
    ("[@click=app.quit]not a link[/]\x1b[31m", "Nor is \x1b]52;c;aGk=\x07 this: it is heating up."),
    ("Why is the sky blue?", "Short waves scatter more than long ones."),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "chats.db"


@pytest.fixture(autouse=True)
def one_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    if hasattr(time, "tzset"):
        time.tzset()
    yield
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


def stored(path: Path) -> None:
    begun = 1_790_000_000.0
    with Store.open(path) as store:
        for number, (question, answer) in enumerate(SAID):
            when = begun - number * 3 * DAY_S
            part = PartRecord(
                About("qwen2.5-coder-1.5b"), when, when, "end", totals=Totals(steps=10, emitted=14 + 9 * number)
            )
            turns = (
                TurnRecord(1, None, Role.USER, question, created=when, latest=2),
                TurnRecord(2, 1, Role.ASSISTANT, answer, created=when, parts=(part,)),
            )
            title = "Why is the sky blue, and the evening red?" if number == 3 else question.splitlines()[0]
            store.put(
                ChatRecord(
                    created=when, changed=when, title=title, is_pinned=number == 3, model="qwen2.5-coder-1.5b",
                    latest=1, tip=2, turns=turns,
                )
            )  # fmt: skip


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(400):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never came to that")


async def open_list(pilot: Pilot[None], app: SpecchatApp) -> ChatList:
    await pilot.press("ctrl+s")
    await until(pilot, lambda: isinstance(app.screen, ChatScreen) and app.screen.query_one(ChatList).row is not None)
    await pilot.pause()
    return app.screen.query_one(ChatList)


@pytest.mark.parametrize(
    ("theme", "size"),
    [("textual-dark", (80, 24)), ("textual-light", (120, 40)), ("textual-dark", (40, 12)), ("textual-dark", (20, 5))],
)
def test_the_list(tmp_path: Path, path: Path, same_picture: Compare, theme: str, size: tuple[int, int]) -> None:
    stored(path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await open_list(pilot, app)
        same_picture(f"chats/list-{theme}-{size[0]}x{size[1]}", app.export_screenshot())

    drive(app_on(tmp_path, settings=Settings(view=ViewSettings(theme=theme)), history=path), steps, size)


def test_a_search(tmp_path: Path, path: Path, same_picture: Compare) -> None:
    stored(path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        chats = await open_list(pilot, app)
        await pilot.press(*"heating")
        await until(pilot, lambda: len(chats.shown) == 4)
        await pilot.pause()
        same_picture("chats/search-textual-dark-80x24", app.export_screenshot())

    drive(app_on(tmp_path, settings=Settings(view=ViewSettings(theme="textual-dark")), history=path), steps, (80, 24))


def test_the_question_before_a_chat_is_deleted(tmp_path: Path, path: Path, same_picture: Compare) -> None:
    stored(path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await open_list(pilot, app)
        await pilot.press("tab", "down", "d")
        await until(pilot, lambda: not isinstance(app.screen, ChatScreen) and app.screen.focused is not None)
        await pilot.pause()
        same_picture("chats/delete-textual-dark-80x24", app.export_screenshot())

    drive(app_on(tmp_path, settings=Settings(view=ViewSettings(theme="textual-dark")), history=path), steps, (80, 24))
