"""From logits to distributions: by hand, by law, and next to llama.cpp's own chain of samplers."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import llama_cpp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from speculation.sampling import GREEDY, SamplingConfig, distribution, probabilities
from speculation.types import Distribution, Row, SpeculationError

NOTHING_CUT = SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
NEAR = 1e-4  # how close to a cut float32 and float64 may disagree on what is kept


def logits_of(*probs: float) -> Row:
    """A row whose softmax is these probabilities; 0 becomes minus infinity."""
    return np.array([math.log(p) if p else -math.inf for p in probs], dtype=np.float32)


HALF = logits_of(0.5, 0.25, 0.15, 0.1)


def listed(result: Distribution) -> dict[int, float]:
    return dict(zip(result.ids.tolist(), result.probs.tolist(), strict=True))


def near_a_cut(row: Row, config: SamplingConfig) -> bool:
    """Whether rounding could decide what top_p or min_p keeps of this row (V,)."""
    logits = np.sort(row.astype(np.float64))[::-1]
    if config.top_k:
        logits = logits[: config.top_k]
    weights = np.exp(logits - logits[0])
    mass = weights.cumsum() / weights.sum()
    at_top_p = config.top_p < 1 and (np.abs(mass - config.top_p) < NEAR).any()
    if config.min_p == 0:
        return bool(at_top_p)
    floor = logits[0] + math.log(config.min_p)
    return bool(at_top_p or (np.abs(logits[1:] - floor) < NEAR).any())  # the best token is always kept


def spelled_out(row: Row, config: SamplingConfig) -> Distribution:
    """The definitions, one after another, over the whole row in float64; no penalty, temperature above 0."""
    ids = sorted(range(row.size), key=lambda token: (-float(row[token]), token))
    ids = [token for token in ids if row[token] > -math.inf]
    if config.top_k:
        ids = ids[: config.top_k]
    logits = row[ids].astype(np.float64)
    weights = np.exp(logits - logits[0])
    shares = weights / weights.sum()
    before = np.concatenate(([0.0], shares.cumsum()[:-1]))
    keep = (weights >= config.min_p) & ((before < config.top_p) | (config.top_p == 1))
    keep[0] = True
    tempered = np.exp((logits[keep] - logits[0]) / config.temperature)
    return Distribution(np.array(ids, dtype=np.int32)[keep], tempered / tempered.sum())


finite = st.floats(-60.0, 60.0, width=32)
rows = st.lists(finite, min_size=1, max_size=60).map(lambda logits: np.array(logits, dtype=np.float32))
rows_without_ties = st.lists(finite, min_size=1, max_size=60, unique=True).map(
    lambda logits: np.array(logits, dtype=np.float32)
)
configs = st.builds(
    SamplingConfig,
    temperature=st.floats(0.05, 5.0),
    top_k=st.integers(0, 50),
    top_p=st.floats(0.0, 1.0),
    min_p=st.floats(0.0, 1.0),
)


@st.composite
def long_rows(draw: st.DrawFn) -> Row:
    """Rows long enough to be folded, with many ties and impossible tokens."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(100, 6000))
    spread = draw(st.sampled_from((0.0, 1.0, 3.0, 30.0)))
    row = np.round(rng.normal(size=size) * spread).astype(np.float32)
    row[rng.random(size) < draw(st.sampled_from((0.0, 0.5, 0.999)))] = -np.inf
    row[rng.integers(size)] = 0.0  # one token at least is possible
    return row


class TestEachCutByHand:
    def test_with_nothing_cut_it_is_the_softmax(self) -> None:
        result = distribution(HALF, NOTHING_CUT)

        assert listed(result) == pytest.approx({0: 0.5, 1: 0.25, 2: 0.15, 3: 0.1}, abs=1e-7)

    def test_the_most_probable_token_comes_first(self) -> None:
        result = distribution(logits_of(0.1, 0.5, 0.15, 0.25), NOTHING_CUT)

        assert result.ids.tolist() == [1, 3, 2, 0]

    def test_top_k_keeps_the_k_best(self) -> None:
        result = distribution(HALF, replace(NOTHING_CUT, top_k=2))

        assert listed(result) == pytest.approx({0: 2 / 3, 1: 1 / 3}, abs=1e-7)

    def test_a_top_k_beyond_the_vocabulary_keeps_all(self) -> None:
        assert distribution(HALF, replace(NOTHING_CUT, top_k=9)).ids.size == 4

    def test_top_p_keeps_the_token_that_reaches_it(self) -> None:
        result = distribution(HALF, replace(NOTHING_CUT, top_p=0.7))

        assert listed(result) == pytest.approx({0: 2 / 3, 1: 1 / 3}, abs=1e-7)

    def test_top_p_0_keeps_the_best_token(self) -> None:
        assert listed(distribution(HALF, replace(NOTHING_CUT, top_p=0.0))) == {0: 1.0}

    def test_top_p_looks_at_shares_of_what_top_k_kept(self) -> None:
        # Of all four: 0.5, 0.75, 0.9. Of the best three: 0.56, 0.83.
        assert distribution(HALF, replace(NOTHING_CUT, top_p=0.8)).ids.size == 3
        assert distribution(HALF, replace(NOTHING_CUT, top_p=0.8, top_k=3)).ids.size == 2

    def test_min_p_is_relative_to_the_best_token(self) -> None:
        result = distribution(HALF, replace(NOTHING_CUT, min_p=0.25))

        assert listed(result) == pytest.approx({0: 0.5 / 0.9, 1: 0.25 / 0.9, 2: 0.15 / 0.9}, abs=1e-7)

    def test_min_p_1_keeps_only_the_best_tokens(self) -> None:
        result = distribution(logits_of(0.4, 0.2, 0.4), replace(NOTHING_CUT, min_p=1.0))

        assert listed(result) == {0: 0.5, 2: 0.5}

    def test_temperature_one_half_squares_the_probabilities(self) -> None:
        result = distribution(HALF, replace(NOTHING_CUT, temperature=0.5))

        squares = {0: 0.25, 1: 0.0625, 2: 0.0225, 3: 0.01}
        assert listed(result) == pytest.approx({i: p / 0.345 for i, p in squares.items()}, abs=1e-6)

    def test_top_p_looks_at_probabilities_before_temperature(self) -> None:
        # After temperature the best token alone has 0.72.
        result = distribution(HALF, replace(NOTHING_CUT, temperature=0.5, top_p=0.7))

        assert listed(result) == pytest.approx({0: 0.8, 1: 0.2}, abs=1e-6)

    def test_min_p_looks_at_probabilities_before_temperature(self) -> None:
        # After temperature the second token has a quarter of the best one's probability.
        result = distribution(HALF, replace(NOTHING_CUT, temperature=0.5, min_p=0.4))

        assert listed(result) == pytest.approx({0: 0.8, 1: 0.2}, abs=1e-6)

    def test_tokens_that_rounding_makes_impossible_are_not_listed(self) -> None:
        result = distribution(np.array([0.0, -1.0], dtype=np.float32), replace(NOTHING_CUT, temperature=1e-5))

        assert listed(result) == {0: 1.0}


class TestGreedy:
    def test_it_is_all_on_the_best_token(self) -> None:
        assert listed(distribution(logits_of(0.1, 0.2, 0.7), GREEDY)) == {2: 1.0}

    def test_of_equal_tokens_it_takes_the_lowest_id(self) -> None:
        assert listed(distribution(logits_of(0.2, 0.4, 0.4), GREEDY)) == {1: 1.0}

    def test_it_looks_after_the_penalty(self) -> None:
        config = replace(GREEDY, repeat_penalty=2.0)

        assert listed(distribution(np.array([2.0, 1.5, -3.0], dtype=np.float32), config, [0])) == {1: 1.0}

    @given(rows, configs)
    def test_it_is_the_first_token_of_every_other_temperature(self, row: Row, config: SamplingConfig) -> None:
        greedy = distribution(row, replace(config, temperature=0.0))

        assert greedy.ids[0] == distribution(row, config).ids[0]


class TestTheRepeatPenalty:
    ROW = np.array([2.0, 1.0, -1.0], dtype=np.float32)

    def penalised(self, recent: Sequence[int], last_n: int = 64, penalty: float = 2.0) -> NDArray[np.float64]:
        """The logits (V,) that the result implies, shifted so that the largest is 0."""
        config = replace(NOTHING_CUT, repeat_penalty=penalty, repeat_last_n=last_n)
        result = distribution(self.ROW, config, recent)
        logits = np.empty(3)
        logits[result.ids] = np.log(result.probs / result.probs[0])
        return logits

    def test_it_divides_positive_logits(self) -> None:
        np.testing.assert_allclose(self.penalised([0]), [0.0, 0.0, -2.0], atol=1e-7)

    def test_it_multiplies_negative_logits(self) -> None:
        np.testing.assert_allclose(self.penalised([2]), [0.0, -1.0, -4.0], atol=1e-7)

    def test_a_token_is_penalised_once_however_often_it_was_seen(self) -> None:
        np.testing.assert_allclose(self.penalised([2, 0, 2, 0]), [0.0, 0.0, -3.0], atol=1e-7)

    @pytest.mark.parametrize(("last_n", "expected"), [(0, [0, -1, -3]), (1, [0, -1, -4]), (-1, [0, 0, -3])])
    def test_it_looks_back_over_the_last_n_tokens(self, last_n: int, expected: list[float]) -> None:
        np.testing.assert_allclose(self.penalised([0, 2], last_n), expected, atol=1e-7)

    def test_a_penalty_of_1_is_off(self) -> None:
        np.testing.assert_allclose(self.penalised([0, 1, 2], penalty=1.0), [0.0, -1.0, -3.0], atol=1e-7)

    def test_it_takes_an_array_of_tokens_too(self) -> None:
        config = replace(NOTHING_CUT, repeat_penalty=2.0)

        result = distribution(self.ROW, config, np.array([0, 2], dtype=np.int32))

        assert listed(result) == listed(distribution(self.ROW, config, [0, 2]))


class TestEveryDistribution:
    @given(rows, configs)
    def test_sums_to_1_and_falls(self, row: Row, config: SamplingConfig) -> None:
        result = distribution(row, config)

        assert result.probs.sum() == pytest.approx(1.0, abs=1e-12)
        assert (result.probs > 0).all()
        assert (np.diff(result.probs) <= 0).all()
        assert result.ids.dtype == np.int32
        assert result.probs.dtype == np.float64

    @given(rows, configs)
    def test_lists_only_the_top_k_each_once(self, row: Row, config: SamplingConfig) -> None:
        ids = distribution(row, config).ids.tolist()

        best = sorted(range(row.size), key=lambda token: (-row[token], token))
        assert ids == best[: len(ids)]
        assert len(ids) <= (config.top_k or row.size)

    @given(rows_without_ties, configs, st.randoms(use_true_random=False))
    def test_follows_its_tokens_when_they_are_renumbered(
        self, row: Row, config: SamplingConfig, shuffler: random.Random
    ) -> None:
        assume(not near_a_cut(row, config))
        order = list(range(row.size))
        shuffler.shuffle(order)

        renumbered = distribution(row[order], config)

        original = distribution(row, config)
        assert [order[token] for token in renumbered.ids] == original.ids.tolist()
        np.testing.assert_allclose(renumbered.probs, original.probs, atol=1e-12)

    @given(rows, configs, st.floats(0.5, 2.0), st.lists(st.integers(0, 59), max_size=3))
    def test_leaves_the_row_as_it_was(
        self, row: Row, config: SamplingConfig, penalty: float, recent: list[int]
    ) -> None:
        before = row.copy()
        row.setflags(write=False)

        distribution(row, replace(config, repeat_penalty=penalty), [token % row.size for token in recent])

        np.testing.assert_array_equal(row, before)

    @given(rows, st.floats(0.2, 5.0))
    def test_at_a_temperature_is_that_of_the_logits_divided_by_it(self, row: Row, temperature: float) -> None:
        tempered = distribution(row, replace(NOTHING_CUT, temperature=temperature))

        divided = row.astype(np.float64) / temperature
        weights = np.exp(divided - divided.max())
        np.testing.assert_allclose(tempered.probs, (weights / weights.sum())[tempered.ids], rtol=1e-9)

    @given(long_rows(), configs)
    def test_is_what_the_definitions_say(self, row: Row, config: SamplingConfig) -> None:
        assume(not near_a_cut(row, config))

        result = distribution(row, config)

        expected = spelled_out(row, config)
        np.testing.assert_array_equal(result.ids, expected.ids[: result.ids.size])
        np.testing.assert_allclose(result.probs, expected.probs[: result.ids.size], atol=1e-9)
        assert (expected.probs[result.ids.size :] == 0).all()

    @given(long_rows(), st.sampled_from((0.5, 0.9, 0.999, 1.0)))
    def test_with_top_p_alone_is_what_the_definitions_say(self, row: Row, top_p: float) -> None:
        config = replace(NOTHING_CUT, top_p=top_p)
        assume(not near_a_cut(row, config))

        result = distribution(row, config)

        np.testing.assert_array_equal(result.ids, spelled_out(row, config).ids)


class TestRowsThatLeaveNoOrLittleChoice:
    def test_impossible_tokens_are_never_listed(self) -> None:
        row = logits_of(0.0, 0.75, 0.0, 0.25)

        for config in (NOTHING_CUT, replace(NOTHING_CUT, top_k=3), replace(NOTHING_CUT, top_p=0.999)):
            assert listed(distribution(row, config)) == pytest.approx({1: 0.75, 3: 0.25}, abs=1e-7)

    def test_the_whole_range_of_float32_is_fine(self) -> None:
        largest = float(np.finfo(np.float32).max)
        row = np.array([largest, -largest, -math.inf], dtype=np.float32)

        for config in (NOTHING_CUT, SamplingConfig(), replace(NOTHING_CUT, temperature=1e-300)):
            assert listed(distribution(row, config)) == {0: 1.0}

    @pytest.mark.parametrize("config", [GREEDY, SamplingConfig(), NOTHING_CUT])
    @pytest.mark.parametrize("at", [0, 1, 4_999])
    def test_a_row_with_a_nan_is_refused(self, config: SamplingConfig, at: int) -> None:
        row = np.zeros(5_000, dtype=np.float32)
        row[at] = math.nan

        with pytest.raises(SpeculationError, match="allow no choice of a token: the highest of them is nan"):
            distribution(row, config)

    @pytest.mark.parametrize("value", [-math.inf, math.inf])
    def test_a_row_without_a_finite_maximum_is_refused(self, value: float) -> None:
        row = np.full(5, value, dtype=np.float32)

        with pytest.raises(SpeculationError, match=f"the highest of them is {value}"):
            distribution(row, SamplingConfig())
        with pytest.raises(SpeculationError, match=f"the highest of them is {value}"):
            probabilities(row, [0])


class TestProbabilities:
    def test_they_are_in_the_order_asked_for(self) -> None:
        np.testing.assert_allclose(probabilities(HALF, [2, 0, 2]), [0.15, 0.5, 0.15], atol=1e-7)

    def test_an_impossible_token_has_none(self) -> None:
        assert probabilities(logits_of(1.0, 0.0), [1]).tolist() == [0.0]

    def test_none_asked_for_is_none_given(self) -> None:
        assert probabilities(HALF, []).shape == (0,)

    @given(rows)
    def test_of_all_tokens_they_sum_to_1(self, row: Row) -> None:
        assert probabilities(row, range(row.size)).sum() == pytest.approx(1.0, abs=1e-5)

    @given(rows, st.floats(-1000.0, 1000.0, width=32))
    def test_a_shift_of_all_logits_changes_nothing(self, row: Row, shift: float) -> None:
        # A float32 near 1000 is off by up to 6e-5, and a probability by as much of itself.
        shifted = probabilities(row + np.float32(shift), range(row.size))

        np.testing.assert_allclose(shifted, probabilities(row, range(row.size)), atol=2e-4)


class TestSettings:
    @pytest.mark.parametrize(
        ("field", "value", "allowed"),
        [
            ("temperature", -0.1, "0 or more, and finite"),
            ("temperature", math.inf, "0 or more, and finite"),
            ("temperature", math.nan, "0 or more, and finite"),
            ("top_k", -1, r"0 \(keep all\) or more"),
            ("top_p", 1.1, "from 0 to 1"),
            ("top_p", -0.1, "from 0 to 1"),
            ("min_p", 1.1, "from 0 to 1"),
            ("min_p", math.nan, "from 0 to 1"),
            ("repeat_penalty", 0.0, "more than 0, and finite"),
            ("repeat_penalty", math.inf, "more than 0, and finite"),
            ("repeat_last_n", -2, r"-1 \(whole context\), 0 \(off\) or more"),
        ],
    )
    def test_a_value_out_of_range_is_refused(self, field: str, value: float, allowed: str) -> None:
        settings: dict[str, Any] = {field: value}

        with pytest.raises(ValueError, match=f"^{field} is {value}; it must be {allowed}$"):
            SamplingConfig(**settings)


def chain_of_llama_cpp(row: Row, config: SamplingConfig, recent: Sequence[int]) -> Distribution:
    """What llama.cpp's own samplers make of a row."""
    last_n = len(recent) if config.repeat_last_n < 0 else config.repeat_last_n
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for sampler in (
        llama_cpp.llama_sampler_init_penalties(row.size, last_n, config.repeat_penalty, 0.0, 0.0),
        llama_cpp.llama_sampler_init_top_k(config.top_k),
        llama_cpp.llama_sampler_init_top_p(config.top_p, 1),
        llama_cpp.llama_sampler_init_min_p(config.min_p, 1),
        llama_cpp.llama_sampler_init_temp(config.temperature),
    ):
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    for token in recent:
        llama_cpp.llama_sampler_accept(chain, token)

    entries = np.zeros(row.size, dtype=[("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    entries["id"] = np.arange(row.size)
    entries["logit"] = row
    array = llama_cpp.llama_token_data_array(
        data=entries.ctypes.data_as(llama_cpp.llama_token_data_p), size=row.size, selected=-1, sorted=False
    )
    llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
    llama_cpp.llama_sampler_free(chain)

    kept = np.array([(array.data[i].id, array.data[i].logit) for i in range(array.size)], dtype=np.float64)
    kept = kept[np.isfinite(kept[:, 1])]  # at temperature 0 it keeps the others at minus infinity
    kept = kept[np.argsort(-kept[:, 1], kind="stable")]
    weights = np.exp(kept[:, 1] - kept[0, 1])
    return Distribution(kept[:, 0].astype(np.int32), weights / weights.sum())


class TestAgreementWithLlamaCpp:
    CONFIGS = (
        SamplingConfig(),
        GREEDY,
        replace(GREEDY, repeat_penalty=1.5),
        SamplingConfig(repeat_penalty=1.3),
        SamplingConfig(repeat_penalty=0.8, repeat_last_n=3),
        SamplingConfig(repeat_penalty=1.3, repeat_last_n=-1),
        SamplingConfig(repeat_penalty=1.3, repeat_last_n=0),
        SamplingConfig(top_k=3, top_p=0.8, min_p=0.0),
        SamplingConfig(top_k=0, top_p=0.9, min_p=0.0, temperature=1.5),
        SamplingConfig(top_k=0, top_p=1.0, min_p=0.1),
        SamplingConfig(top_k=0, top_p=0.95, min_p=0.02),
        SamplingConfig(top_k=1, temperature=1.0),
        NOTHING_CUT,
    )

    def compare(self, size: int, config: SamplingConfig, seed: int) -> None:
        rng = np.random.default_rng(seed)
        row = (rng.normal(size=size) * rng.choice([1.0, 3.0, 6.0])).astype(np.float32)
        recent = rng.choice(np.argsort(-row)[:20], size=30).tolist()

        ours = distribution(row, config, recent)

        theirs = chain_of_llama_cpp(row, config, recent)
        np.testing.assert_array_equal(ours.ids, theirs.ids)
        np.testing.assert_allclose(ours.probs, theirs.probs, atol=1e-5)

    @pytest.mark.parametrize("config", CONFIGS, ids=repr)
    @pytest.mark.parametrize("size", [5, 41, 300, 2000])
    def test_the_same_tokens_have_the_same_probabilities(self, size: int, config: SamplingConfig) -> None:
        for seed in range(10):
            self.compare(size, config, seed)

    @pytest.mark.parametrize("config", CONFIGS[:4], ids=repr)
    def test_it_holds_for_a_vocabulary_of_a_real_model(self, config: SamplingConfig) -> None:
        self.compare(151_936, config, seed=0)

    @given(st.integers(5, 2000), configs, st.integers(0, 2**32 - 1))
    def test_it_holds_for_any_settings(self, size: int, config: SamplingConfig, seed: int) -> None:
        row = (np.random.default_rng(seed).normal(size=size) * 3).astype(np.float32)
        # Their sums are in float32: what lies on a cut may fall on either side.
        assume(not near_a_cut(row, config))

        ours = distribution(row, config)

        theirs = chain_of_llama_cpp(row, config, [])
        np.testing.assert_array_equal(ours.ids, theirs.ids)
        np.testing.assert_allclose(ours.probs, theirs.probs, atol=1e-4)
