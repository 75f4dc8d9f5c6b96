"""Advice on literal records: clear ones, too little evidence, evidence that contradicts itself, one guesser only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.reply import Guess
from specchat.statistics.advisor import Advice, Sureness, advice
from specchat.statistics.figures import ReplyFigures, Work
from tests.specchat.statistics.making import cell, plain, reply


def only(some: list[ReplyFigures]) -> Advice:
    (found,) = advice(some)
    return found


def chosen(guess: str, speeds: list[float], first: int = 1, work: Work = Work.CODE) -> list[ReplyFigures]:
    """Replies of 100 tokens that a guesser chosen by hand wrote at these speeds over plain."""
    guesser = "draft" if guess == "auto" else guess
    return [
        reply(number, cell(50, 100, 10.0 / speed, guesser, work), guess=guess)
        for number, speed in enumerate(speeds, first)
    ]


def test_the_guesser_that_is_clearly_fastest_is_advised() -> None:
    found = only(chosen("draft", [1.6, 1.7, 1.8, 1.7]) + chosen("lookup", [1.1, 1.2, 1.1], 11))

    assert (found.guess, found.sureness) == (Guess.DRAFT, Sureness.CLEAR)
    assert [each.guess for each in found.weighed] == [Guess.DRAFT, Guess.LOOKUP, Guess.OFF]
    assert found.line == "code: draft (clear; est draft x1.70, lookup x1.13, off x1.00; 7 replies, 350 steps)"


def test_off_is_advised_where_guessing_loses() -> None:
    found = only(chosen("draft", [0.7, 0.8, 0.75], work=Work.PROSE))

    assert (found.guess, found.sureness) == (Guess.OFF, Sureness.CLEAR)
    assert found.line.startswith("prose: off (clear; est off x1.00, draft x0.75; ")


def test_one_guesser_alone_is_weighed_against_plain_decoding() -> None:
    found = only(chosen("lookup", [3.0, 4.0, 3.5], work=Work.REWRITING))

    assert (found.work, found.guess, found.sureness) == (Work.REWRITING, Guess.LOOKUP, Sureness.CLEAR)


@pytest.mark.parametrize(
    "some",
    [
        chosen("draft", [1.7, 1.7]),  # two replies
        [reply(number, cell(5, 20, 0.5)) for number in range(5)],  # 25 steps
        [reply(number, plain(90), guess="off") for number in range(5)],  # nobody has guessed
        [reply(number, cell(50, 100, 5.0), plain_step_s=None) for number in range(5)],  # nothing to compare with
        [reply(number, cell(50, 100, 5.0), guess="someone") for number in range(5)],  # of a newer specchat
    ],
)
def test_too_little_evidence_gives_no_advice(some: list[ReplyFigures]) -> None:
    found = only(some)

    assert (found.guess, found.sureness, found.weighed) == (Guess.AUTO, Sureness.TOO_LITTLE, ())
    assert "not enough yet to advise" in found.line


def test_evidence_that_contradicts_itself_is_called_unclear_and_leaves_it_to_auto() -> None:
    found = only(chosen("draft", [0.5, 3.0, 0.6, 2.5]) + chosen("lookup", [1.2, 0.9, 1.3], 11))

    assert (found.guess, found.sureness) == (Guess.AUTO, Sureness.UNCLEAR)
    assert "unclear" in found.line


def test_what_auto_gained_by_one_guesser_alone_is_advised_as_that_guesser() -> None:
    some = [reply(n, cell(40, 100, 5.0, "draft"), cell(1, 1, 0.1, "lookup"), plain(10)) for n in range(1, 6)]

    found = only(some)

    assert (found.guess, found.sureness) == (Guess.DRAFT, Sureness.CLEAR)


def test_auto_stays_where_both_guessers_earn() -> None:
    some = [reply(n, cell(40, 120, 5.0, "draft"), cell(40, 200, 6.0, "lookup"), plain(10)) for n in range(1, 6)]

    found = only(some)

    assert (found.guess, found.sureness) == (Guess.AUTO, Sureness.CLEAR)
    assert {each.guess for each in found.weighed} == {Guess.AUTO, Guess.DRAFT, Guess.LOOKUP, Guess.OFF}


def test_lookups_alone_are_advised_where_the_draft_model_earns_nothing() -> None:
    some = [reply(n, cell(40, 44, 4.4, "draft"), cell(40, 300, 6.0, "lookup")) for n in range(1, 6)]

    assert only(some).guess is Guess.LOOKUP


def test_without_a_draft_model_nothing_is_said_of_it() -> None:
    some = [reply(n, cell(40, 300, 6.0, "lookup"), draft=None) for n in range(1, 6)]

    assert {each.guess for each in only(some).weighed} == {Guess.AUTO, Guess.LOOKUP, Guess.OFF}


def test_auto_that_hardly_guessed_counts_as_tried() -> None:
    found = only([reply(n, plain(200, Work.PROSE), cell(3, 3, 0.6, "lookup", Work.PROSE)) for n in range(1, 6)])

    assert (found.guess, found.sureness) == (Guess.OFF, Sureness.CLEAR)


def test_each_kind_of_text_has_its_own_advice() -> None:
    some = chosen("draft", [1.7] * 4) + chosen("draft", [0.8] * 4, work=Work.PROSE)
    some += chosen("lookup", [4.0] * 4, work=Work.REWRITING)

    assert [(each.work, each.guess) for each in advice(some)] == [
        (Work.CODE, Guess.DRAFT),
        (Work.PROSE, Guess.OFF),
        (Work.REWRITING, Guess.LOOKUP),
    ]


def test_no_replies_no_advice() -> None:
    assert advice([]) == []


@given(st.lists(st.floats(0.2, 5.0), min_size=3, max_size=9), st.floats(0.5, 2.0))
def test_advice_depends_on_speeds_relative_to_plain_not_on_the_machine(speeds: list[float], slower: float) -> None:
    here = [reply(n, cell(50, 100, 10.0 / speed), guess="draft") for n, speed in enumerate(speeds)]
    there = [
        reply(n, cell(50, 100, slower * 10.0 / speed), guess="draft", plain_step_s=slower * 0.1)
        for n, speed in enumerate(speeds)
    ]

    assert [each.speed_up for each in only(there).weighed] == pytest.approx(
        [each.speed_up for each in only(here).weighed]
    )
