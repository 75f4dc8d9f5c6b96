"""The price list of forwards."""

from __future__ import annotations

from speculation.cost import WIDTHS, CostTable, measure
from speculation.testing import HistoryModel


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

    table = measure(model, clock)

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

    table = measure(model, clock)

    assert table.forward_s(2) / table.forward_s(1) == 1.0


def test_no_wider_forward_is_measured_than_the_model_gives() -> None:
    assert set(measure(HistoryModel(5, 1, max_rows=7), iter(range(1000)).__next__).seconds) == {1, 2, 4}
