"""Heads: their slopes are right, they learn, they are judged on what they have not seen, and they guess in a reply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Checked
from speculation.guessers.trained_head import TrainedHead
from speculation.heads.budget import sizes
from speculation.heads.examples import Examples
from speculation.heads.fitting import Learner, Recipe
from speculation.heads.head import MEDUSA_DEPTHS, Head, Kind, Rollout
from speculation.heads.judging import accuracy
from speculation.heads.network import Matrix, backward, forward, fresh, shapes
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import FakeClock, HistoryModel
from speculation.types import Draft, Step
from tests.speculation.copying_world import Clocked
from tests.speculation.examples import examples
from tests.speculation.heads.making import untrained, walks

N_VOCAB, N_HIDDEN = 24, 10
RULE = rule_named("coupled", 0)
RECIPE = Recipe(epochs=4, rate=4e-3, batch=32, warm_up=10, ridge=1.0, depths=(1.0, 0.5, 0.25), dropout=0.05)


def head_for(kind: Kind, output: Matrix, width: int = 16) -> Head:
    rng = np.random.default_rng(3)
    n_in, count = (2 * N_HIDDEN, 1) if kind is Kind.EAGLE else (N_HIDDEN, MEDUSA_DEPTHS)
    networks = tuple(fresh(n_in, width, N_HIDDEN, rng) for _ in range(count))
    ids = np.arange(N_VOCAB, dtype=np.int32)
    return Head(kind, networks, ids, output, output if kind is Kind.EAGLE else output[:0], 1.5, 1.0)


# -- Mathematics -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(shapes(5, 4, 3)))
def test_the_slope_of_every_matrix_is_what_a_small_step_shows(name: str) -> None:
    rng = np.random.default_rng(1)
    weights = {key: each.astype(np.float64) for key, each in fresh(5, 4, 3, rng).items()}
    weights["leave"] *= 40  # or little would come of the stream
    x, direction = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))

    found = backward(weights, forward(weights, x)[1], direction)[name]  # type: ignore[arg-type]

    for place in [(0, 0), (weights[name].shape[0] - 1, weights[name].shape[1] - 1), (1, 2)]:
        ends = []
        for step in (1e-5, -1e-5):
            moved = {key: each.copy() for key, each in weights.items()}
            moved[name][place] += step
            ends.append(float((forward(moved, x)[0] * direction).sum()))  # type: ignore[arg-type]
        assert found[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("kind", list(Kind))
def test_the_slope_of_the_loss_leads_down(kind: Kind) -> None:
    examples, output = walks(400, N_VOCAB, N_HIDDEN, 1)
    learner = Learner(head_for(kind, output), examples, replace(RECIPE, closeness=0.0), 0)
    at = examples.with_ahead(4)[:8]
    features = np.random.default_rng(2).normal(size=(8, N_HIDDEN)).astype(np.float32)

    _, slope = learner._loss(features, at + 1)

    for place in ((0, 0), (3, 7), (7, 2)):
        ends = []
        for step in (1e-2, -1e-2):
            moved = features.copy()
            moved[place] += step
            ends.append(learner._loss(moved, at + 1)[0])
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=0.03, abs=2e-4)


def test_the_closed_form_finds_a_linear_law() -> None:
    rng = np.random.default_rng(5)
    law = rng.normal(size=(N_HIDDEN, N_HIDDEN)) / N_HIDDEN**0.5
    states = [rng.normal(size=N_HIDDEN) for _ in range(200)]
    hidden = np.concatenate([np.stack([state, law.T @ state]) for state in states]).astype(np.float16)
    pairs = np.repeat(np.arange(200, dtype=np.int32), 2)
    examples = Examples(np.zeros(400, dtype=np.int32), hidden, pairs)
    output = np.eye(N_VOCAB, N_HIDDEN, dtype=np.float32)
    learner = Learner(head_for(Kind.MEDUSA, output), examples, replace(RECIPE, depths=(), ridge=1e-3), 0)
    learner._positions = np.arange(0, 400, 2)

    learner._weights = learner._weights[:1]
    learner.solve()

    assert np.allclose(learner._weights[0]["skip"] * 1.5, law, atol=0.02)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_head_learns_what_follows_better_than_the_closed_form_alone(kind: Kind) -> None:
    examples, output = walks(6000, N_VOCAB, N_HIDDEN, 1)
    learner = Learner(head_for(kind, output), examples, RECIPE, 0)
    learner.solve()
    before = accuracy(learner.present, examples, 3)
    first = learner._loss(_features(learner, examples), examples.with_ahead(4)[:500] + 1)[0]

    for _ in range(RECIPE.epochs):
        for _ in learner.learn():
            pass

    after = accuracy(learner.present, examples, 3)
    assert learner.step == learner.steps
    assert after[0] > before[0] + 0.02
    assert learner._loss(_features(learner, examples), examples.with_ahead(4)[:500] + 1)[0] < first - 0.07


def _features(learner: Learner, examples: Examples) -> Matrix:
    at = examples.with_ahead(4)[:500]
    head = learner.present
    inputs = head.inputs(examples.hidden[at].astype(np.float32), head.places_of(examples.tokens)[at + 1])
    return forward(head.networks[0], inputs)[0]


@pytest.mark.parametrize("kind", list(Kind))
def test_a_learner_that_was_stopped_and_taken_up_ends_where_one_that_went_on_does(kind: Kind) -> None:
    examples, output = walks(1200, N_VOCAB, N_HIDDEN, 2)
    recipe = replace(RECIPE, epochs=2)
    whole = Learner(head_for(kind, output), examples, recipe, 7)
    whole.solve()
    for _ in range(2):
        list(whole.learn())

    begun = Learner(head_for(kind, output), examples, recipe, 7)
    begun.solve()
    for learned in begun.learn():
        if learned.step == 11:
            break
    other = Learner(head_for(kind, output), examples, recipe, 7)
    other.load({name: each.copy() for name, each in begun.state().items()}, begun.step)
    while other.step < other.steps:
        list(other.learn())

    for name, each in whole.state().items():
        assert np.array_equal(each, other.state()[name]), name


def test_a_state_of_another_head_is_refused() -> None:
    examples, output = walks(600, N_VOCAB, N_HIDDEN, 2)
    learner = Learner(head_for(Kind.EAGLE, output), examples, RECIPE, 0)
    other = Learner(head_for(Kind.EAGLE, output, width=8), examples, RECIPE, 0)

    with pytest.raises(ValueError, match="another head"):
        learner.load(other.state(), 0)
    with pytest.raises(KeyError):
        learner.load({}, 0)


# -- Examples --------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 5))
def test_what_lies_ahead_is_of_the_same_text(lengths: list[int], ahead: int) -> None:
    texts = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    examples = Examples(np.zeros(len(texts), dtype=np.int32), np.zeros((len(texts), 1), dtype=np.float16), texts)

    found = examples.with_ahead(ahead)

    assert (texts[found] == texts[found + ahead]).all()
    assert len(found) == sum(max(0, length - ahead) for length in lengths)


def test_what_is_held_out_is_never_learned_from_and_whole_texts_are() -> None:
    examples, output = walks(1200, N_VOCAB, N_HIDDEN, 2)
    learner = Learner(head_for(Kind.EAGLE, output), examples, RECIPE, 0)

    learned_from = set(examples.texts[learner._positions].tolist())
    held = set(examples.texts[examples.held_out(np.arange(len(examples)))].tolist())

    assert held
    assert not held & learned_from
    assert held | learned_from == set(examples.texts.tolist())


def test_the_vocabulary_is_the_frequent_tokens_and_then_the_lowest() -> None:
    tokens = np.array([5, 5, 5, 9, 9, 2], dtype=np.int32)
    examples = Examples(tokens, np.zeros((6, 1), dtype=np.float16), np.zeros(6, dtype=np.int32))

    assert examples.vocabulary(5, 12).tolist() == [5, 9, 2, 0, 1]


# -- Size ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target_bytes", "n_hidden", "n_vocab"), [(98e6, 576, 49152), (400e6, 896, 151936), (1117e6, 1536, 151936)]
)
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_drafted_token_reads_a_fourteenth_of_the_target_at_most(
    target_bytes: float, n_hidden: int, n_vocab: int, inputs: int
) -> None:
    found = sizes(int(target_bytes), n_hidden, inputs * n_hidden, n_vocab)

    numbers = sum(a * b for a, b in shapes(inputs * n_hidden, found.width, n_hidden).values())
    assert 4 * (numbers + found.n_ids * n_hidden) <= min(target_bytes / 14, 40e6)
    assert found.n_ids >= 1024


@given(st.integers(1, 10**10), st.integers(8, 4096), st.integers(1, 2), st.integers(100, 300_000))
def test_every_model_gets_a_head_of_some_size(target_bytes: int, n_hidden: int, inputs: int, n_vocab: int) -> None:
    found = sizes(target_bytes, n_hidden, inputs * n_hidden, n_vocab)

    assert found.width > 0
    assert 0 < found.n_ids <= n_vocab


# -- Guessing --------------------------------------------------------------------------------------------------


def write(guesser: TrainedHead, target: HistoryModel, k: int, limit: int = 60) -> list[Step]:
    engine = Engine(target, {guesser.name: guesser}, Fixed(guesser.name, k), RULE, GREEDY)
    for _ in engine.read(np.array([1, 2, 3], dtype=np.int32)):
        pass
    return list(engine.steps(limit=limit, ends=EndTokens()))


@pytest.mark.parametrize("kind", list(Kind))
def test_a_head_sits_out_one_step_behind_a_prompt_and_guesses_in_every_other(kind: Kind) -> None:
    target = HistoryModel(N_VOCAB, 1)

    steps = write(TrainedHead(untrained(kind, N_VOCAB), target, GREEDY), target, 2)

    assert [step.drafted for step in steps[:4]] == [0, 2, 2, 2]


def test_medusa_guesses_as_far_as_it_has_heads_and_eagle_goes_on() -> None:
    target = HistoryModel(N_VOCAB, 1)

    medusa = write(TrainedHead(untrained(Kind.MEDUSA, N_VOCAB), target, GREEDY), target, 9)
    eagle = write(TrainedHead(untrained(Kind.EAGLE, N_VOCAB), target, GREEDY), target, 9)

    assert max(step.drafted for step in medusa) == MEDUSA_DEPTHS
    assert max(step.drafted for step in eagle) == 9


class Perfect(HistoryModel):
    """A model whose logits turn round by one token at each step, which a linear head can know."""

    def _after(self, key: int, token: int) -> int:
        return token

    def _row(self, key: int) -> Matrix:
        row = np.zeros(self.n_vocab, dtype=np.float32)
        row[(key + 1) % self.n_vocab] = 9.0
        return row


def test_a_head_that_knows_the_law_is_always_right() -> None:
    head = untrained(Kind.EAGLE, N_VOCAB, n_ids=N_VOCAB)
    turned = np.roll(np.eye(N_VOCAB, dtype=np.float32), 1, axis=1)
    behind = np.concatenate([np.zeros((N_VOCAB, N_VOCAB), dtype=np.float32), 9.0 * turned])
    weights = {**head.networks[0], "skip": behind, "leave": np.zeros_like(head.networks[0]["leave"])}
    target = Perfect(N_VOCAB, 1)

    steps = write(TrainedHead(replace(head, networks=(weights,)), target, GREEDY), target, 5)

    assert all(step.accepted == step.drafted for step in steps)
    assert sum(step.drafted for step in steps) >= 45


@given(cut=st.integers(1, 8), more=st.lists(st.integers(0, 3), max_size=6))
@examples(60)
def test_a_state_is_not_used_once_the_text_is_another(cut: int, more: list[int]) -> None:
    target = HistoryModel(N_VOCAB, 1)
    guesser = TrainedHead(untrained(Kind.EAGLE, N_VOCAB), target, GREEDY)
    context = Context([1, 2, 3, 4, 5, 6])
    target.forward([1, 2, 3, 4, 5], n_rows=0)
    target.forward([6], n_rows=1)
    guesser.watch(context, Checked(Draft("plain"), target.row_after([])[None, :], (), (7,)))
    context.extend([7])
    assert guesser.knows(context)

    context.truncate(len(context) - min(cut, 6))
    context.extend(more)

    assert guesser.knows(context) == (cut == 1 and more == [7])


def test_a_guess_follows_the_state_of_the_last_accepted_row() -> None:
    target = HistoryModel(N_VOCAB, 1)
    head = untrained(Kind.EAGLE, N_VOCAB)
    guesser, context = TrainedHead(head, target, GREEDY), Context([1, 2])
    target.forward([1], n_rows=0)
    rows = target.forward([2, 8, 9], n_rows=3)
    guesser.watch(context, Checked(Draft("lookup", (8, 9)), rows, (0,), (8, 5)))
    context.extend([8, 5])

    rollout = Rollout(head, target.row_after([1, 2, 8]))

    behind = rollout.behind([0], [5])
    assert behind is not None
    assert guesser.propose(context, 1, RULE).tokens == (int(head.ids[behind[0].argmax()]),)


def test_a_target_that_keeps_no_states_gets_no_guess() -> None:
    target = HistoryModel(N_VOCAB, 1)
    target.keeps_hidden = False

    steps = write(TrainedHead(untrained(Kind.EAGLE, N_VOCAB), target, GREEDY), target, 4)

    assert {step.drafted for step in steps} == {0}


def test_auto_prices_a_head_and_leaves_it_where_it_is_always_wrong() -> None:
    target = HistoryModel(N_VOCAB, 1)
    guesser = TrainedHead(untrained(Kind.EAGLE, N_VOCAB), target, GREEDY)
    between = CostTable({1: 1.0, 2: 1.3, 4: 1.9, 8: 3.1, 64: 20.0})  # a machine between a CPU and a GPU
    clocked = Clocked(Adaptive(between, heads={"eagle": 0.05}), between, 0.05)
    engine = Engine(target, {"eagle": guesser}, clocked, RULE, GREEDY)  # type: ignore[arg-type]
    for _ in engine.read(np.array([1, 2, 3], dtype=np.int32)):
        pass

    plans, steps = [], []
    for step in engine.steps(limit=400, ends=EndTokens()):
        steps.append(step)
        plans.append(engine.plan)

    assert {"plain", "eagle"} <= {priced.guesser for plan in plans for priced in plan.considered}
    assert any(step.drafted for step in steps[:20])
    assert sum(step.drafted > 0 for step in steps[-100:]) < 40


def test_a_head_shows_nothing_for_free_is_timed_once_and_follows_a_change_of_sampling() -> None:
    target = HistoryModel(N_VOCAB, 1)
    guesser = TrainedHead(untrained(Kind.EAGLE, N_VOCAB), target, GREEDY)
    clock = FakeClock(0.5)

    assert guesser.candidates(Context([1, 2]), 4) == ()
    assert guesser.token_s(clock) == 0.5
    looked = clock.now_s
    assert guesser.token_s(clock) == 0.5
    assert clock.now_s == looked
    guesser.sampling = SamplingConfig(temperature=0.5)
    assert guesser.sampling.temperature == 0.5


@pytest.mark.parametrize("kind", Kind)
def test_a_token_reads_the_output_rows_and_one_network(kind: Kind) -> None:
    head = untrained(kind, N_VOCAB, n_ids=7)

    network = 4 * sum(matrix.size for matrix in head.networks[0].values())

    assert head.n_features == N_VOCAB
    assert head.bytes_read == 4 * 7 * N_VOCAB + network


def test_without_held_out_texts_nothing_is_claimed_to_be_right() -> None:
    examples, output = walks(60, N_VOCAB, N_HIDDEN, 1)  # five texts, all of them learned from

    with pytest.raises(ValueError, match="no text is held out"):
        accuracy(head_for(Kind.EAGLE, output), examples, 3)
