"""The figures of a running reply are those of its steps, and a change of speed is put down to its cause."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.live import RECENT_STEPS, LiveFigures, explain_speed, plain_position, sparkline, told
from specchat.provenance import Author, Origin
from speculation.controllers.base import Plan, Priced
from speculation.stats import totals
from speculation.types import PLAIN, Draft, Step

PLAIN_S = 0.1


def step(n_tokens: int = 1, seconds: float = PLAIN_S, *, guesser: str = PLAIN, drafted: int = 0) -> Step:
    accepted = min(n_tokens - 1, drafted)
    return Step(
        guesser=guesser if drafted else PLAIN,
        drafted=drafted,
        examined=min(accepted + 1, drafted),
        accepted=accepted,
        tokens=tuple(range(n_tokens)),
        context=100,
        draft_s=0.0,
        verify_s=seconds,
        accept_s=0.0,
    )


@st.composite
def any_step(draw: st.DrawFn) -> Step:
    guesser = draw(st.sampled_from([PLAIN, "lookup", "draft"]))
    drafted = 0 if guesser == PLAIN else draw(st.integers(1, 16))
    seconds = draw(st.floats(0.001, 10.0))
    return step(draw(st.integers(1, drafted + 1)), seconds, guesser=guesser, drafted=drafted)


def figures_of(steps: Sequence[Step], plain_step_s: float | None = PLAIN_S) -> LiveFigures:
    figures = LiveFigures("auto", plain_step_s, 4096)
    for each in steps:
        figures.add(each)
    return figures


@given(st.lists(any_step(), max_size=120), st.none() | st.floats(0.001, 1.0))
def test_counts_are_those_of_the_same_steps(steps: list[Step], plain_step_s: float | None) -> None:
    live = figures_of(steps, plain_step_s).snapshot(context_tokens=7)

    expected = totals(steps)
    assert live.totals == expected
    assert live.by_guesser == {
        name: totals(each for each in steps if each.guesser == name) for name in {each.guesser for each in steps}
    }
    assert live.recent == tuple(len(each.tokens) for each in steps)[-40:]
    assert live.speed_up == expected.speed_up(live.plain_step_s)
    if live.plain_step_s is None:
        assert live.saved_s is None
    else:
        assert live.saved_s == pytest.approx(expected.emitted * live.plain_step_s - expected.seconds)


def test_a_plain_step_costs_what_this_reply_measured_once_it_has_eight_of_them() -> None:
    seven, eight = figures_of([step(1, 0.2)] * 7), figures_of([step(1, 0.2)] * 8)

    assert seven.snapshot(context_tokens=0).plain_step_s == PLAIN_S
    assert eight.snapshot(context_tokens=0).plain_step_s == pytest.approx(0.2)


def test_no_speed_up_is_shown_from_fewer_than_32_steps() -> None:
    guessed = step(3, 0.15, guesser="draft", drafted=2)

    assert figures_of([guessed] * 31).snapshot(context_tokens=0).speed_up is None
    assert figures_of([guessed] * 32).snapshot(context_tokens=0).speed_up == pytest.approx(2.0)


def test_a_snapshot_does_not_change_with_later_steps() -> None:
    figures = figures_of([step(3, guesser="draft", drafted=2)] * 3)
    who = {Author.DRAFT: 6, Author.MODEL: 3}

    live = figures.snapshot(context_tokens=5, who=who)
    who[Author.DRAFT] = 0
    for _ in range(50):
        figures.add(step(3, guesser="draft", drafted=2))

    assert live.totals == totals([step(3, guesser="draft", drafted=2)] * 3)
    assert live.by_guesser["draft"].accepted == 6
    assert live.totals.accepted_by == {"draft": 6}
    assert live.who == {Author.DRAFT: 6, Author.MODEL: 3}


def test_plan_guesser_and_pause_are_those_of_the_last_step() -> None:
    figures = LiveFigures("auto", PLAIN_S, 4096)
    considered = (Priced(PLAIN, 0, 1.0, PLAIN_S), Priced("lookup", 4, 3.0, 0.15))
    nothing = figures.snapshot(context_tokens=0)

    figures.add(step(3, guesser="lookup", drafted=4), Plan("lookup", 4, None, "the last 9 tokens match", considered))
    guessed = figures.snapshot(context_tokens=0)
    figures.add(step(), Plan(reason="paused: 0.88x"))
    paused = figures.snapshot(context_tokens=0, guess="lookup", memory_bytes=9)

    assert (nothing.guess, nothing.guesser, nothing.reason, nothing.considered) == ("auto", PLAIN, "", ())
    assert (guessed.guesser, guessed.reason, guessed.paused) == (
        "lookup",
        "the last 9 tokens match; expects 3.0 a step against 1.0",
        "",
    )
    assert guessed.considered == considered
    assert (paused.guesser, paused.paused, paused.considered) == ("lookup", "paused: 0.88x", ())
    assert (paused.guess, paused.memory_bytes, paused.n_ctx) == ("lookup", 9, 4096)


@pytest.mark.parametrize(("plain_since", "shown"), [(RECENT_STEPS - 1, "lookup"), (RECENT_STEPS, PLAIN)])
def test_who_guessed_long_ago_guesses_no_more(plain_since: int, shown: str) -> None:
    figures = figures_of([step(3, guesser="lookup", drafted=4)] + [step()] * plain_since)

    assert figures.snapshot(context_tokens=0).guesser == shown


@pytest.mark.parametrize(
    ("elapsed_s", "place"),
    [(0.0, 0), (0.99 * PLAIN_S, 0), (1.01 * PLAIN_S, 2), (2.5 * PLAIN_S, 2), (3.5 * PLAIN_S, 7), (99.0, 9)],
)
def test_the_plain_marker_stands_behind_the_tokens_that_plain_decoding_would_have(elapsed_s: float, place: int) -> None:
    assert plain_position([2, 2, 7, 9], elapsed_s, PLAIN_S) == place


def test_the_plain_marker_of_an_empty_reply_is_at_its_beginning() -> None:
    assert plain_position([], 5.0, PLAIN_S) == 0


@given(st.lists(st.integers(1, 64), max_size=60), st.integers(-1, 50))
def test_a_sparkline_has_a_bar_for_each_of_the_last_values(values: list[int], width: int) -> None:
    line = sparkline(values, width)

    shown = values[-width:] if width > 0 else []
    assert len(line) == len(shown)
    assert all(bar == "▁" for bar, value in zip(line, shown, strict=True) if value == 1)
    for one, bar in zip(shown, line, strict=True):
        assert all(bar <= other for value, other in zip(shown, line, strict=True) if one <= value)


def test_a_sparkline_does_not_exaggerate_few_tokens_and_fits_many() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, 1, 2, 1], 8) == "▁▁▂▁"
    assert sparkline([1, 32, 64], 8) == "▁▄█"


draft = {"guesser": "draft", "drafted": 4}
GOOD = [step(4, 0.20, **draft), step(3, 0.20, **draft)]  # type: ignore[arg-type] # 3.5 tokens a step
GOOD_SLOWLY = [step(4, 0.30, **draft), step(3, 0.30, **draft)]  # type: ignore[arg-type]
BAD = [step(2, 0.20, **draft), step(1, 0.20, **draft)]  # type: ignore[arg-type]
BAD_A_LITTLE_SLOWLY = [step(2, 0.23, **draft), step(1, 0.23, **draft)]  # type: ignore[arg-type]
BAD_SLOWLY = [step(2, 0.40, **draft), step(2, 0.40, **draft)]  # type: ignore[arg-type]
WIDE = [step(4, 0.50, guesser="draft", drafted=16), step(4, 0.50, guesser="draft", drafted=16)]
HELD_UP = [step(3, 1.0, **draft), *[step(4, 0.2, **draft)] * 3]  # type: ignore[arg-type]


def test_slower_steps_are_told_from_worse_guesses() -> None:
    assert explain_speed(GOOD * 32 + GOOD_SLOWLY * 16) == (
        "speed fell 33 %: guesses as good as before (3.5 a step), each step got slower"
    )
    assert explain_speed(GOOD * 32 + BAD * 16) == (
        "speed fell 57 %: guesses got worse (3.5 to 1.5 a step): this passage is new text"
    )
    assert explain_speed(GOOD * 32 + BAD_SLOWLY * 16) == (
        "speed fell 71 %: guesses got worse (3.5 to 2.0 a step): this passage is new text, each step got slower"
    )
    assert explain_speed(GOOD * 32 + BAD_A_LITTLE_SLOWLY * 16) == (
        "speed fell 63 %: guesses got worse (3.5 to 1.5 a step): this passage is new text"
    )


def test_other_reasons_for_less_speed_are_named_for_what_they_are() -> None:
    plain = [step(1, 0.1)] * 2
    slower_plain = [step(1, 0.15)] * 2

    assert explain_speed(plain * 32 + slower_plain * 16) == "speed fell 33 %: each step got slower"
    assert "fewer steps are guessed (100 % to 0 %; 3.5 to 1.0 a step)" in explain_speed(GOOD * 32 + plain * 16)
    assert "longer guesses cost more than they bring" in explain_speed(GOOD * 32 + WIDE * 16)
    assert "some steps took much longer" in explain_speed(GOOD * 32 + HELD_UP * 8)


@pytest.mark.parametrize(
    "steps",
    [
        GOOD * 60,
        GOOD * 32 + [step(4, 0.22, **draft), step(3, 0.21, **draft)] * 16,  # type: ignore[arg-type]
        GOOD * 40 + [step(4, 20.0, **draft)] + GOOD * 15,  # type: ignore[arg-type]
        BAD * 32 + GOOD * 16,
        GOOD_SLOWLY * 32 + GOOD * 16,
        [step(1, 0.0)] * 64,
    ],
    ids=["the same", "noise", "one stall", "better guesses", "faster steps", "no time at all"],
)
def test_nothing_is_explained_where_nothing_got_slower(steps: list[Step]) -> None:
    assert explain_speed(steps) == ""


def test_nothing_is_explained_from_fewer_than_64_steps() -> None:
    assert explain_speed((GOOD * 32 + GOOD_SLOWLY * 16)[-63:]) == ""
    assert explain_speed((GOOD * 32 + GOOD_SLOWLY * 16)[-64:]) != ""


@given(st.lists(any_step(), max_size=200))
def test_whatever_the_steps_an_explanation_is_one_line(steps: list[Step]) -> None:
    text = explain_speed(steps)

    assert text == "" or (text.startswith("speed fell ") and "\n" not in text)


def test_a_running_reply_explains_itself() -> None:
    live = figures_of(GOOD * 64 + GOOD_SLOWLY * 16).snapshot(context_tokens=0)

    assert live.explanation == explain_speed(GOOD * 64 + GOOD_SLOWLY * 16)
    assert "each step got slower" in live.explanation


def test_the_headless_parts_load_no_engine_and_no_screen() -> None:
    loaded = "import sys, specchat.live, specchat.provenance, specchat.chat; print(*sys.modules)"
    roots = [str(Path(__file__).parents[2] / "app"), str(Path(__file__).parents[2])]

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {roots}; {loaded}"], capture_output=True, text=True
    )

    modules = set(done.stdout.split())
    assert "specchat.live" in modules
    assert modules.isdisjoint({"textual", "llama_cpp", "specchat.session", "speculation.llama"})


def test_a_choice_is_told_with_its_evidence_its_place_and_the_next_best() -> None:
    considered = (Priced("plain", 0, 1.0, 0.03), Priced("lookup", 8, 6.14, 0.08), Priced("draft", 4, 2.41, 0.09))
    reason = "the last 14 tokens match: 6.1 tokens expected in the time of 2.6"
    plan = Plan("lookup", 8, Draft("lookup", (1, 2), source=40, match=14), reason, considered)
    origin = Origin(Author.FILE, "cache.py", 88, 1, 900)

    assert told(plan, origin) == "the last 14 tokens match cache.py:88; expects 6.1 a step against 2.4"
    assert told(plan) == "the last 14 tokens match; expects 6.1 a step against 2.4"
    assert told(Plan("draft", 4, None, "the draft model: 2.4 tokens", considered), origin) == (
        "the draft model; expects 2.4 a step against 6.1"
    )
    assert told(Plan(reason="paused: 0.88x", considered=considered[:1])) == "paused: 0.88x"
