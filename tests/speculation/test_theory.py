"""The closed forms against the three tables of the document that the project starts from, and their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from speculation.theory import best_k, expected_tokens, speed_up, tokens_per_step

P = np.array([0.40, 0.25, 0.15, 0.10, 0.07, 0.03])  # (6,), the target of the six-token example
Q = np.array([0.10, 0.10, 0.30, 0.30, 0.10, 0.10])  # (6,), its draft, bad on purpose

# alpha, k, formula, simulated
TOKENS_PER_STEP = [
    (0.6, 2, 1.96, 1.96),
    (0.6, 4, 2.31, 2.31),
    (0.6, 8, 2.47, 2.48),
    (0.8, 2, 2.44, 2.44),
    (0.8, 4, 3.36, 3.36),
    (0.8, 8, 4.33, 4.32),
    (0.9, 2, 2.71, 2.71),
    (0.9, 4, 4.10, 4.10),
    (0.9, 8, 6.13, 6.13),
]

DRAFT_COSTS = (0.0, 0.05, 0.1, 0.3)
SPEED_UP = {  # k: the speed-up at alpha = 0.8 for each draft cost
    1: (1.80, 1.71, 1.64, 1.38),
    2: (2.44, 2.22, 2.03, 1.52),
    4: (3.36, 2.80, 2.40, 1.53),
    8: (4.33, 3.09, 2.40, 1.27),
    16: (4.89, 2.72, 1.88, 0.84),
}

chances = st.floats(0.0, 1.0)
counts = st.integers(0, 64)
costs = st.floats(0.0, 4.0)


def residual(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """max(0, p - q), renormalised; both (V,)."""
    excess: NDArray[np.float64] = np.maximum(p - q, 0.0)
    return excess / float(excess.sum())


def simulated_tokens_per_step(alpha: float, k: int, rng: np.random.Generator, steps: int = 200_000) -> float:
    """The mean of n + 1, where n guesses were accepted before the first rejection."""
    accepted = rng.random((steps, k)) < alpha
    run = np.where(accepted.all(axis=1), k, accepted.argmin(axis=1))
    return float((run + 1).mean())


class TestTheSixTokenExample:
    def test_the_acceptance_is_0_550(self) -> None:
        assert np.minimum(P, Q).sum() == pytest.approx(0.550, abs=1e-12)

    def test_accepted_and_residual_mass_add_up_to_the_target(self) -> None:
        kept = np.minimum(P, Q)

        output = kept + (1.0 - kept.sum()) * residual(P, Q)

        np.testing.assert_allclose(output, P, atol=1e-15)

    def test_a_million_draws_reproduce_the_printed_numbers(self) -> None:
        # The document's seed, so the acceptance is the printed one to three decimals. With another seed its
        # standard error is 0.0005, and a frequency's at most 0.0005: one of six is off by more than 0.002
        # (four standard errors) in fewer than 3 of 10,000 seeds.
        draws = 1_000_000
        rng = np.random.default_rng(0)

        guess = rng.choice(6, draws, p=Q)
        accepted = rng.random(draws) < np.minimum(1.0, P[guess] / Q[guess])
        token = np.where(accepted, guess, rng.choice(6, draws, p=residual(P, Q)))

        assert f"{accepted.mean():.3f}" == "0.550"
        np.testing.assert_allclose(np.bincount(token, minlength=6) / draws, P, atol=0.002)


class TestTheTableOfTokensPerStep:
    @pytest.mark.parametrize(("alpha", "k", "formula", "simulated"), TOKENS_PER_STEP)
    def test_the_formula_gives_the_printed_number(self, alpha: float, k: int, formula: float, simulated: float) -> None:
        assert round(tokens_per_step(alpha, k), 2) == formula

    @pytest.mark.parametrize(("alpha", "k", "formula", "simulated"), TOKENS_PER_STEP)
    def test_a_simulation_gives_the_printed_number(
        self, alpha: float, k: int, formula: float, simulated: float
    ) -> None:
        # The standard error is at most 0.007 (alpha 0.9, k 8), and the printed number has its own: with
        # other seeds, 1 run in 27 of that row would be off by more than 0.02.
        rng = np.random.default_rng(0)

        assert simulated_tokens_per_step(alpha, k, rng) == pytest.approx(simulated, abs=0.02)


class TestTheTableOfSpeedUps:
    @pytest.mark.parametrize("k", SPEED_UP)
    def test_every_row_is_the_printed_one(self, k: int) -> None:
        row = [speed_up(0.8, k, cost) for cost in DRAFT_COSTS]

        # Half of the last printed digit, not round(): k = 2 at cost 0.3 is 2.44 / 1.6 = 1.525, a tie.
        np.testing.assert_allclose(row, SPEED_UP[k], rtol=0.0, atol=0.005 + 1e-12)

    def test_the_best_k_is_where_each_column_peaks(self) -> None:
        assert best_k(0.8, 0.0, max_k=16) == 16
        assert best_k(0.8, 0.05, max_k=16) in range(5, 16)
        assert best_k(0.8, 0.3, max_k=16) in range(2, 5)


class TestTokensPerStep:
    def test_nothing_guessed_is_one_token(self) -> None:
        assert tokens_per_step(0.7, 0) == 1.0

    def test_no_guess_survives_at_alpha_0(self) -> None:
        assert tokens_per_step(0.0, 8) == 1.0

    @given(counts)
    def test_every_guess_survives_at_alpha_1(self, k: int) -> None:
        assert tokens_per_step(1.0, k) == k + 1

    @given(st.floats(0.0, 1e-6), counts)
    def test_it_is_accurate_near_alpha_1(self, gap: float, k: int) -> None:
        # First terms of the expansion in gap; the third is below 64^3 / 6 * gap^2.
        expected = k + 1 - gap * k * (k + 1) / 2

        assert tokens_per_step(1.0 - gap, k) == pytest.approx(expected, abs=1e-12 + 50_000 * gap**2)

    @given(st.floats(0.0, 0.99), counts)
    def test_it_is_the_quotient_of_the_paper(self, alpha: float, k: int) -> None:
        quotient = (1.0 - alpha ** (k + 1)) / (1.0 - alpha)

        assert tokens_per_step(alpha, k) == pytest.approx(quotient, rel=1e-12)

    @given(chances, chances, counts)
    def test_it_grows_with_alpha(self, one: float, other: float, k: int) -> None:
        low, high = sorted((one, other))

        assert tokens_per_step(low, k) <= tokens_per_step(high, k) + 1e-12

    @given(chances, counts)
    def test_it_grows_with_k_and_stays_within_1_and_k_plus_1(self, alpha: float, k: int) -> None:
        shorter, longer = tokens_per_step(alpha, k), tokens_per_step(alpha, k + 1)

        assert 1.0 <= shorter <= longer
        assert shorter <= k + 1


class TestSpeedUp:
    @given(chances, costs)
    def test_plain_decoding_is_no_faster_than_itself(self, alpha: float, cost: float) -> None:
        assert speed_up(alpha, 0, cost) == 1.0

    @given(chances, st.integers(1, 64), costs, costs)
    def test_a_dearer_draft_is_no_faster(self, alpha: float, k: int, one: float, other: float) -> None:
        cheap, dear = sorted((one, other))

        assert speed_up(alpha, k, cheap) >= speed_up(alpha, k, dear)


class TestBestK:
    @given(chances, costs, st.integers(0, 24))
    def test_no_other_k_is_faster(self, alpha: float, cost: float, max_k: int) -> None:
        best = best_k(alpha, cost, max_k)

        speeds = [speed_up(alpha, k, cost) for k in range(max_k + 1)]
        assert speeds[best] == max(speeds)

    def test_of_equal_lengths_it_takes_the_shortest(self) -> None:
        assert best_k(0.0, 0.0, max_k=8) == 0

    def test_a_draft_as_dear_as_its_chance_is_not_worth_it(self) -> None:
        assert best_k(0.5, 0.5, max_k=8) == 0
        assert best_k(0.5, 0.4, max_k=8) == 1

    def test_free_and_certain_guesses_are_taken_to_the_limit(self) -> None:
        assert best_k(1.0, 0.0, max_k=8) == 8


class TestExpectedTokens:
    def test_each_guess_adds_the_chance_that_it_is_reached_and_survives(self) -> None:
        assert expected_tokens([0.9, 0.5, 0.2]) == pytest.approx(1 + 0.9 + 0.45 + 0.09)

    def test_no_guess_is_one_token(self) -> None:
        assert expected_tokens([]) == 1.0

    def test_nothing_behind_a_certain_rejection_counts(self) -> None:
        assert expected_tokens([0.9, 0.0, 1.0, 1.0]) == pytest.approx(1.9)

    @given(chances, counts)
    def test_equal_chances_give_tokens_per_step(self, alpha: float, k: int) -> None:
        assert expected_tokens([alpha] * k) == pytest.approx(tokens_per_step(alpha, k), rel=1e-12)


class TestBadInput:
    @pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
    def test_an_alpha_that_is_no_chance_is_refused(self, alpha: float) -> None:
        with pytest.raises(ValueError, match=f"alpha is {alpha}; it must be from 0 to 1"):
            tokens_per_step(alpha, 4)

    def test_a_negative_k_is_refused(self) -> None:
        with pytest.raises(ValueError, match="k is -1; it must be 0 or more"):
            tokens_per_step(0.5, -1)

    @pytest.mark.parametrize("cost", [-0.5, math.inf, math.nan])
    def test_a_cost_that_is_no_price_is_refused(self, cost: float) -> None:
        with pytest.raises(ValueError, match=f"draft_cost is {cost}; it must be 0 or more, and finite"):
            speed_up(0.5, 4, cost)

    def test_a_negative_max_k_is_refused(self) -> None:
        with pytest.raises(ValueError, match="max_k is -1; it must be 0 or more"):
            best_k(0.5, 0.1, max_k=-1)

    def test_a_survival_that_is_no_chance_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"survival is 1\.5; it must be from 0 to 1"):
            expected_tokens([0.5, 1.5])
