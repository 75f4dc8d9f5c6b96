"""What the screen says of a reply under a rule that is not exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from specchat.exactness import INEXACT
from specchat.session import Checked
from specchat.settings import SamplingSettings, Settings
from specchat.tui.app import SpecchatApp
from specchat.tui.widgets.status import Status
from tests.tui.driving import ask, drive
from tests.tui.scripted import Script, app_on

TYPICAL = Settings(sampling=SamplingSettings(rule="typical"))


def status(app: SpecchatApp) -> str:
    return str(app.query_one(Status).render())


@pytest.mark.parametrize(
    ("settings", "exact"),
    [
        (Settings(), True),
        (TYPICAL, False),
        (Settings(sampling=SamplingSettings(rule="typical", temperature=0)), True),
    ],
    ids=["coupled", "typical", "typical at 0"],
)
def test_a_reply_that_is_not_exact_says_so_below_and_in_the_status_line(
    tmp_path: Path, settings: Settings, exact: bool
) -> None:
    app = app_on(tmp_path, settings=settings)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        lines = "\n".join(strip.text for strip in map(app.chat_view.transcript.views[-1].render_line, range(5)))
        assert (INEXACT in lines) is not exact
        assert ("not exact" in status(app)) is not exact

    drive(app, keys, size=(80, 24))


def test_the_mark_follows_the_rule_of_each_reply(tmp_path: Path) -> None:
    app = app_on(tmp_path, settings=TYPICAL)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        app.change(replace(app.settings, sampling=SamplingSettings(rule="block")))
        await ask(pilot, "again")
        views = app.chat_view.transcript.views
        assert [INEXACT in views[at].figures for at in (1, 3)] == [True, False]
        assert "not exact" not in status(app)

    drive(app, keys)


def test_a_check_of_such_a_reply_names_the_rule_as_the_reason(tmp_path: Path) -> None:
    app = app_on(tmp_path, Script(checked=Checked(4, (" a", " b"), (0.2, 0.7))), TYPICAL)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        app.chat_view.transcript.focus()
        await pilot.press("v")
        await pilot.pause()
        note = app.chat_view.transcript.views[-1].note
        assert INEXACT in note
        assert "tie" not in note

    drive(app, keys)


def test_what_goes_on_with_a_reply_that_is_not_exact_is_not_exact_as_a_whole(tmp_path: Path) -> None:
    app = app_on(tmp_path, settings=TYPICAL)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "say")
        app.change(Settings())
        await ask(pilot, "/continue")
        assert len(app.chat_view.transcript.views) == 2
        assert INEXACT in app.chat_view.transcript.views[-1].figures

    drive(app, keys)
