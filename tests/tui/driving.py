"""Driving the app by keys, for tests: asking, and what is there afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from specchat.tui.app import SpecchatApp
from specchat.tui.widgets.prompt import Prompt
from tests.tui.scripted import Script, words

Drive = Callable[[Pilot[None], SpecchatApp], Awaitable[None]]


def drive(app: SpecchatApp, steps: Drive, size: tuple[int, int] = (110, 32)) -> None:
    """Run an app under a pilot."""

    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot, app)

    asyncio.run(go())


async def ask(pilot: Pilot[None], text: str) -> None:
    """Type a text into the prompt and send it."""
    prompt = pilot.app.query_one(Prompt)
    prompt.focus()
    prompt.put(text)
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause()


def texts(app: SpecchatApp) -> list[str]:
    """What was said, on the path of the chat."""
    return [turn.text for turn in app.chat_view.chat.path()]


def shown(app: SpecchatApp) -> list[str]:
    """The messages that are laid out."""
    return [view.source for view in app.chat_view.transcript.views]


def told(app: SpecchatApp) -> list[str]:
    """The lines that go away by themselves."""
    return [notification.message for notification in app._notifications]


def slow(text: str = "one two three four five six") -> Script:
    """A script that waits for the test before each of its words."""
    return Script([words(text)], steps_at_once=0)
