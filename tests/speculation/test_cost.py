"""The price list of forwards."""

from __future__ import annotations

from itertools import accumulate
from math import inf
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.cost import WIDTHS, CostTable, LivePrices, measure
from speculation.testing import FakeClock, HistoryModel
from speculation.types import Interrupted, Logits


def test_measured_widths_are_given_back_and_others_interpolated() -> None:
    table = CostTable({1: 10.0, 2: 20.0, 4: 30.0})

    assert [table.forward_s(n) for n in (1, 2, 3, 4)] == [10.0, 20.0, 25.0, 30.0]
    assert table.forward_s(6) == 40.0  # carried on at the last slope


def test_a_single_measurement_is_taken_as_proportional() -> None:
    assert CostTable({1: 3.0}).forward_s(5) == 15.0


def test_a_stall_while_measuring_changes_no_price() -> None:
    model = HistoryModel(5, 1)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 50.0 if model.forwards % 5 == 1 else 0.5  # every fifth forward takes a hundred times longer
        return now

    table = measure(model, clock, budget_s=inf)

    assert set(table.seconds) == set(WIDTHS)
    assert set(table.seconds.values()) == {0.5}
    assert model.n_past == 0


def test_load_while_the_first_round_is_measured_makes_no_guess_look_cheap() -> None:
    model = HistoryModel(5, 1)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 3.0 if model.forwards <= len(WIDTHS) // 2 else 1.0
        return now

    table = measure(model, clock, budget_s=inf)

    assert table.forward_s(2) / table.forward_s(1) == 1.0


def test_no_wider_forward_is_measured_than_the_model_gives() -> None:
    assert set(measure(HistoryModel(5, 1, max_rows=7), iter(range(1000)).__next__, budget_s=inf).seconds) == {1, 2, 4}


def test_measuring_ends_when_its_time_is_over_with_what_it_has() -> None:
    model = HistoryModel(5, 1)

    table = measure(model, FakeClock(1.0), budget_s=5.0)

    assert len(table.seconds) >= 3
    assert model.forwards < 3 * len(WIDTHS)
    assert model.n_past == 0


class Skipping(HistoryModel):
    """Somebody presses Esc during a forward of some width."""

    def __init__(self, at: int) -> None:
        super().__init__(5, 1)
        self._at = at

    def forward(self, tokens: object, *, n_rows: int) -> Logits:
        if n_rows == self._at:
            raise Interrupted("stopped")
        return super().forward(tokens, n_rows=n_rows)  # type: ignore[arg-type]


def test_measuring_that_is_skipped_leaves_the_prices_that_were_taken() -> None:
    assert set(measure(Skipping(8), FakeClock(), budget_s=inf).seconds) == {1, 2, 4}
    with pytest.raises(Interrupted):
        measure(Skipping(1), FakeClock())


@pytest.mark.parametrize(("seen", "unseen"), [(0.9, 1.0), (0.75, 1.0), (0.6, 0.8), (1.3, 1.3), (2.0, 2.0)])
def test_plain_steps_that_got_cheaper_say_little_of_wide_ones_and_dearer_ones_say_all(
    seen: float, unseen: float
) -> None:
    prices = LivePrices(CostTable({1: 1.0, 8: 6.0}))

    for _ in range(9):
        prices.observe(1, seen)

    assert prices.forward_s(1) == pytest.approx(seen)
    assert prices.forward_s(8) == pytest.approx(6.0 * unseen)


def test_a_wide_step_that_was_seen_three_times_has_its_own_price() -> None:
    prices = LivePrices(CostTable({1: 1.0, 8: 6.0}))

    for seconds in (5.0, 4.0, 4.5):
        prices.observe(8, seconds)

    assert prices.forward_s(8) == pytest.approx(4.5)


@given(
    steps=st.lists(st.floats(0.0, 0.2), min_size=5, max_size=5),
    chances=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40),
    seen=st.lists(st.tuples(st.integers(1, 60), st.floats(0.5, 2.0)), max_size=12),
)
def test_where_no_first_token_is_likely_enough_no_length_is_worth_its_check(
    steps: list[float], chances: list[float], seen: list[tuple[int, float]]
) -> None:
    table = CostTable(dict(zip((1, 2, 4, 8, 16, 32), accumulate((0.03, *steps)), strict=True)))
    prices = LivePrices(table)
    for rows, factor in seen:
        prices.observe(rows, table.forward_s(rows) * factor)
    least = prices.least_chance(len(chances))
    reaches = accumulate((min(chances[0], least * 0.999), *chances[1:]), mul)

    expected, plain_s = 0.0, prices.forward_s(1)
    for k, reach in enumerate(reaches, 1):
        expected += reach
        assert expected <= (prices.forward_s(k + 1) / plain_s - 1.0) * 1.000001
