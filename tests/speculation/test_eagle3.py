"""An EAGLE-3 head as a guesser: what it reads, what it leaves out, and which targets it is refused for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Guesser
from speculation.guessers.eagle3 import Eagle3
from speculation.heads.eagle3 import HeadFacts, TargetFacts, why_unfit
from speculation.sampling import GREEDY
from speculation.testing import BushyGuesser, FakeClock, HistoryFeatures, HistoryModel
from speculation.types import Step

N_VOCAB = 12
RULE = rule_named("coupled", 0)


def engine_with(target: HistoryModel, head: HistoryFeatures) -> Engine:
    guessers: dict[str, Guesser] = {"eagle3": Eagle3(head, GREEDY), "bushy": BushyGuesser(N_VOCAB)}
    return Engine(target, guessers, Fixed("eagle3", 4), RULE, GREEDY)


def read(engine: Engine, prompt: list[int]) -> None:
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass


def write(engine: Engine, limit: int) -> list[Step]:
    return list(engine.steps(limit=limit, ends=EndTokens()))


def test_a_head_that_is_its_target_is_right_from_the_first_step_on_and_reads_each_token_once() -> None:
    target = HistoryModel(N_VOCAB, 1)
    head = HistoryFeatures(target)
    engine = engine_with(target, head)
    read(engine, [1, 2, 3] * 50)

    steps = write(engine, 50)

    assert [step.drafted for step in steps] == [4] * 10
    assert all(step.accepted == step.drafted for step in steps)
    # The prompt and what was written, but the first token and the last five; and three in each step while drafting.
    assert head.entries == 150 + 50 - 1 - 5 + 10 * 3


def test_a_prompt_is_taken_up_while_the_target_reads_it_not_by_the_first_guess() -> None:
    target = HistoryModel(N_VOCAB, 1)
    head = HistoryFeatures(target)
    engine = engine_with(target, head)

    read(engine, [1, 2, 3] * 100)

    assert head.entries == 300 - 1 - 1  # the target leaves the last token to its first step, an entry needs the next


@given(
    turns=st.lists(
        st.tuples(st.sampled_from(["eagle3", "bushy", "plain"]), st.integers(0, 6), st.integers(0, 30)), min_size=2
    )
)
@settings(max_examples=60)
def test_whoever_guessed_before_and_whatever_was_cut_it_proposes_what_a_fresh_one_would(
    turns: list[tuple[str, int, int]],
) -> None:
    target = HistoryModel(N_VOCAB, 1)
    engine = engine_with(target, HistoryFeatures(target, blur=1.0))
    prompt = [1, 2, 3]
    for name, k, cut in turns:
        read(engine, prompt)
        engine.controller = Fixed(name, k)
        write(engine, 9)
        prompt = [*engine.context.tokens[: max(1, len(engine.context) - cut)].tolist(), cut % N_VOCAB]
    read(engine, prompt)

    fresh = Eagle3(HistoryFeatures(target, blur=1.0), GREEDY)
    warm = engine.guessers["eagle3"].propose(engine.context, 5, RULE)  # its head knows a kept entry of another text

    assert len(prompt) < 2 or len(warm.tokens) == 5
    assert warm.tokens == fresh.propose(engine.context, 5, RULE).tokens


def test_without_a_feature_of_the_last_position_but_one_it_sits_out_and_then_begins_there() -> None:
    target = HistoryModel(N_VOCAB, 1)
    head = HistoryFeatures(target)
    engine = engine_with(target, head)
    read(engine, [1, 2, 3] * 20)
    head.start = 60  # as after a state that was restored: nothing is known of what it holds

    steps = write(engine, 30)

    assert [step.drafted for step in steps][:3] == [0, 0, 4]
    assert all(step.accepted == step.drafted for step in steps)
    assert len(head._keys) < 40


def test_a_token_that_the_head_does_not_know_ends_its_guesses() -> None:
    target = HistoryModel(N_VOCAB, 1)
    head = HistoryFeatures(target)
    head.n_vocab = 5
    engine = engine_with(target, head)
    read(engine, [1, 2, 7, 3])

    assert {step.drafted for step in write(engine, 10)} == {0}


def test_the_price_of_a_token_is_measured_once_and_leaves_no_trace() -> None:
    target = HistoryModel(N_VOCAB, 1)
    engine = engine_with(target, HistoryFeatures(target))
    guesser = engine.guessers["eagle3"]
    assert isinstance(guesser, Eagle3)
    read(engine, [1, 2, 3] * 5)
    write(engine, 5)

    assert guesser.token_s(FakeClock(0.25)) == 0.25
    assert guesser.token_s(FakeClock(7.0)) == 0.25

    assert all(step.accepted == step.drafted == 4 for step in write(engine, 10))


TARGET = TargetFacts("target", "llama", 28, 64, 500)
HEAD = HeadFacts("head", (2, 14, 25), 64, 32, 1, 500, 500, 100, 100)


@pytest.mark.parametrize(
    ("target", "head", "reason"),
    [
        (replace(TARGET, architecture="qwen2"), HEAD, "does not show what the layers of a qwen2 model are given"),
        (replace(TARGET, architecture="gemma3"), HEAD, "does not show what the layers of a gemma3 model are given"),
        (TARGET, replace(HEAD, layers=(2, 14)), "reads 2 layers of its target, and the engine knows only"),
        (TARGET, replace(HEAD, layers=(2, 14, 28)), "reads layer 28, and the target has layers 0 to 27"),
        (TARGET, replace(HEAD, layers=(-1, 14, 25)), "reads layer -1, and the target has layers 0 to 27"),
        (TARGET, replace(HEAD, target_width=128), "a width of 128 numbers, this one of 64"),
        (TARGET, replace(HEAD, n_blocks=2), "has 2 layers of its own"),
        (replace(TARGET, n_tokens=501), replace(HEAD, n_mapped=None, n_outputs=500), "any of 500 tokens"),
        (TARGET, replace(HEAD, n_embeddings=None), "borrows a matrix of the target, whose width is 64"),
        (TARGET, replace(HEAD, n_embeddings=499), "its table of tokens has 499 rows for 500 tokens"),
        (TARGET, replace(HEAD, width=64, n_outputs=None), "output matrix has 500 rows for the 100 tokens"),
    ],
)
def test_a_pair_over_which_the_engine_would_end_the_process_is_refused_with_the_reason(
    target: TargetFacts, head: HeadFacts, reason: str
) -> None:
    said = why_unfit(target, head)

    assert said is not None
    assert said.startswith("head cannot guess for target: ")
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "head",
    [
        HEAD,
        replace(HEAD, n_mapped=None, n_outputs=500),
        replace(HEAD, width=64, n_embeddings=None),
        replace(HEAD, width=64, n_embeddings=None, n_outputs=None, n_mapped=None),
    ],
)
def test_a_head_with_tables_of_its_own_or_the_targets_fits(head: HeadFacts) -> None:
    assert why_unfit(TARGET, head) is None
