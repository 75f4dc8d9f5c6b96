"""Layers that guess the token after the next, and the trail of states that they need: nothing stale is ever used."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speculation.accept import Rule, rule_named
from speculation.context import Context
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import KeepOn
from speculation.guessers.multi_token import MultiToken
from speculation.sampling import GREEDY
from speculation.testing import AlwaysWidens, BushyGuesser, FakeClock, HistoryLayers, HistoryModel
from speculation.trail import Trail
from speculation.types import Draft, EngineFailure, Logits, Step, Tokens

N_VOCAB = 6
RULE = rule_named("coupled", 0)

plans = st.lists(
    st.tuples(st.sampled_from(["plain", "mtp", "wide mtp", "bushy"]), st.integers(0, 7)), min_size=1, max_size=8
)
prompts = st.lists(st.integers(0, N_VOCAB - 1), min_size=1, max_size=20)


class WideMultiToken(MultiToken):
    """The same layers with two candidates for every position, so that trees are checked."""

    name = "wide mtp"

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return super().propose(context, k, rule, AlwaysWidens())


def history(model: HistoryModel, tokens: Sequence[int]) -> int | None:
    found = None
    for token in tokens:
        found = model.history_after(found, int(token))
    return found


def states(model: HistoryModel, tokens: Sequence[int]) -> Logits:
    """The state of each of these tokens, from a fresh cache."""
    fresh = HistoryModel(model.n_vocab, 1)
    fresh.forward(tokens, n_rows=0)
    return fresh.inner_states(len(tokens))


class Conversation:
    """An engine whose guessers are the layers, twice, and trees of any shape."""

    def __init__(self, blur: float = 0.7) -> None:
        self.target = HistoryModel(N_VOCAB, 1)
        self.layers, wide = HistoryLayers(self.target, blur), HistoryLayers(self.target, blur)
        self.guesser = MultiToken(self.layers, GREEDY)
        own = (self.guesser, WideMultiToken(wide, GREEDY), BushyGuesser(N_VOCAB))
        self.engine = Engine(self.target, {each.name: each for each in own}, Fixed(), RULE, GREEDY)

    def read(self, prompt: Sequence[int]) -> None:
        for _ in self.engine.read(np.array(prompt, dtype=np.int32)):
            pass

    def write(self, limit: int, plans: Sequence[tuple[str, int]]) -> list[Step]:
        steps = []
        self.engine.controller = Fixed(*plans[0])
        for i, step in enumerate(self.engine.steps(limit=limit, ends=EndTokens())):
            steps.append(step)
            self.engine.controller = Fixed(*plans[(i + 1) % len(plans)])
        return steps


@given(turns=st.lists(st.tuples(st.integers(0, 40), prompts, plans, st.booleans()), min_size=1, max_size=4))
@settings(max_examples=80)
def test_every_entry_is_of_the_text_that_stands_there_whatever_came_before(
    turns: list[tuple[int, list[int], list[tuple[str, int]], bool]],
) -> None:
    talk = Conversation()
    for keep, more, plans, forgets in turns:
        talk.read([*talk.engine.context.tokens[:keep].tolist(), *more])
        if forgets:  # as after a saved state, or a time in which nobody followed
            talk.layers.trail.restart(talk.target.n_past)
        talk.write(12, plans)

        draft = talk.guesser.propose(talk.engine.context, 3, RULE)

        text = talk.engine.context.tokens.tolist()
        assert len(draft.tokens) == 3
        entries = [entry for entry in talk.layers.entries if entry[0] < len(text)]
        assert entries[-1][0] == len(text) - 1
        for at, token, before in entries:
            assert token == text[at]
            assert before == (history(talk.target, text[:at]) or 0)


@given(prompt=prompts, plans=plans, k=st.integers(1, 8))
@settings(max_examples=60)
def test_one_that_sat_out_proposes_what_one_that_just_read_it_all_would(
    prompt: list[int], plans: list[tuple[str, int]], k: int
) -> None:
    talk, fresh = Conversation(), Conversation()
    talk.read(prompt)
    talk.write(30, plans)
    context = talk.engine.context
    fresh.target.forward(context.tokens[:-1], n_rows=0)

    assert talk.guesser.propose(context, k, RULE).tokens == fresh.guesser.propose(context, k, RULE).tokens


def test_layers_that_never_err_are_always_accepted() -> None:
    talk = Conversation(blur=0.0)
    talk.read([1, 2, 3])

    steps = talk.write(60, [("mtp", 5)])

    assert all(step.accepted == step.drafted for step in steps)
    assert sum(step.drafted for step in steps) == 50


def test_without_a_state_it_sits_out_one_step() -> None:
    talk = Conversation()
    talk.read([1, 2, 3, 4, 5])
    talk.layers.trail.restart(talk.target.n_past)

    steps = talk.write(9, [("mtp", 2)])

    assert steps[0].guesser == "plain"
    assert {step.guesser for step in steps[1:]} == {"mtp"}
    assert talk.layers.entries[0][0] == 5  # before it, nothing is known


def test_a_prompt_is_taken_up_while_it_is_read() -> None:
    talk = Conversation()

    talk.read([i % N_VOCAB for i in range(300)])

    assert [entry[0] for entry in talk.layers.entries] == list(range(299))


def test_a_context_that_is_not_what_the_target_holds_is_not_guessed_at() -> None:
    talk = Conversation()
    talk.read([1, 2, 3])

    assert talk.guesser.propose(Context([1, 2, 3, 4]), 3, RULE).tokens == ()
    assert talk.guesser.propose(Context([1, 2, 3]), 3, RULE).tokens != ()


def test_after_a_failure_it_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, fresh = Conversation(), Conversation()
    talk.read([1, 2, 3])
    talk.write(6, [("plain", 0)])

    def fails(at: int, tokens: Tokens, states: Logits) -> None:
        HistoryLayers.read(talk.layers, at, tokens[:1], states[:1])
        raise EngineFailure("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(talk.layers, "read", fails)
        with pytest.raises(EngineFailure):
            talk.guesser.propose(talk.engine.context, 2, RULE)
    fresh.target.forward(talk.engine.context.tokens[:-1], n_rows=0)

    again, first = (each.guesser.propose(talk.engine.context, 4, RULE) for each in (talk, fresh))
    assert again.tokens == first.tokens


def test_taking_its_price_leaves_no_entry_behind() -> None:
    talk = Conversation()
    talk.read([1, 2, 3, 4])
    fresh = Conversation()
    fresh.read([1, 2, 3, 4])

    assert talk.guesser.token_s(FakeClock(0.5)) == 0.5
    assert talk.guesser.token_s(FakeClock(9.0)) == 0.5

    again, first = (each.guesser.propose(talk.engine.context, 4, RULE) for each in (talk, fresh))
    assert again.tokens == first.tokens


def test_a_trail_that_starts_over_gives_its_memory_back() -> None:
    model = HistoryModel(N_VOCAB, 1)
    trail = Trail(4, model.inner_states)
    model.trails.append(trail)
    model.forward([1, 2, 3], n_rows=0)
    rows = weakref.ref(trail.rows(trail.known).base)

    trail.restart(3)

    assert rows() is None
    model.forward([4], n_rows=0)
    np.testing.assert_array_equal(trail.rows(trail.known), states(model, [1, 2, 3, 4])[3:])


@given(
    acts=st.lists(
        st.tuples(st.sampled_from(["append", "tree", "cut", "restart"]), st.integers(0, 9)), min_size=1, max_size=12
    )
)
@settings(max_examples=150)
def test_a_trail_knows_the_states_of_the_last_tokens_of_the_cache(acts: list[tuple[str, int]]) -> None:
    model = HistoryModel(N_VOCAB, 1)
    trail = Trail(4, model.inner_states)
    model.trails.append(trail)
    text: list[int] = []
    unknown = 0
    for act, n in acts:
        if act == "append":
            more = [(len(text) + i) % N_VOCAB for i in range(n + 1)]
            model.forward(more, n_rows=0)
            text += more
        elif act == "tree":
            model.forward_tree(n % N_VOCAB, [1, 2, 3], [-1, -1, 1])
            path = [[], [0], [1, 2]][n % 3]
            model.keep(path)
            text += [n % N_VOCAB, *([1, 2, 3][node] for node in path)]
        elif act == "cut":
            text = text[: max(0, len(text) - n)]
            model.rewind(len(text))
            unknown = min(unknown, len(text))
        else:
            trail.restart(model.n_past)
            unknown = len(text)

        assert trail.known == range(unknown, len(text)) or (not trail.known and unknown == len(text))
        if trail.known:
            np.testing.assert_array_equal(trail.rows(trail.known), states(model, text)[unknown:])
