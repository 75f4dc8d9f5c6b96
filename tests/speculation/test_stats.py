"""Counts of steps: what is added up in two parts is what is added up at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.stats import ENOUGH_STEPS, Totals, totals
from speculation.types import PLAIN, Step

STEPS = st.lists(
    st.builds(
        lambda guesser, drafted, accepted, seconds: Step(
            guesser=guesser if drafted else PLAIN,
            drafted=drafted,
            examined=min(accepted + 1, drafted),
            accepted=min(accepted, drafted),
            tokens=(1,) * (min(accepted, drafted) + 1),
            draft_s=seconds,
            verify_s=seconds,
            accept_s=seconds,
            context=1,
        ),
        st.sampled_from(["lookup", "draft"]),
        st.integers(0, 5),
        st.integers(0, 5),
        st.integers(0, 64).map(lambda n: n / 64),  # which add up without rounding
    ),
    max_size=8,
)


@given(STEPS, STEPS)
def test_two_totals_together_are_those_of_all_steps(first: list[Step], second: list[Step]) -> None:
    assert totals(first) + totals(second) == totals([*first, *second])
    assert totals(first) + Totals() == totals(first)


def test_rates_are_those_of_all_steps_and_seconds_those_of_every_part() -> None:
    plain = Step(PLAIN, 0, 0, 0, (1,), 1, draft_s=0.25, verify_s=0.5, accept_s=0.25)
    guessed = Step("lookup", 4, 3, 2, (1, 2, 3), 2, draft_s=0.5, verify_s=1.0, accept_s=0.5)

    counted = totals([plain, guessed])

    assert (counted.seconds, counted.plain_s, counted.plain_steps) == (3.0, 1.0, 1)
    assert (counted.tokens_per_step, counted.alpha) == (2.0, 2 / 3)
    assert counted.tokens_per_s == pytest.approx(4 / 3)
    assert counted.accepted_by == {"lookup": 2}


def test_copies_behind_a_draft_are_counted_for_the_lookup() -> None:
    lengthened = Step("draft", 5, 5, 4, (1, 2, 3, 4, 5), 9, 0.0, 0.0, 0.0, sources=(None, None, 3, 4))
    copied = Step("lookup", 3, 3, 2, (1, 2, 3), 14, 0.0, 0.0, 0.0, source=6, sources=(6, 2))
    alone = Step("draft", 2, 1, 0, (1,), 17, 0.0, 0.0, 0.0)

    assert totals([lengthened, copied, alone]).accepted_by == {"draft": 2, "lookup": 4}


def test_nothing_claims_no_rate() -> None:
    nothing = Totals()

    rates = (nothing.tokens_per_step, nothing.alpha, nothing.tokens_per_s, nothing.speed_up(1.0))
    assert rates == (None, None, None, None)


def test_a_speed_up_needs_enough_steps_a_plain_price_and_time_that_passed() -> None:
    step = Step("lookup", 2, 2, 2, (1, 2, 3), 1, draft_s=0.0, verify_s=1.5, accept_s=0.0)
    instant = Step("lookup", 2, 2, 2, (1, 2, 3), 1, draft_s=0.0, verify_s=0.0, accept_s=0.0)

    assert totals([step] * ENOUGH_STEPS).speed_up(1.0) == pytest.approx(2.0)
    assert totals([step] * (ENOUGH_STEPS - 1)).speed_up(1.0) is None
    assert totals([step] * ENOUGH_STEPS).speed_up(None) is None
    assert totals([instant] * ENOUGH_STEPS).speed_up(1.0) is None
