"""The panel of figures, drawn in a small app."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Digits, Static

from specchat.live import Live
from specchat.provenance import Author
from specchat.tui.widgets.numbers import bar, duration, number, percent, step_cost, times
from specchat.tui.widgets.panel import CELLS, SpeculationPanel, by_guesser, who_guesses
from speculation.stats import Totals

ALL = Totals(steps=241, emitted=653, drafted=700, examined=606, accepted=412, draft_s=1.0, verify_s=8.5, accept_s=0.5)
PLAIN = Totals(steps=40, emitted=40, verify_s=1.0, plain_steps=40, plain_s=1.0)
DRAFT = Totals(steps=201, emitted=613, drafted=700, examined=606, accepted=412, draft_s=1.0, verify_s=7.5, accept_s=0.5)
LIVE = Live(
    guess="auto",
    guesser="draft",
    reason="the draft model: 2.6 tokens expected in the time of 1.4",
    paused="",
    considered=(),
    totals=ALL,
    by_guesser={"plain": PLAIN, "draft": DRAFT},
    recent=(1, 2, 3, 8, 1, 1) * 6,
    plain_step_s=0.025,
    context_tokens=5214,
    n_ctx=16384,
    memory_bytes=None,
    who={Author.MODEL: 241, Author.DRAFT: 360, Author.FILE: 52},
    saved_s=6.3,
    explanation="",
)
NOTHING = replace(
    LIVE,
    guesser="plain",
    reason="",
    totals=Totals(),
    by_guesser={},
    recent=(),
    plain_step_s=None,
    who={},
    saved_s=None,
)


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield SpeculationPanel()

    def text(self, name: str) -> str:
        """What one part of the panel says, without its styles."""
        return str(self.query_one(f"#figure-{name}", Static).content)

    def everything(self) -> str:
        return "\n".join(str(part.content) for part in self.query(Static) if part.id != "figure-heading")


def drawn(live: Live | None, look: Callable[[Host], None], size: tuple[int, int] = (100, 40)) -> None:
    """Show figures in a running app and look at it."""

    async def run() -> None:
        app = Host()
        async with app.run_test(size=size) as pilot:
            if live is not None:
                app.query_one(SpeculationPanel).show(live)
            await pilot.pause()
            look(app)

    asyncio.run(run())


def test_the_figures_are_those_of_the_totals() -> None:
    def look(app: Host) -> None:
        assert app.query_one(Digits).value == " 2.71"
        assert app.text("beside").split("\n") == ["tokens/step", "x1.6 est", "241 steps"]
        accepted, speed, cost = app.text("rates").split("\n")
        assert accepted.split() == ["accepted", "412/606", "68", "%"]
        assert speed.split() == ["speed", "65.3", "tok/s"]
        assert cost.split() == ["step", "cost", "1.66", "plain"]
        assert app.text("saved").split() == ["this", "reply", "6.3", "s", "est"]

    drawn(LIVE, look)


def test_each_guesser_has_a_line_also_when_it_did_nothing() -> None:
    def look(app: Host) -> None:
        plain, draft, lookup = app.text("guessers").split("\n")[1:]
        assert plain.split() == ["plain", "-", "1.00", "1.00"]
        assert draft.split() == ["draft", "68", "%", "3.05", "1.79"]
        assert lookup.split() == ["lookup", "-", "-", "-"]

    drawn(LIVE, look)


def test_every_author_has_a_bar_with_its_share() -> None:
    def look(app: Host) -> None:
        lines = [line.split() for line in app.text("authors").split("\n")]
        assert [line[0] for line in lines] == ["model", "draft", "prompt", "reply", "turn", "file"]
        assert [line[-2] for line in lines] == ["37", "55", "0", "0", "0", "8"]
        assert len(lines[1][1]) > len(lines[0][1]) > len(lines[5][1]) > 0

    drawn(LIVE, look)


def test_no_speed_up_is_shown_from_31_steps_and_one_from_32() -> None:
    def few(app: Host) -> None:
        assert "not enough yet" in app.text("beside")
        assert "est" not in app.text("beside")

    def enough(app: Host) -> None:
        assert "x1.6 est" in app.text("beside")

    drawn(replace(LIVE, totals=replace(ALL, steps=31)), few)
    drawn(replace(LIVE, totals=replace(ALL, steps=32)), enough)


def test_what_is_not_known_is_a_dash() -> None:
    def look(app: Host) -> None:
        assert app.query_one(Digits).value.strip() == "-"
        assert [line.split()[-1] for line in app.text("authors").split("\n")] == ["-"] * 6
        assert app.text("saved").split() == ["this", "reply", "-", "est"]
        assert "nan" not in app.everything().lower()
        assert "None" not in app.everything()

    drawn(NOTHING, look)


def test_lines_of_figures_are_as_wide_without_figures_as_with_them() -> None:
    widths: list[dict[str, list[int]]] = []

    def look(app: Host) -> None:
        parts = ("rates", "guessers", "authors", "saved", "recent")
        widths.append({part: [len(line) for line in app.text(part).split("\n")] for part in parts})

    huge = Totals(10**6, 10**9, 10**9, 10**9, 10**9 - 1, draft_s=1e-9)
    for live in (LIVE, NOTHING, replace(LIVE, totals=huge)):
        drawn(live, look)

    assert widths[0] == widths[1]
    assert {width for lines in widths[0].values() for width in lines} == {CELLS}
    assert widths[2]["guessers"] == widths[0]["guessers"]


def test_before_the_first_reply_there_are_no_figures() -> None:
    def look(app: Host) -> None:
        assert app.text("guesser") == "no reply yet"
        assert not app.query_one("#figure-rates").display

    drawn(None, look)


def test_figures_given_before_the_panel_is_mounted_are_drawn_with_it() -> None:
    async def run() -> None:
        panel = SpeculationPanel()
        panel.show(LIVE)
        app = Host()
        async with app.run_test() as pilot:
            await app.query_one(SpeculationPanel).remove()
            await app.mount(panel)
            await pilot.pause()
            assert app.text("guesser") == "auto > draft"

    asyncio.run(run())


@pytest.mark.parametrize("hostile", ["[bold", "[/]", "[@click=app.quit]x[/]", "a\x1b]0;title\x07b", "[$nope]"])
def test_names_and_reasons_are_shown_literally_and_cannot_steer_the_terminal(hostile: str) -> None:
    def look(app: Host) -> None:
        shown = hostile.replace("\x1b", "␛").replace("\x07", "␇")
        assert app.text("guesser") == f"auto > {shown}"
        assert app.text("reason") == f"the last 3 tokens match {shown}"
        assert app.text("explanation") == shown
        assert "\x1b" not in app.everything()

    totals = {hostile: DRAFT}
    reason = f"the last 3 tokens match {hostile}"
    drawn(replace(LIVE, guesser=hostile, reason=reason, explanation=hostile, by_guesser=totals), look)


def test_parts_that_grow_push_those_below_down() -> None:
    async def run() -> None:
        app = Host()
        async with app.run_test(size=(100, 60)) as pilot:
            panel = app.query_one(SpeculationPanel)
            panel.show(LIVE)
            await pilot.pause()
            before = {part: app.query_one(f"#figure-{part}").region for part in ("guessers", "authors", "explanation")}
            panel.show(replace(LIVE, by_guesser={**LIVE.by_guesser, "other": DRAFT}, explanation="word " * 12))
            await pilot.pause()
            after = {part: app.query_one(f"#figure-{part}").region for part in before}
            assert after["guessers"].height == before["guessers"].height + 1
            assert after["authors"].y == before["authors"].y + 1
            assert after["explanation"].height == 3

    asyncio.run(run())


def test_a_pause_is_told_once() -> None:
    def look(app: Host) -> None:
        assert app.text("reason").count("paused: 0.88x") == 1

    drawn(replace(LIVE, paused="paused: 0.88x", reason="paused: 0.88x"), look)
    drawn(replace(LIVE, paused="paused: 0.88x", reason="no guess is worth its check"), look)


@pytest.mark.parametrize("size", [(100, 30), (80, 24), (20, 5), (1, 1)])
def test_the_panel_takes_thirty_columns_and_survives_a_screen_without_them(size: tuple[int, int]) -> None:
    def look(app: Host) -> None:
        assert app.query_one(SpeculationPanel).region.width == 30
        assert app.text("guesser") == "auto > draft"

    drawn(LIVE, look, size)


def test_every_theme_draws_the_panel() -> None:
    async def run() -> None:
        app = Host()
        async with app.run_test() as pilot:
            app.query_one(SpeculationPanel).show(LIVE)
            for theme in app.available_themes:
                app.theme = theme
                await pilot.pause()
                assert "2.71" in app.query_one(Digits).value

    asyncio.run(run())


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, -math.inf])
def test_formats_show_a_dash_at_the_right_for_what_is_no_number(unknown: float | None) -> None:
    assert number(unknown, 6) == "     -"
    assert percent(unknown, 5) == "    -"
    assert times(unknown, 5) == "    -"
    assert duration(unknown) == "-"


def test_a_number_too_long_for_its_column_loses_digits_and_not_the_column() -> None:
    assert number(2.714, 6) == "  2.71"
    assert number(12345.678, 6) == " 12346"
    assert number(123456789.0, 6) == " 1e+08"


def test_durations_are_said_as_people_say_them() -> None:
    assert duration(9.46) == "9.5 s"
    assert duration(130.2) == "2 min 10 s"
    assert duration(-61.0) == "-1 min 01 s"
    assert duration(59.99) == "1 min 00 s"


def test_a_bar_shows_something_for_any_share_and_never_leaves_its_column() -> None:
    assert bar(0.0, 4) == "    "
    assert bar(0.001, 4) == "╸   "
    assert bar(0.5, 4) == "━━  "
    assert bar(1.0, 4) == bar(7.0, 4) == "━━━━"
    assert bar(math.nan, 4) == "    "


def test_a_step_cost_needs_steps_and_a_plain_step() -> None:
    assert step_cost(PLAIN, 0.0125) == 2.0
    assert step_cost(PLAIN, None) is None
    assert step_cost(PLAIN, 0.0) is None
    assert step_cost(Totals(), 0.025) is None


def test_guessers_keep_their_order_and_unknown_ones_come_last() -> None:
    assert [name for name, _ in by_guesser(None)] == ["plain", "draft", "lookup"]
    assert [name for name, _ in by_guesser(replace(LIVE, by_guesser={"other": DRAFT}))][-1] == "other"


def test_the_guesser_line_says_who_chose_and_who_guesses() -> None:
    assert who_guesses(replace(LIVE, guess="auto", guesser="lookup")) == "auto > lookup"
    assert who_guesses(replace(LIVE, guess="lookup", guesser="lookup")) == "lookup"
    assert who_guesses(replace(LIVE, guess="lookup", guesser="plain")) == "lookup > plain"
    assert who_guesses(replace(LIVE, guess="off", guesser="plain")) == "off"
