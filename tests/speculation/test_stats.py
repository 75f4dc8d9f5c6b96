"""Counts of steps: what is added up in two parts is what is added up at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from speculation.stats import Totals, totals
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
