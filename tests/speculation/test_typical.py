"""The rule that is not exact: what it lets stand, and where it leaves the text as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import Coupled, Typical, rule_named
from speculation.accept.typical import DELTA, EPSILON, threshold
from speculation.types import Distribution, Draft, Verdict, point_mass
from tests.speculation.test_accept import made, weights

FLAT = made([1.0] * 20)
STEPPED = Distribution(np.arange(5, dtype=np.int32), np.array([0.5, 0.3, 0.1, 0.06, 0.04]))
SURE = Distribution(np.arange(2, dtype=np.int32), np.array([1 - EPSILON, EPSILON]))
SURER = Distribution(np.arange(2, dtype=np.int32), np.array([0.95, 0.05]))


def judged(p: Distribution, token: int, seed: int) -> Verdict:
    return Typical(seed).verify(lambda _: p, Draft("test", (token,)), 3)


@pytest.mark.parametrize(
    ("p", "least"),
    [
        (point_mass(4), 0.09),
        (SURE, 0.09),
        (STEPPED, 0.3 * math.exp(0.5 * math.log(0.5) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1)
                                 + 0.06 * math.log(0.06) + 0.04 * math.log(0.04))),
        (FLAT, 0.3 / 20),
    ],
    ids=["certain", "sure", "stepped", "flat"],
)  # fmt: skip
def test_the_threshold_is_that_of_the_paper(p: Distribution, least: float) -> None:
    assert pytest.approx(0.3) == DELTA
    assert threshold(p) == pytest.approx(least)


@pytest.mark.parametrize(
    ("p", "token", "stands"),
    [
        (STEPPED, 0, True),
        (STEPPED, 2, True),  # 0.1 > 0.0872
        (STEPPED, 3, False),
        (FLAT, 19, True),  # 0.05 > 0.015: where the target is unsure, little is asked
        (SURE, 1, False),  # as likely as the threshold, not more
        (SURER, 1, False),
        (STEPPED, 99, False),  # which the target cannot yield
    ],
)
def test_a_guess_stands_when_it_is_typical_or_what_the_target_draws_itself(
    p: Distribution, token: int, stands: bool
) -> None:
    others = 0
    for seed in range(200):
        own = Coupled(seed).pick(p, 3)
        others += own != token
        assert judged(p, token, seed).accepted == (stands or own == token)

    assert others > 20  # so that most verdicts are on the guess, not on the draw


@given(p=weights, seed=st.integers(0, 2**64 - 1), position=st.integers(0, 10_000))
def test_without_a_draft_the_token_is_the_targets_exact_draw(p: Distribution, seed: int, position: int) -> None:
    verdict = Typical(seed).verify(lambda _: p, Draft("plain"), position)

    assert verdict == Verdict((), Coupled(seed).pick(p, position))


@given(p=weights, token=st.integers(0, 4), seed=st.integers(0, 1000))
def test_every_step_ends_with_an_exact_draw(p: Distribution, token: int, seed: int) -> None:
    verdict = judged(p, token, seed)

    assert verdict.token == Coupled(seed).pick(p, 3 + verdict.accepted)


@given(text=st.lists(st.integers(0, 4), max_size=8), wrong=st.integers(0, 8))
def test_of_a_target_that_is_certain_it_keeps_exactly_what_the_target_says(text: list[int], wrong: int) -> None:
    guessed = [token + 10 * (i >= wrong) for i, token in enumerate(text)]

    verdict = Typical(0).verify(lambda i: point_mass([*text, 7][i]), Draft("test", tuple(guessed)), 3)

    n = min(wrong, len(text))
    assert verdict == Verdict(tuple(range(n)), [*text, 7][n])


@given(rows=st.lists(weights, min_size=5, max_size=5), guess=st.tuples(*[st.integers(0, 4)] * 4), seed=st.integers(0))
def test_of_a_chain_it_keeps_no_less_than_coupled_does(
    rows: list[Distribution], guess: tuple[int, ...], seed: int
) -> None:
    kept = [rule.verify(lambda i: rows[i], Draft("test", guess), 3).accepted for rule in (Coupled(seed), Typical(seed))]

    assert kept[0] <= kept[1]


def test_of_a_tree_the_longest_path_that_stands_is_kept_and_of_equal_ones_the_first() -> None:
    tokens = (0, 1, 4, 0, 1, 4, 0)
    #          0  1  2 after the context; 3 behind 0; 4 behind 1; 5 behind 4 (not typical); 6 behind 4
    tree = Draft("test", tokens, parents=(-1, -1, -1, 0, 1, 4, 4))
    seed = next(s for s in range(99) if all(Coupled(s).pick(STEPPED, at) < 3 for at in range(3, 7)))
    asked: list[int] = []

    def rows(i: int) -> Distribution:
        asked.append(i)
        return STEPPED

    assert Typical(seed).verify(rows, tree, 3).path == (1, 4, 6)
    assert Typical(seed).verify(rows, tree.cut(5), 3).path == (0, 3)
    assert 2 + 1 not in asked  # of a guess that does not stand no row is needed
    assert 4 + 1 not in asked[-4:]  # nor of an end that is no further than what is found


def test_it_is_a_rule_for_trees_that_says_that_it_is_not_exact() -> None:
    rule = rule_named("typical", 5)

    assert (rule.is_exact, rule.judges_trees) == (False, True)
    assert [token for token, _ in rule.draw_several(FLAT, 3, 4)] == [
        token for token, _ in Coupled(5).draw_several(FLAT, 3, 4)
    ]
