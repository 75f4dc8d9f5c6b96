"""The screen during a rewrite, and what becomes of one in the review."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from textual import on
from textual.app import App
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import ProgressBar, Static

from specchat.rewrite.align import Replaced
from specchat.rewrite.checks import Problem, Rails
from specchat.rewrite.flags import Rejection
from specchat.rewrite.hunks import Decision
from specchat.rewrite.outcome import Record, completed, cut_off
from specchat.rewrite.part import Part, whole
from specchat.rewrite.prompt import ask_for
from specchat.rewrite.source import SourceFile, read_source, source_of
from specchat.tui.rewrite_progress import SURE_COPIES, copying, edits
from specchat.tui.rewritten import facts_of, figures_of, reviewed_file
from specchat.tui.screens.review_help import ReviewHelp
from specchat.tui.screens.rewriting import RewritingScreen
from speculation.stats import ENOUGH_STEPS
from speculation.types import Finish, Step
from tests.tui.reviews import NEW, OLD

HOSTILE = "[red]\x1b[31m]0;title\x07[/]\u202e.py"
SIZES = [(120, 40), (80, 24), (40, 8), (20, 5), (5, 2), (1, 1)]


@dataclass(frozen=True)
class Done:
    """A step's progress, as the engine's thread would have it."""

    line: int = 318
    lines: int = 480
    edits: tuple[Replaced, ...] = (Replaced(42, 42, 42, 45), Replaced(87, 88, 90, 91), Replaced(200, 202, 203, 203))
    tokens_per_step: float | None = 22.3
    seconds_left: float | None = 5.2
    plain_seconds_left: float | None = 44.0
    whole_copies: int = 48


class Host(App[None]):
    """Shows one screen, and keeps what it posts and hands back."""

    def __init__(self, shown: Screen[Any]) -> None:
        super().__init__()
        self.shown = shown
        self.posted: list[str] = []
        self.answers: list[Any] = []
        self.animation_level = "none"

    def on_mount(self) -> None:
        """Open it at once."""
        self.push_screen(self.shown, self.answers.append)

    @on(RewritingScreen.RestUnchanged)
    @on(RewritingScreen.Stop)
    @on(RewritingScreen.NextGuesser)
    def _posted(self, message: Message) -> None:
        self.posted.append(type(message).__name__)

    def text(self, part: str) -> str:
        """What stands in a part of the screen."""
        return str(self.shown.query_one(f"#{part}", Static).content)


def drive(
    shown: Screen[Any], steps: Callable[[Host, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (80, 24)
) -> Host:
    host = Host(shown)

    async def run() -> None:
        async with host.run_test(size=size) as pilot:
            await settle(pilot)
            await steps(host, pilot)

    asyncio.run(run())
    return host


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


# While it runs.


def test_the_bar_is_the_old_file_and_all_figures_of_the_step_are_said() -> None:
    screen = RewritingScreen("src/cache.py", "make get() respect the deadline")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        screen.show(Done())
        await pilot.pause()
        bar = screen.query_one(ProgressBar)
        assert (bar.progress, bar.total) == (318, 480)
        assert host.text("rewriting-figures") == "line 318/480  22.3 tokens/step  5 s left  plain 44 s left (est)"
        assert host.text("rewriting-edits") == "edits   3: line 43 +3, line 88 -1 +1, line 201 -2"
        assert "48 steps in a row" in host.text("rewriting-rest")

    drive(screen, steps)


def test_only_the_last_edits_are_listed_and_unknown_figures_are_left_out() -> None:
    many = tuple(Replaced(line, line + 1, line, line + 1) for line in range(0, 90, 10))
    assert edits(Done(edits=many)) == "9: ... line 51 -1 +1, line 61 -1 +1, line 71 -1 +1, line 81 -1 +1"
    assert edits(Done(edits=())) == "none so far"
    screen = RewritingScreen("a", "b")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        screen.show(Done(tokens_per_step=None, seconds_left=None, plain_seconds_left=None))
        assert host.text("rewriting-figures") == "line 318/480"

    drive(screen, steps)


def test_a_few_copies_do_not_make_an_unchanged_rest() -> None:
    assert copying(Done(whole_copies=SURE_COPIES - 1)) == ""
    assert str(SURE_COPIES) in copying(Done(whole_copies=SURE_COPIES))


def test_reading_is_shown_until_the_first_step() -> None:
    screen = RewritingScreen("a", "b")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        screen.show_reading(1480, 2212, 4.2)
        assert host.text("rewriting-figures") == "reading 1,480/2,212 tokens  4 s left"
        screen.show(Done())
        assert host.text("rewriting-figures").startswith("line 318/480")
        screen.begin("other.py", 2, 5)
        screen.show_forecast("about 9 s")
        assert host.text("rewriting-figures") == "reading ..."
        assert host.text("rewriting-edits") == "about 9 s"

    drive(screen, steps)


def test_tab_asks_once_for_the_rest_and_only_when_something_is_written() -> None:
    screen = RewritingScreen("a", "b")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("tab")
        assert host.posted == []
        screen.show(Done())
        await pilot.press("tab", "tab")
        await pilot.pause()
        assert host.posted == ["RestUnchanged"]
        assert "back at an old line" in host.text("rewriting-rest")

    drive(screen, steps)


def test_escape_stops_also_after_tab_and_the_screen_waits_for_the_end() -> None:
    screen = RewritingScreen("a", "b")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        screen.show(Done())
        await pilot.press("tab", "escape")
        await pilot.pause()
        assert host.posted == ["RestUnchanged", "Stop"]
        assert host.text("rewriting-rest") == "stopping ..."
        assert host.screen is screen

    drive(screen, steps)


def test_files_before_this_one_and_parts_of_a_long_one_are_counted() -> None:
    screen = RewritingScreen("a", "b", 3, 5)

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert not screen.query_one("#rewriting-results").display
        screen.show_results("1 changed, 1 not done")
        screen.show(Done(), 2, 4)
        await pilot.pause()
        assert host.text("rewriting-results") == "so far  1 changed, 1 not done"
        assert screen.query_one("#rewriting-results").display
        assert host.text("rewriting-figures").endswith("part 2/4")

    drive(screen, steps)


def test_it_leaves_as_soon_as_nothing_lies_over_it() -> None:
    screen = RewritingScreen("a", "b")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await host.push_screen(ReviewHelp())
        screen.close()
        await pilot.pause()
        assert screen in host.screen_stack
        await pilot.press("escape")
        await settle(pilot)
        assert screen not in host.screen_stack

    drive(screen, steps)


def test_ctrl_g_asks_for_another_guesser() -> None:
    screen = RewritingScreen("a", "b")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        screen.show(Done())
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert host.posted == ["NextGuesser"]

    drive(screen, steps)


@pytest.mark.parametrize("size", SIZES)
def test_the_progress_fits_every_size_and_hostile_names_show_literally(size: tuple[int, int]) -> None:
    screen = RewritingScreen(HOSTILE, HOSTILE, 2, 5)

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        screen.show_reading(1, 2, None)
        screen.show(Done())
        screen.show_guesser(HOSTILE)
        await pilot.resize_terminal(*size[::-1])
        await pilot.resize_terminal(*size)
        await pilot.press("tab")
        await pilot.pause()
        assert not set("\x1b\x07\u202e") & set(host.export_screenshot())
        assert "[red]\u241b[31m]0;title\u2407[/]" in host.text("rewriting-guesser")

    drive(screen, steps, size)


# What became of it.


def record(source: SourceFile, text: str, finish: Finish | None = Finish.END, part: Part | None = None) -> Record:
    part = part or whole(source)
    asked = ask_for(source.texts[part.start : part.end], "change the timeout")
    at = text.find("30000")
    rejected = (Rejection(at, at + 5, 0.46, 0.53),) if at >= 0 else ()
    step = Step("lookup", 8, 8, 8, tuple(range(9)), 100, 0.001, 0.06, 0.001)
    return Record(source, part, asked, "change it", Rails(), text, rejected, finish, (step,) * 40, (), 0.03)


def test_a_rewrite_becomes_a_file_to_review_with_its_flags_facts_and_figures() -> None:
    source = source_of(OLD.replace("\n", "\r\n").encode(), "cache.py")
    file = reviewed_file(completed(record(source, NEW)))
    assert [flag.hunk for flag in file.flags] == ["1", "1"]
    assert file.least_sure == {"1": 0.53}
    assert file.facts == "utf-8  CRLF"
    assert file.figures == "360 tokens in 2 s  plain about 11 s, x4.4 est  9.00 tokens/step"
    assert file.review.result([hunk.id for hunk in file.review.hunks]) == NEW.replace("\n", "\r\n").encode()


def test_a_rewrite_of_few_steps_claims_no_speed_up() -> None:
    outcome = completed(record(source_of(OLD.encode(), "cache.py"), NEW))
    few = replace(outcome, record=replace(outcome.record, steps=outcome.record.steps[: ENOUGH_STEPS - 1]))
    assert " est" not in figures_of(few)
    assert " est" in figures_of(outcome)


def test_a_rewrite_that_was_cut_off_can_be_looked_at_and_not_be_written() -> None:
    source = source_of(OLD.encode(), "cache.py")
    file = reviewed_file(cut_off(record(source, NEW[: len(NEW) // 2], Finish.LENGTH), 12))
    accepted = file.decided(Decision.ACCEPTED, [file.review.hunks[0].id]).of(Decision.ACCEPTED)
    assert [finding.problem for finding in file.checked(accepted)] == [Problem.TRUNCATED]
    assert file.unread_from is not None


def test_what_is_accepted_is_checked_in_the_part_that_was_asked_for() -> None:
    source = source_of("".join(f"line {number}\n" for number in range(60)).encode(), "a.txt")
    file = reviewed_file(completed(record(source, "line 0\n", part=Part(0, 40))))
    assert Problem.LOST_TAIL in [finding.problem for finding in file.checked(file.review.hunks)]


def test_the_facts_of_a_file_name_what_must_be_kept() -> None:
    facts = facts_of(source_of(b"\xef\xbb\xbfa\r\nb\nc", "a"), 0o100755)
    assert facts == "utf-8 BOM  CRLF 1 + LF 1  no final newline  0755"
    assert facts_of(source_of(b"", "a")) == "utf-8"


def test_the_part_the_real_place_and_what_was_left_out_of_the_reply_are_told(tmp_path: Path) -> None:
    inside, elsewhere = tmp_path / "work", tmp_path / "cache.py"
    inside.mkdir()
    elsewhere.write_text(OLD)
    source = read_source(elsewhere)
    part = Part(0, len(source.lines) - 1)
    text = "<think>hm\n\x1b[31m</think>\n" + NEW[: NEW.rindex("\n", 0, -1) + 1]
    file = reviewed_file(completed(record(source, text, part=part)), inside)
    assert file.part == f"lines 1-{part.end}"
    assert file.remarks == (
        f"it stands outside the folder: {elsewhere}",
        "left out of the reply: thinking, <think>hm \u241b[31m</think>",
    )
    assert reviewed_file(completed(record(source, NEW)), tmp_path).remarks == ()
