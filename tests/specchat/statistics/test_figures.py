"""Sums of replies, what was saved, and the price of a temperature, on literal figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.statistics.figures import ReplyFigures, Sum, Work, grouped, summed
from specchat.statistics.ledger import by_temperature, ledger, price_at, price_tag
from tests.specchat.statistics.making import PLAIN_S, cell, plain, reply

DAY_S = 86_400.0

cells = st.builds(
    cell,
    steps=st.integers(1, 50),
    tokens=st.integers(50, 200),
    seconds=st.floats(0.1, 9),
    guesser=st.sampled_from(["draft", "lookup"]),
    work=st.sampled_from(Work),
)
replies = st.lists(
    st.builds(
        lambda number, some, price: reply(number, *some, plain_step_s=price),
        st.integers(1, 9),
        st.lists(cells, max_size=3),
        st.none() | st.just(PLAIN_S),
    ),
    max_size=8,
)


def test_a_speed_up_is_what_plain_steps_would_have_taken_over_what_was_taken() -> None:
    total = summed([reply(1, cell(40, 120, 6.0), plain(20))])

    assert total.tokens_per_step == 140 / 60
    assert total.speed_up == pytest.approx(140 * PLAIN_S / 8.0)
    assert total.saved_s == pytest.approx(14.0 - 8.0)
    assert total.step_cost == pytest.approx(6.0 / 40 / PLAIN_S)
    assert total.alpha == 80 / 120


@pytest.mark.parametrize(("steps", "is_said"), [(31, False), (32, True)])
def test_no_speed_up_is_said_of_fewer_than_32_steps(steps: int, is_said: bool) -> None:
    total = summed([reply(1, cell(steps, 100, 2.0))])

    assert (total.speed_up is not None) == is_said
    assert (total.saved_s is not None) == is_said
    assert total.tokens_per_step == 100 / steps  # a count, which may always be said


def test_replies_without_a_known_plain_step_count_but_have_no_speed() -> None:
    total = summed([reply(1, cell(90, 300, 1.0), plain_step_s=None), reply(2, cell(40, 80, 4.0))])

    assert total.tokens == 380
    assert total.speed_up == pytest.approx(80 * PLAIN_S / 4.0)


def test_parts_of_a_reply_that_was_continued_are_one_reply() -> None:
    assert summed([reply(1, plain(5)), reply(1, plain(5)), reply(2, plain(5))]).replies == 2


@given(replies)
def test_groups_add_up_to_the_whole(some: list[ReplyFigures]) -> None:
    total, groups = summed(some), grouped(some, lambda _, each: f"{each.work} {each.guesser}").values()

    for name in ("steps", "tokens", "examined", "accepted", "priced_steps"):
        assert sum(getattr(group, name) for group in groups) == getattr(total, name)
    for name in ("seconds", "plain_s", "guessed_s"):
        assert sum(getattr(group, name) for group in groups) == pytest.approx(getattr(total, name))


def test_the_group_with_the_most_tokens_comes_first() -> None:
    some = [reply(1, plain(5), model="a"), reply(2, plain(9), model="b")]

    assert list(grouped(some, lambda figures, _: figures.model)) == ["b", "a"]


def test_nothing_sums_up_to_nothing() -> None:
    assert (Sum().tokens_per_step, Sum().alpha, Sum().step_cost, Sum().speed_up, Sum().saved_s) == (None,) * 5


def test_what_was_saved_is_told_for_today_the_week_and_ever() -> None:
    midnight = 2e9
    some = [
        reply(number, cell(40, 100, 4.0), ended=ended)
        for number, ended in enumerate([midnight + 5, midnight - 5, midnight - 5 * DAY_S, midnight - 50 * DAY_S])
    ]

    saved = ledger(some, midnight)

    assert (saved.today_s, saved.week_s, saved.total_s) == pytest.approx((6.0, 18.0, 24.0))


def test_guessing_that_lost_time_is_a_loss_in_the_ledger() -> None:
    assert ledger([reply(1, cell(40, 50, 9.0))], 0.0).total_s == pytest.approx(-4.0)


def test_today_says_nothing_as_long_as_it_has_too_few_steps() -> None:
    saved = ledger([reply(1, cell(40, 100, 4.0), ended=1.0), reply(2, cell(9, 30, 1.0), ended=9.0)], 5.0)

    assert saved.today_s is None
    assert saved.total_s is not None


def test_temperatures_have_their_price() -> None:
    some = [
        reply(1, cell(50, 120, 5.0), temperature=0.2),
        reply(2, cell(50, 120, 5.0), temperature=0.21),
        reply(3, cell(100, 160, 9.0), temperature=1.0),
    ]

    groups = by_temperature(some)

    assert [(group.temperature, group.replies, group.tokens_per_step) for group in groups] == [
        (0.2, 2, 2.4),
        (1.0, 1, 1.6),
    ]
    assert price_tag(groups) == "at 0.2 2.4 tokens per step, at 1.0 1.6 (from your 3 replies)"


def test_a_temperature_is_priced_against_the_lowest_one_that_was_used() -> None:
    groups = by_temperature(
        [
            reply(1, cell(50, 120, 5.0), temperature=0.2),
            reply(2, cell(100, 180, 9.0), temperature=1.0),
            reply(3, cell(100, 250, 9.0), temperature=1.3),
            reply(4, cell(1, 9, 0.1), temperature=0.0),  # too few steps to say
        ]
    )

    assert price_at(groups, 0.2) == "2.4 tokens per step here"
    assert price_at(groups, 1.04) == "costs 25% of tokens per step here (1.8, at 0.2 2.4)"
    assert price_at(groups, 1.3) == "costs no tokens per step here (2.5, at 0.2 2.4)"
    assert [price_at(groups, temperature) for temperature in (0.0, 0.6)] == ["", ""]
    assert price_at([], 0.2) == ""


def test_replies_without_guesses_say_nothing_of_temperatures() -> None:
    groups = by_temperature([reply(1, plain(90), guess="off"), reply(2, plain(90), temperature=None)])

    assert groups == []
    assert price_tag(groups) == "no reply was written with guesses yet"


def test_one_reply_is_the_last_one() -> None:
    assert (
        price_tag(by_temperature([reply(1, cell(5, 10, 1.0))])) == "at 0.7 2.0 tokens per step (from your last reply)"
    )
