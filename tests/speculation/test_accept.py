"""The rules leave the target's distribution alone; algebra first, then sequences against exact probabilities."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import RULE_NAMES, Drawn, Rule, acceptance, gumbel, residual, rule_named
from speculation.context import Context
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Checked, Guesser, KeepOn
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.eagle3 import Eagle3
from speculation.guessers.leftovers import Leftovers
from speculation.guessers.multi_token import MultiToken
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.guessers.recycling import Recycling
from speculation.guessers.trained_head import TrainedHead
from speculation.heads.head import Kind
from speculation.sampling import SamplingConfig, distribution
from speculation.testing import HistoryFeatures, HistoryLayers, HistoryModel, LengthenedDraft
from speculation.types import Distribution, Draft, Row, point_mass
from tests.speculation.examples import examples
from tests.speculation.heads.making import untrained

RULES = [name for name in RULE_NAMES if rule_named(name, 0).is_exact]  # which the laws are about
HOT = SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
CUT = SamplingConfig(temperature=0.8, top_k=2, top_p=1.0, min_p=0.0)


def made(weights: list[float]) -> Distribution:
    probs = np.array(weights) / sum(weights)
    order = np.argsort(-probs, kind="stable")
    order = order[probs[order] > 0]
    return Distribution(order.astype(np.int32), probs[order])


weights = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any).map(lambda w: made([float(x) for x in w]))


def dense(p: Distribution, size: int = 5) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    full = np.zeros(size)
    full[p.ids] = p.probs
    return full


@given(p=weights, q=weights)
def test_accepted_plus_residual_mass_is_the_target(p: Distribution, q: Distribution) -> None:
    kept = np.minimum(dense(p), dense(q))

    assert acceptance(p, q) == pytest.approx(kept.sum())
    np.testing.assert_allclose(kept + (1 - kept.sum()) * dense(residual(p, q)), dense(p), atol=1e-12)


@given(p=weights, token=st.integers(0, 4))
def test_the_residual_of_a_point_mass_is_the_target_without_that_token(p: Distribution, token: int) -> None:
    rest = dense(p)
    rest[token] = 0.0

    left = dense(residual(p, point_mass(token)))

    np.testing.assert_allclose(left, rest / rest.sum() if rest.any() else dense(p), atol=1e-12)


def test_the_seed_documents_draft_is_accepted_0_550() -> None:
    p = made([0.40, 0.25, 0.15, 0.10, 0.07, 0.03])
    q = made([0.10, 0.10, 0.30, 0.30, 0.10, 0.10])

    assert acceptance(p, q) == pytest.approx(0.550, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("rule_name", RULES)
def test_the_seed_documents_draft_yields_the_target_to_three_decimals(rule_name: str) -> None:
    p = made([0.40, 0.25, 0.15, 0.10, 0.07, 0.03])
    q = made([0.10, 0.10, 0.30, 0.30, 0.10, 0.10])
    rule, n = rule_named(rule_name, 0), 60_000

    counts = np.zeros(6)
    accepted = 0
    for position in range(n):
        token, reported = rule.draw(q, position)
        draft = Draft("test", (token,), None if reported is None else (reported,))
        verdict = rule.verify(lambda _: p, draft, position)
        accepted += verdict.accepted
        counts[token if verdict.accepted else verdict.token] += 1

    # Five standard errors of the most variable frequency; a false alarm once in 10^5 runs of other seeds.
    np.testing.assert_allclose(counts / n, dense(p, 6), atol=5 * (0.25 / n) ** 0.5)
    if rule_name == "rejection":
        assert accepted / n == pytest.approx(0.550, abs=0.011)


# -- The output law, over whole sequences ------------------------------------------------------------------

N_VOCAB, LENGTH, PROMPT, RUNS = 3, 4, (0, 1, 0, 1), 4000


def exact(sampling: SamplingConfig) -> dict[tuple[int, ...], float]:
    """The probability of every sequence of LENGTH tokens after PROMPT."""
    model = HistoryModel(N_VOCAB, 1, spread=1.0)
    law = {}
    for sequence in itertools.product(range(N_VOCAB), repeat=LENGTH):
        chance = 1.0
        for i, token in enumerate(sequence):
            chance *= distribution(model.row_after([*PROMPT, *sequence[:i]]), sampling).prob(token)
        law[sequence] = chance
    return law


def chi_square(counts: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> tuple[float, float]:
    """The statistic, with rare sequences pooled, and its critical value at a false-alarm rate of one in a million."""
    runs = sum(counts.values())
    rare = [s for s in law if runs * law[s] < 5]
    cells = [([s], law[s]) for s in law if runs * law[s] >= 5]
    if rare:
        cells.append((rare, sum(law[s] for s in rare)))
    statistic = sum(
        (sum(counts[s] for s in members) - runs * p) ** 2 / (runs * p) for members, p in cells if runs * p > 1e-9
    )
    impossible = sum(n for s, n in counts.items() if law[s] == 0.0)
    freedom = len(cells) - 1
    z = 4.7534  # one-sided normal quantile of 1 - 1e-6; then Wilson and Hilferty's cube
    critical = freedom * (1 - 2 / (9 * freedom) + z * (2 / (9 * freedom)) ** 0.5) ** 3
    return statistic + (float("inf") if impossible else 0.0), critical


Make = Callable[[SamplingConfig], Guesser]
SHARED_ROWS = HistoryModel(N_VOCAB, 1, spread=1.0), HistoryModel(N_VOCAB, 1, spread=1.0, blur=1.0)


def fresh(model: HistoryModel) -> HistoryModel:
    """The model with an empty cache; its rows are kept, because computing them again is what takes time."""
    model.rewind(0)
    return model


def layers_behind(target: HistoryModel) -> HistoryLayers:
    """Layers of their own behind a shared target, in place of those that followed it before."""
    target.trails.clear()
    return HistoryLayers(fresh(target))


MAKES: dict[str, Make] = {
    "lookup": lambda sampling: PromptLookup(),
    "draft": lambda sampling: DraftModel(fresh(SHARED_ROWS[1]), sampling, N_VOCAB),
    "lengthened draft": lambda sampling: LengthenedDraft(DraftModel(fresh(SHARED_ROWS[1]), sampling, N_VOCAB)),
    "cautious draft": lambda sampling: DraftModel(fresh(SHARED_ROWS[1]), sampling, N_VOCAB, min_p=0.5),
}


def sample(make: Make, rule: Callable[[int], Rule], k: int, sampling: SamplingConfig) -> Counter[tuple[int, ...]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(RUNS):
        guesser = make(sampling)
        engine = Engine(fresh(SHARED_ROWS[0]), {guesser.name: guesser}, Fixed(guesser.name, k), rule(seed), sampling)
        for _ in engine.read(np.array(PROMPT, dtype=np.int32)):
            pass
        steps = engine.steps(limit=LENGTH, ends=EndTokens())
        counts[tuple(token for step in steps for token in step.tokens)] += 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [HOT, CUT], ids=["hot", "cut"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("rule_name", RULES)
def test_output_follows_the_target(rule_name: str, name: str, k: int, sampling: SamplingConfig) -> None:
    counts = sample(MAKES[name], lambda seed: rule_named(rule_name, seed), k, sampling)

    statistic, critical = chi_square(counts, exact(sampling))

    assert statistic < critical


class Remembering(Recycling):
    """What rows said of earlier tokens; right behind a rejection, what is left over of it."""

    def __init__(self) -> None:
        super().__init__()
        self._leftovers = Leftovers()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        left = self._leftovers.propose(context, k, rule)
        return replace(left, guesser=self.name) if left.tokens else super().propose(context, k, rule)

    def watch(self, context: Context, checked: Checked) -> None:
        super().watch(context, checked)
        self._leftovers.watch(context, checked)


ON_THE_TARGET: dict[str, Make] = {
    "recycling and leftovers": lambda sampling: Remembering(),
    "mtp": lambda sampling: MultiToken(layers_behind(SHARED_ROWS[0]), sampling),
    "eagle": lambda sampling: TrainedHead(untrained(Kind.EAGLE, N_VOCAB), fresh(SHARED_ROWS[0]), sampling),
    "medusa": lambda sampling: TrainedHead(untrained(Kind.MEDUSA, N_VOCAB), fresh(SHARED_ROWS[0]), sampling),
    "eagle3": lambda sampling: Eagle3(HistoryFeatures(fresh(SHARED_ROWS[0]), blur=0.7), sampling),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_THE_TARGET)
@pytest.mark.parametrize("rule_name", RULES)
def test_output_follows_the_target_whose_own_rows_and_states_guess(rule_name: str, name: str) -> None:
    counts = sample(ON_THE_TARGET[name], lambda seed: rule_named(rule_name, seed), 3, HOT)

    statistic, critical = chi_square(counts, exact(HOT))

    assert statistic < critical


class ArgmaxWithSoftQ(DraftModel):
    """The planted bug: drafts the best token and claims to have drawn it."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        class Greedily:
            def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
                return [(int(q.ids[0]), q)]

            def foreseen(self, q: Distribution, position: int, n: int) -> tuple[()]:
                return ()

            def verify(self, rows: object, draft: Draft, position: int) -> None: ...

        return super().propose(context, k, Greedily())  # type: ignore[arg-type] # verify is never called


class StopsAfterTheDraw(DraftModel):
    """The planted bug: draws a token and then withholds it if it is improbable."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        draft = super().propose(context, k, rule)
        assert draft.q is not None
        keep = next((i for i, (t, q) in enumerate(zip(draft.tokens, draft.q, strict=True)) if q.prob(t) < 0.5), k)
        return draft.cut(keep)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [ArgmaxWithSoftQ, StopsAfterTheDraw])
@pytest.mark.parametrize("rule_name", ["rejection", "block"])
def test_a_draft_model_that_reports_another_q_than_it_drew_from_is_caught(
    rule_name: str, wrong: type[DraftModel]
) -> None:
    def make(sampling: SamplingConfig) -> Guesser:
        return wrong(fresh(SHARED_ROWS[1]), sampling, N_VOCAB)

    counts = sample(make, lambda seed: rule_named(rule_name, seed), 3, HOT)

    statistic, critical = chi_square(counts, exact(HOT))
    assert statistic > critical


@pytest.mark.slow
def test_a_residual_drawn_from_p_is_caught() -> None:
    class Wrong:
        def __init__(self, seed: int) -> None:
            self._right = rule_named("rejection", seed)
            self._rng = np.random.default_rng(seed + 10**6)
            self.judges_trees = False

        def draw_several(self, q: Distribution, position: int, n: int) -> list[Drawn]:
            return self._right.draw_several(q, position, n)

        def foreseen(self, q: Distribution, position: int, n: int) -> tuple[()]:
            return ()

        def verify(self, rows: Callable[[int], Distribution], draft: Draft, position: int) -> object:
            verdict = self._right.verify(rows, draft, position)
            p = rows(verdict.accepted)
            return type(verdict)(verdict.path, int(self._rng.choice(p.ids, p=p.probs)))

    counts = sample(MAKES["draft"], Wrong, 3, HOT)  # type: ignore[arg-type] # a planted bug

    statistic, critical = chi_square(counts, exact(HOT))
    assert statistic > critical


# -- Which rule accepts more, and what the noise is ---------------------------------------------------------


def mean_accepted(rule_name: str, rows: list[Row], draft_rows: list[Row], k: int = 4, runs: int = 1500) -> float:
    accepted = 0
    p = [distribution(row, HOT) for row in rows]
    q = [distribution(row, HOT) for row in draft_rows]
    for seed in range(runs):
        rule = rule_named(rule_name, seed)
        drawn = [rule.draw(q[i], i) for i in range(k)]
        reported = [report for _, report in drawn if report is not None]
        draft = Draft("test", tuple(token for token, _ in drawn), tuple(reported) or None)
        accepted += rule.verify(lambda i: p[i], draft, 0).accepted
    return accepted / runs


@pytest.mark.slow
def test_block_accepts_at_least_what_rejection_does_and_both_more_than_coupled() -> None:
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=30).astype(np.float32) * 2 for _ in range(5)]
    draft_rows = [(row + rng.normal(size=30) * 0.8).astype(np.float32) for row in rows]

    block, rejection, coupled = (mean_accepted(name, rows, draft_rows) for name in ("block", "rejection", "coupled"))

    assert block > rejection > coupled  # gaps of several standard errors (0.04) at these sizes


@given(st.integers(0, 2**64 - 1), st.integers(0, 200_000))
def test_noise_is_a_pure_function_of_seed_position_and_token(seed: int, position: int) -> None:
    ids = np.array([0, 5, 151_935], dtype=np.int32)

    together = gumbel(seed, position, ids)

    assert np.isfinite(together).all()
    for i, token in enumerate(ids):
        assert gumbel(seed, position, np.array([token], dtype=np.int32))[0] == together[i]


def test_noise_is_gumbel_and_independent_across_positions_tokens_and_seeds() -> None:
    ids = np.arange(300, dtype=np.int32)
    noise = np.array([gumbel(7, position, ids) for position in range(300)])

    uniform = np.sort(np.exp(-np.exp(-noise)).ravel())
    # Kolmogorov-Smirnov: 2.7 / sqrt(n) is passed by chance less than once in a million.
    assert np.abs(uniform - np.linspace(0, 1, uniform.size)).max() < 2.7 / uniform.size**0.5
    for other in (noise[:, 1:], noise[1:, :], np.array([gumbel(8, p, ids) for p in range(300)])):
        here = noise[: other.shape[0], : other.shape[1]]
        assert abs(np.corrcoef(here.ravel(), other.ravel())[0, 1]) < 5 / 299


@examples(50)
@given(p=weights, position=st.integers(0, 1000))
def test_rows_behind_the_first_rejection_are_never_asked_for(p: Distribution, position: int) -> None:
    asked: list[int] = []

    def rows(i: int) -> Distribution:
        asked.append(i)
        return point_mass(4)

    for name in RULES:
        asked.clear()
        rule_named(name, 0).verify(rows, Draft("test", (4, 4, 1, 4, 4)), position)
        assert max(asked) == 2


def test_an_unknown_rule_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="block, coupled, rejection, typical"):
        rule_named("any", 0)
