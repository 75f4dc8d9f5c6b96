"""Tuning on literal texts: what is copied, what is suggested, and that noise suggests nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.bench.replay import Trace
from specchat.reply import Guess
from specchat.settings import GuessSettings
from specchat.statistics.tuning import LEAST_TEXTS, Choice, Tried, better, choices, copied_tokens, present_choice, tune
from speculation.cost import CostTable

CHEAP = CostTable({1: 1.0, 64: 1.2})  # checks cost next to nothing
DEAR = CostTable({1: 1.0, 64: 64.0})  # a row more is a step more
AUTO = Choice(Guess.AUTO)


def copying(chance: random.Random, length: int = 60) -> Trace:
    """A text that repeats its prompt."""
    prompt = tuple(chance.randrange(1000) for _ in range(length))
    return Trace("", prompt, prompt[1:])


def fresh(chance: random.Random, length: int = 60) -> Trace:
    """A text in which nothing repeats."""
    tokens = chance.sample(range(1000), 2 * length)
    return Trace("", tuple(tokens[:length]), tuple(tokens[length:]))


def texts(kind: str, cost: CostTable, n: int = LEAST_TEXTS) -> list[tuple[Trace, CostTable]]:
    chance = random.Random(3)
    return [(copying(chance) if kind == "copying" else fresh(chance), cost) for _ in range(n)]


def tried(choice: Choice, *seconds: float) -> Tried:
    return Tried(choice, seconds, (10.0,) * len(seconds), 100, 50)


def test_guessing_is_suggested_to_somebody_who_copies_with_guesses_off() -> None:
    found = tune(texts("copying", CHEAP), Choice(Guess.OFF))

    assert found.copied > 0.9
    assert found.best is not None
    assert found.best.choice.mode is not Guess.OFF
    assert found.gain > 1.0
    assert found.best.speed_up == max(each.speed_up for each in found.tried if each.choice.can_be_set)


def test_nothing_is_suggested_where_nothing_is_copied() -> None:
    found = tune(texts("fresh", CHEAP), AUTO)

    assert found.copied == 0.0
    assert (found.best, found.gain, found.is_enough) == (None, 0.0, True)


def test_a_lookup_by_hand_where_checks_are_dear_is_talked_out_of() -> None:
    found = tune(texts("fresh", DEAR), Choice(Guess.LOOKUP, 16))

    assert found.best is None or found.best.speed_up >= found.present.speed_up
    assert tune(texts("copying", DEAR), Choice(Guess.OFF)).best is None


def test_too_few_replies_suggest_nothing() -> None:
    found = tune(texts("copying", CHEAP, LEAST_TEXTS - 1), Choice(Guess.OFF))

    assert (found.best, found.is_enough) == (None, False)


def test_a_choice_that_wins_in_one_half_of_the_texts_only_is_noise() -> None:
    present = tried(Choice(Guess.OFF), 10, 10, 10, 10)
    lucky = tried(AUTO, 1, 10, 1, 10)
    good = tried(Choice(Guess.LOOKUP, 8), 8, 8, 8, 8)

    assert better(present, [lucky]) is None
    assert better(present, [lucky, good]) is good  # picked by the half that luck did not help
    assert better(present, []) is None


def test_a_gain_of_less_than_two_per_cent_is_none() -> None:
    assert better(tried(AUTO, 10, 10), [tried(Choice(Guess.LOOKUP), 9.9, 9.9)]) is None


def test_what_no_setting_can_say_is_shown_but_not_suggested() -> None:
    best = tried(Choice(Guess.AUTO, min_match=4), 1, 1)

    assert better(tried(AUTO, 10, 10), [best]) is None


@pytest.mark.parametrize(
    ("settings", "choice"),
    [
        (GuessSettings(), AUTO),
        (GuessSettings(mode="draft", length=5), AUTO),
        (GuessSettings(mode="lookup", length=5), Choice(Guess.LOOKUP, 5)),
        (GuessSettings(mode="auto", pause_below=0.5, length=5), Choice(Guess.AUTO, pause_below=0.5)),
        (GuessSettings(mode="off"), Choice(Guess.OFF)),
    ],
)
def test_the_present_choice_is_that_of_the_settings(settings: GuessSettings, choice: Choice) -> None:
    assert present_choice(settings) == choice
    assert next(choices(choice)) == choice


def test_everything_is_tried_once() -> None:
    names = [str(choice) for choice in choices(AUTO)]

    assert len(set(names)) == len(names)


def test_progress_goes_from_nothing_to_all() -> None:
    heard: list[float] = []

    tune(texts("fresh", CHEAP, 2), AUTO, heard.append)

    assert heard == sorted(heard)
    assert heard[-1] == 1.0


@pytest.mark.parametrize(
    ("prompt", "out", "copied"),
    [
        ([1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 9], 4),  # of the first one nothing speaks: 6 was not followed by 2
        ([1, 2, 3, 4, 5, 1], [2, 3, 4, 5, 9], 4),
        ([1, 2, 3, 4, 5, 1], [2, 3, 4, 9, 9], 0),  # too short
        ([1, 2], [3, 4], 0),
    ],
)
def test_copies_of_four_tokens_count(prompt: Sequence[int], out: Sequence[int], copied: int) -> None:
    assert copied_tokens(Trace("", tuple(prompt), tuple(out))) == copied


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_no_more_is_copied_than_there_is(prompt: list[int], out: list[int]) -> None:
    assert 0 <= copied_tokens(Trace("", tuple(prompt), tuple(out))) <= len(out)
