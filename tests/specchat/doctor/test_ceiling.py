"""The ceiling, from price lists that were kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.doctor.ceiling import Measured, check_ceiling, known
from specchat.doctor.finding import Verdict
from specchat.kept import draft_price_key, price_key
from speculation.cost import CostTable

ENGINE = "llama-cpp-python 0.3.36"
SLOW, FAST = {"1": 0.03, "32": 0.45}, {"1": 0.01, "32": 0.02}


def key(name: str, engine: str = ENGINE) -> str:
    return price_key(name, 1_000, "CPU", 2, engine)


def test_the_preferred_model_wins_and_else_the_one_measured_last() -> None:
    prices = {key("first"): SLOW, key("my model 7b"): FAST, key("last"): SLOW}

    preferred, last = known(prices, ENGINE, "my model 7b"), known(prices, ENGINE, "not here")

    assert preferred is not None
    assert last is not None
    assert (preferred.model, last.model) == ("my model 7b", "last")


def test_prices_of_another_engine_of_drafts_or_of_nothing_do_not_count() -> None:
    prices = {key("a", "llama-cpp-python 0.2.0"): FAST, draft_price_key(key("b")): {"1": 0.01}, key("c"): "odd"}

    assert known(prices, ENGINE, "a") is None


def test_the_figures_are_speeds_and_their_ratio() -> None:
    found = Measured("m", CostTable({1: 0.05, 32: 0.4}))

    assert found.writes_per_s == pytest.approx(20)
    assert found.reads_per_s == pytest.approx(80)
    assert found.ceiling == pytest.approx(4)
    finding = check_ceiling(found, is_quick=False)
    assert finding.verdict is Verdict.OK
    assert "at most x4.0" in finding.said


def test_a_machine_where_guessing_cannot_win_is_told_so() -> None:
    assert check_ceiling(Measured("m", CostTable({1: 0.05, 4: 0.2})), is_quick=False).verdict is Verdict.NOTE


def test_nothing_measured_is_a_note_that_says_how() -> None:
    assert "--quick" in check_ceiling(None, is_quick=True).advice
    assert "models pull" in check_ceiling(None, is_quick=False).advice


@given(st.floats(1e-4, 10), st.floats(1e-4, 10), st.integers(2, 64))
def test_the_ceiling_never_depends_on_the_unit_of_time(plain: float, wide: float, width: int) -> None:
    once = Measured("m", CostTable({1: plain, width: wide}))
    slower = Measured("m", CostTable({1: plain * 7, width: wide * 7}))

    assert slower.ceiling == pytest.approx(once.ceiling)
