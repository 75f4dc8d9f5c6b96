"""A cache that was saved and restored is the cache that it was, for every kind of memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specchat.loading import EngineOptions, Engines, load_engines
from specchat.resume import keep_state, resume_state
from specchat.session import ChatSession, Reply, ReplySettings
from specchat.states import StateFiles
from speculation.llama import EngineLog, LlamaModel
from speculation.sampling import GREEDY
from speculation.types import EngineFailure
from tests.gguf.conftest import LOG, WRITERS
from tests.gguf.rows import KINDS, REWINDING, Make, all_rows, assert_same, some_tokens
from tests.gguf.test_real import OPEN, assert_same_up_to_near_ties, engines_on

QUESTION = "one two three one two three one two " * 4


@pytest.mark.parametrize("cut", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_after_a_restored_state_are_those_of_the_cache_that_was_saved(make: Make, kind: str, cut: int) -> None:
    rng = random.Random(cut)
    tokens = some_tokens(300, cut)
    at = rng.randrange(1, 290)
    model, other = make(kind), make(kind, n_ctx=1024)
    model.forward(tokens[:at], n_rows=0)
    other.forward(some_tokens(50, 99), n_rows=0)

    other.restore_state(model.save_state(), at)

    assert other.n_past == at
    np.testing.assert_array_equal(
        other.forward(tokens[at : at + 8], n_rows=8), model.forward(tokens[at : at + 8], n_rows=8)
    )
    assert_same(other.forward(tokens[at + 8 : at + 9], n_rows=1), all_rows(make, kind, tokens[: at + 9])[-1:])


@pytest.mark.parametrize("kind", REWINDING)
def test_a_state_that_was_saved_after_a_rollback_is_the_one_gone_back_to(make: Make, kind: str) -> None:
    tokens = some_tokens(60)
    model, other = make(kind), make(kind)
    model.forward(tokens[:40], n_rows=0)
    model.forward([*tokens[40:43], 7, 7, 7], n_rows=1)
    model.rewind(43)

    other.restore_state(model.save_state(), 43)

    assert_same(other.forward(tokens[43:47], n_rows=4), all_rows(make, kind, tokens[:47])[-4:])
    other.rewind(45)
    assert_same(other.forward(tokens[45:46], n_rows=1), all_rows(make, kind, tokens[:46])[-1:])


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_engine_does_not_take_leaves_an_empty_cache_that_works(make: Make, kind: str) -> None:
    tokens = some_tokens(300)
    model, small = make(kind), make(kind, n_ctx=256)
    model.forward(tokens, n_rows=0)
    state = model.save_state()
    for wrong, n_past in ((state[: len(state) // 2].copy(), 300), (state[:-1].copy(), 300), (state, 299), (state, 301)):
        with pytest.raises(EngineFailure):
            model.restore_state(wrong, n_past)
        assert model.n_past == 0
    with pytest.raises(EngineFailure, match="does not fit"):
        small.restore_state(state, 300)

    assert_same(model.forward(tokens[:5], n_rows=1), all_rows(make, kind, tokens[:5])[-1:])


def test_a_state_of_another_shape_is_refused_by_the_engine_too(make: Make) -> None:
    model, other = make("hybrid"), make("attention")
    model.forward(some_tokens(40), n_rows=0)

    with pytest.raises(EngineFailure, match="cannot take up a saved state"):
        other.restore_state(model.save_state(), 40)


def test_the_kind_of_a_state_tells_caches_apart_that_do_not_understand_each_other(make: Make) -> None:
    kinds = {make("attention").state_kind, make("hybrid").state_kind, make("hybrid", rollback=3).state_kind}
    with_small_numbers = LlamaModel(make("attention").weights, LOG, n_ctx=512, n_threads=1, cache_type="q8_0")
    kinds.add(with_small_numbers.state_kind)
    with_small_numbers.close()

    assert len(kinds) == 4
    assert make("attention", n_ctx=1024).state_kind == make("attention").state_kind


@pytest.fixture(scope="module", params=KINDS)
def tiny_engines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    path = WRITERS[request.param](tmp_path_factory.mktemp("states") / f"{request.param}.gguf")
    engines = load_engines(path, EngineOptions(n_ctx=1024, n_threads=1), EngineLog())
    yield engines
    engines.close()


def reply(session: ChatSession, text: str) -> Reply:
    *_, last = session.reply(text)
    assert isinstance(last, Reply)
    return last


@pytest.mark.parametrize("cut", range(10))
def test_a_resumed_chat_of_a_tiny_model_answers_as_one_that_was_never_left(
    tiny_engines: Engines, tmp_path: Path, cut: int
) -> None:
    states = StateFiles(tmp_path / "states")
    rng = random.Random(cut)
    session = session_on(tiny_engines, rng.randrange(1, 40))
    for _ in range(rng.randrange(1, 4)):
        reply(session, QUESTION)
    session._pace = 10.0  # as if the model were large
    kept = keep_state(session, states, "7")
    assert kept.reason == ""
    said = list(session.messages)
    expected = reply(session, "and then?")
    other = ChatSession(tiny_engines, session.settings)
    reply(other, "something else")
    other.messages, other._pace = said, 10.0

    outcome = resume_state(other, states, "7")
    resumed = reply(other, "and then?")

    assert outcome.reason == ""
    assert resumed.reused_tokens == outcome.tokens == kept.tokens
    assert resumed.text == expected.text


def session_on(engines: Engines, max_tokens: int) -> ChatSession:
    return ChatSession(engines, ReplySettings(GREEDY, seed=1, max_tokens=max_tokens))


@pytest.mark.gguf
@pytest.mark.parametrize("cut", range(10))
def test_a_resumed_chat_of_a_real_model_answers_as_one_that_was_read_again(
    smollm: LlamaModel, log: EngineLog, tmp_path: Path, cut: int
) -> None:
    rng = random.Random(cut)
    states = StateFiles(tmp_path / "states")
    session = ChatSession(engines_on(smollm, log), ReplySettings(GREEDY, seed=1, max_tokens=rng.randrange(2, 8)))
    reply(session, OPEN + " word" * rng.randrange(20, 60))
    session._pace = 10.0
    keep_state(session, states, "7")
    smollm.rewind(0)
    again = ChatSession(engines_on(smollm, log), ReplySettings(GREEDY, seed=1, max_tokens=8))
    again.messages, again._pace = list(session.messages), 10.0

    outcome = resume_state(again, states, "7")
    resumed = reply(again, "What did you just say?")

    assert resumed.reused_tokens == outcome.tokens > 20
    fresh = ChatSession(engines_on(smollm, log), again.settings)
    fresh.messages = list(session.messages)
    assert reply(fresh, "What did you just say?").reused_tokens == 0
    ours, plain = (list(each.messages[-1].tokens or ()) for each in (again, fresh))
    assert_same_up_to_near_ties(smollm, fresh.prompt, ours, plain)
