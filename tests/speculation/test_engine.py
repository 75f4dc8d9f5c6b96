"""The laws of one step, on a fake whose logits depend on its whole history."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import RULE_NAMES, Rule, rule_named
from speculation.controllers.fixed import Fixed
from speculation.engine import ContextFull, EndTokens, Engine
from speculation.guessers.base import Guesser
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.eagle3 import Eagle3
from speculation.guessers.leftovers import Leftovers
from speculation.guessers.multi_token import MultiToken
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.guessers.recycling import Recycling
from speculation.guessers.trained_head import TrainedHead
from speculation.heads.head import Kind
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import (
    BushyGuesser,
    HistoryFeatures,
    HistoryLayers,
    HistoryModel,
    LengthenedDraft,
    ScriptedGuesser,
    WideDraft,
)
from speculation.types import PLAIN, Draft, Finish, Step
from tests.speculation.examples import examples
from tests.speculation.heads.making import WideHead, untrained

N_VOCAB = 6
HOT = SamplingConfig(temperature=0.9, top_k=0, top_p=1.0, min_p=0.0)
PENALISED = SamplingConfig(temperature=0.0, repeat_penalty=1.7, repeat_last_n=5)

Make = Callable[[HistoryModel, SamplingConfig], Guesser]

# A new guesser gets one entry here, and every law below holds it to account.
GUESSERS: dict[str, Make] = {
    "lookup": lambda target, sampling: PromptLookup(),
    "good draft": lambda target, sampling: DraftModel(HistoryModel(N_VOCAB, 1, blur=0.7), sampling, N_VOCAB),
    "other draft": lambda target, sampling: DraftModel(HistoryModel(N_VOCAB, 2), sampling, N_VOCAB),
    "same draft": lambda target, sampling: DraftModel(HistoryModel(N_VOCAB, 1), sampling, N_VOCAB),
    "scripted": lambda target, sampling: ScriptedGuesser([0, 1, 2, 3, 4, 5] * 50),
    "bushy": lambda target, sampling: BushyGuesser(N_VOCAB),
    "wide draft": lambda target, sampling: WideDraft(HistoryModel(N_VOCAB, 1, blur=0.7), sampling, N_VOCAB),
    "lengthened draft": lambda target, sampling: LengthenedDraft(
        DraftModel(HistoryModel(N_VOCAB, 1, blur=0.7), sampling, N_VOCAB)
    ),
    "recycling": lambda target, sampling: Recycling(),
    "leftovers": lambda target, sampling: Leftovers(),
    "mtp": lambda target, sampling: MultiToken(HistoryLayers(target), sampling),
    "eagle": lambda target, sampling: TrainedHead(untrained(Kind.EAGLE, N_VOCAB), target, sampling),
    "medusa": lambda target, sampling: TrainedHead(untrained(Kind.MEDUSA, N_VOCAB, n_ids=4), target, sampling),
    "wide eagle": lambda target, sampling: WideHead(untrained(Kind.EAGLE, N_VOCAB), target, sampling),
    "wide medusa": lambda target, sampling: WideHead(untrained(Kind.MEDUSA, N_VOCAB, n_ids=4), target, sampling),
    "eagle3": lambda target, sampling: Eagle3(HistoryFeatures(target, blur=0.7), sampling),
}


def make_engine(
    name: str, k: int, sampling: SamplingConfig, rule: Rule, *, n_ctx: int = 4096, max_rows: int = 64
) -> Engine:
    target = HistoryModel(N_VOCAB, 1, n_ctx=n_ctx, max_rows=max_rows)
    guessers = {key: make(target, sampling) for key, make in GUESSERS.items()}
    return Engine(target, guessers, Fixed(name, k), rule, sampling)


def read(engine: Engine, prompt: list[int]) -> None:
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass


def write(engine: Engine, limit: int, ends: EndTokens | None = None) -> list[Step]:
    return list(engine.steps(limit=limit, ends=ends or EndTokens()))


def tokens(steps: list[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def paths(draft: Draft) -> set[tuple[int, ...]]:
    """The texts that a draft proposes."""
    return {tuple(draft.tokens[each] for each in draft.path(node)) for node in range(len(draft.tokens))}


def plain_text(prompt: list[int], limit: int, sampling: SamplingConfig, seed: int = 0) -> list[int]:
    engine = make_engine(PLAIN, 0, sampling, rule_named("coupled", seed))
    read(engine, prompt)
    return tokens(write(engine, limit))


prompts = st.lists(st.integers(0, N_VOCAB - 1), min_size=1, max_size=30)
plans = st.lists(st.tuples(st.sampled_from([PLAIN, *GUESSERS]), st.integers(0, 63)), min_size=1, max_size=8)


@pytest.mark.parametrize("rule", RULE_NAMES)
@pytest.mark.parametrize("sampling", [GREEDY, PENALISED], ids=["greedy", "penalised"])
@given(prompt=prompts, plans=plans, limit=st.integers(1, 60))
@examples(60)
def test_greedy_text_is_plain_for_every_guesser_k_and_switch(
    rule: str, sampling: SamplingConfig, prompt: list[int], plans: list[tuple[str, int]], limit: int
) -> None:
    engine = make_engine(PLAIN, 0, sampling, rule_named(rule, 0))
    read(engine, prompt)

    written: list[int] = []
    for i, step in enumerate(engine.steps(limit=limit, ends=EndTokens())):
        written.extend(step.tokens)
        engine.controller = Fixed(*plans[i % len(plans)])

    assert written == plain_text(prompt, limit, sampling)


@given(prompt=prompts, plans=plans, seed=st.integers(0, 2**64 - 1))
@examples(80)
def test_a_seed_gives_the_same_sampled_text_whoever_guesses(
    prompt: list[int], plans: list[tuple[str, int]], seed: int
) -> None:
    engine = make_engine(PLAIN, 0, HOT, rule_named("coupled", seed))
    read(engine, prompt)

    written: list[int] = []
    for i, step in enumerate(engine.steps(limit=40, ends=EndTokens())):
        written.extend(step.tokens)
        engine.controller = Fixed(*plans[i % len(plans)])

    assert written == plain_text(prompt, 40, HOT, seed)


def test_other_seeds_give_other_texts() -> None:
    texts = {tuple(plain_text([1, 2, 3], 20, HOT, seed)) for seed in range(20)}

    assert len(texts) == 20


@given(prompt=prompts, name=st.sampled_from(list(GUESSERS)), k=st.integers(0, 16), stop_after=st.integers(0, 12))
@examples(80)
def test_a_stop_between_steps_leaves_a_cache_that_equals_the_text(
    prompt: list[int], name: str, k: int, stop_after: int
) -> None:
    engine = make_engine(name, k, GREEDY, rule_named("coupled", 0))
    read(engine, prompt)
    shown = list(prompt)

    for i, step in enumerate(engine.steps(limit=50, ends=EndTokens())):
        shown.extend(step.tokens)
        if i == stop_after:
            break

    assert engine.context.tokens.tolist() == shown
    assert engine.target.n_past == len(shown) - 1
    follow_up = [*shown, 3, 1]
    read(engine, follow_up)
    assert tokens(write(engine, 10)) == plain_text(follow_up, 10, GREEDY)


@given(prompt=prompts, plans=plans, k=st.integers(1, 8))
@examples(60)
def test_a_warm_guesser_proposes_what_a_fresh_one_would(
    prompt: list[int], plans: list[tuple[str, int]], k: int
) -> None:
    engine = make_engine(PLAIN, 0, GREEDY, rule_named("coupled", 0))
    read(engine, prompt)
    for i, _ in enumerate(engine.steps(limit=30, ends=EndTokens())):
        engine.controller = Fixed(*plans[i % len(plans)])

    rule = rule_named("coupled", 0)
    # Rows that a fresh one has not seen; and copies end where, by what was learned, there is no hope for the draft.
    remembers = ["recycling", "leftovers", "mtp", "eagle", "medusa", "wide eagle", "wide medusa", "eagle3"]
    for name, make in GUESSERS.items():
        if name in (*remembers, "lengthened draft"):
            continue
        fresh = make(HistoryModel(N_VOCAB, 1), GREEDY)
        warm = engine.guessers[name].propose(engine.context, k, rule)
        # The order of a tree depends on what was learned of its writer.
        assert paths(warm) == paths(fresh.propose(engine.context, k, rule))


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_a_draft_equal_to_the_target_is_always_accepted(rule: str, sampling: SamplingConfig) -> None:
    engine = make_engine("same draft", 5, sampling, rule_named(rule, 3))
    read(engine, [1, 2, 3])

    steps = write(engine, 60)

    assert all(step.accepted == step.drafted for step in steps)
    assert sum(step.drafted for step in steps) == 50


@pytest.mark.parametrize("cut_at", range(1, 12))
def test_an_end_token_inside_an_accepted_run_cuts_exactly_there(cut_at: int) -> None:
    text = plain_text([1, 2], 40, GREEDY)
    end = text[cut_at]
    first = text.index(end)
    engine = make_engine("same draft", 16, GREEDY, rule_named("coupled", 0))
    read(engine, [1, 2])

    steps = write(engine, 40, EndTokens(frozenset({end})))

    assert tokens(steps) == text[: first + 1]
    assert steps[-1].finish is Finish.END
    assert engine.target.n_past == len(engine.context) - 1 == first + 2
    assert sum(step.accepted for step in steps) <= first + 1
    assert all(step.accepted <= step.examined <= step.drafted for step in steps)


@given(limit=st.integers(1, 30), k=st.integers(0, 16))
def test_the_token_limit_cuts_exactly_there(limit: int, k: int) -> None:
    engine = make_engine("same draft", k, GREEDY, rule_named("coupled", 0))
    read(engine, [1, 2])

    steps = write(engine, limit)

    assert len(tokens(steps)) == limit
    assert [step.finish for step in steps] == [None] * (len(steps) - 1) + [Finish.LENGTH]


@given(length=st.integers(1, 24), k=st.integers(0, 16))
def test_the_end_of_the_context_is_filled_to_the_last_token(length: int, k: int) -> None:
    prompt = [i % N_VOCAB for i in range(length)]
    engine = make_engine("same draft", k, GREEDY, rule_named("coupled", 0), n_ctx=24)
    read(engine, prompt)

    steps = write(engine, 100)

    assert tokens(steps) == plain_text(prompt, 25 - length, GREEDY)
    assert steps[-1].finish is Finish.CONTEXT
    assert engine.target.n_past == 24


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers() -> None:
    engine = make_engine(PLAIN, 0, GREEDY, rule_named("coupled", 0), n_ctx=24)

    with pytest.raises(ContextFull, match="25 tokens and the context holds 24"):
        read(engine, [0] * 25)


def test_no_forward_asks_for_more_rows_than_the_model_gives() -> None:
    engine = make_engine("same draft", 16, GREEDY, rule_named("coupled", 0), max_rows=5)
    read(engine, [1, 2])

    steps = write(engine, 40)  # the fake raises when it is asked for more

    assert max(step.drafted for step in steps) == 4


def test_a_new_turn_evaluates_only_what_the_cache_lacks() -> None:
    engine = make_engine("good draft", 4, GREEDY, rule_named("coupled", 0))
    read(engine, [1, 2, 3])
    reply = tokens(write(engine, 20))

    readings = list(engine.read(np.array([1, 2, 3, *reply, 4, 5], dtype=np.int32)))

    assert readings[-1].reused == 3 + len(reply) - 1
    assert readings[-1].read == readings[-1].total == 2


def test_reading_goes_on_where_it_was_stopped() -> None:
    engine = make_engine(PLAIN, 0, GREEDY, rule_named("coupled", 0))
    prompt = np.arange(1000, dtype=np.int32) % N_VOCAB
    for reading in engine.read(prompt):
        if reading.read >= 300:
            break
    assert 300 <= engine.target.n_past < 999

    readings = list(engine.read(prompt))

    assert readings[0].reused >= 300
    assert tokens(write(engine, 10)) == plain_text(prompt.tolist(), 10, GREEDY)


def test_a_target_that_cannot_rewind_chats_plainly_and_rereads_when_the_past_changes() -> None:
    engine = make_engine("same draft", 8, GREEDY, rule_named("coupled", 0))
    assert isinstance(engine.target, HistoryModel)
    engine.target.can_rewind = False
    read(engine, [1, 2, 3])

    steps = write(engine, 10)

    assert {step.guesser for step in steps} == {PLAIN}
    assert tokens(steps) == plain_text([1, 2, 3], 10, GREEDY)
    read(engine, [1, 5])
    assert tokens(write(engine, 10)) == plain_text([1, 5], 10, GREEDY)


def test_the_record_says_how_sure_the_target_was_of_a_rejected_guess() -> None:
    engine = make_engine("other draft", 3, GREEDY, rule_named("coupled", 0))
    read(engine, [1, 2, 3])

    steps = write(engine, 40)

    rejected = [step for step in steps if step.examined > step.accepted]
    assert rejected
    for step in rejected:
        assert step.p_rejected is not None
        assert step.p_chosen is not None
        assert 0.0 < step.p_rejected <= step.p_chosen < 1.0


def test_an_interrupted_step_leaves_the_cache_as_it_was() -> None:
    class Breaks(EndTokens):
        def feed(self, tokens: object) -> None:
            raise KeyboardInterrupt

    engine = make_engine("same draft", 4, GREEDY, rule_named("coupled", 0))
    read(engine, [1, 2, 3])

    with pytest.raises(KeyboardInterrupt):
        next(engine.steps(limit=10, ends=Breaks()))

    assert engine.target.n_past == len(engine.context) - 1 == 2
    assert tokens(write(engine, 10)) == plain_text([1, 2, 3], 10, GREEDY)
