"""Small modal screens of rewriting in every size, with names that would steer the terminal if they could."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Button

from specchat.rewrite.journal import Entry, State
from specchat.rewrite.undo import Past
from specchat.tui.rewrite_results import summed_up
from specchat.tui.screens.hunk_editor import Find
from specchat.tui.screens.question import Question
from specchat.tui.screens.summary import SummaryScreen
from specchat.tui.screens.undo import UndoScreen
from tests.tui.test_rewriting import HOSTILE, SIZES, Host, drive, settle

ANSWERS = ["Continue", "Review what there is", "Skip it", "Drop all"]
PAST = Past(Entry("7f3a", HOSTILE, HOSTILE, 0.0, "a", "b", HOSTILE, None, State.DONE), undone=False)


def screens() -> list[Screen[object]]:
    shown = "[red]\u241b[31m"
    made = (SummaryScreen("2 files", [(shown, shown)] * 30), UndoScreen([PAST] * 30), Find(HOSTILE))
    return [*made, Question("Stopped", shown, ANSWERS)]  # type: ignore[list-item]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", range(4))
def test_it_fits_every_size_and_leaves_with_escape(which: int, size: tuple[int, int]) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(*size[::-1])
        await pilot.resize_terminal(*size)
        await settle(pilot)
        assert not set("\x1b\x07\u202e") & set(host.export_screenshot())
        await pilot.press("escape")
        await settle(pilot)
        assert host.answers == [None]

    drive(screens()[which], steps, size)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_answers_that_do_not_fit_beside_each_other_stand_below_each_other(width: int) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert len({button.region.y for button in host.shown.query(Button)}) == len(ANSWERS)

    drive(Question("Stopped", "x", ANSWERS), steps, (width, 24))


def test_short_answers_stand_beside_each_other() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert len({button.region.y for button in host.shown.query(Button)}) == 1

    drive(Question("Leave?", "x", ["Stay", "Write", "Leave without"]), steps)


def test_the_title_counts_each_end_once() -> None:
    rows = [("a", "written, 1 of 2 changes"), ("b", "nothing to change"), ("c", "it is not text"), ("d", "dropped")]
    assert summed_up(rows) == "4 files: 1 written, 1 nothing to change, 1 dropped, 1 not rewritten"
