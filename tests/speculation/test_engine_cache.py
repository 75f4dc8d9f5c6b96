"""What the engine reads, adopts and takes back: its context and the target's cache stay one text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.context import Context
from speculation.controllers.fixed import Fixed
from speculation.engine import ContextFull, EndTokens, Engine, Reading
from speculation.sampling import GREEDY
from speculation.testing import FakeClock, HistoryModel, ScriptedGuesser
from speculation.types import Finish, SpeculationError, Step

N_VOCAB = 6


def engine_on(target: HistoryModel, at_once: int = 128) -> Engine:
    return Engine(target, {}, Fixed(), rule_named("coupled", 0), GREEDY, FakeClock(), at_once)


def read(engine: Engine, prompt: list[int]) -> list[Reading]:
    return list(engine.read(np.array(prompt, dtype=np.int32)))


def write(engine: Engine, limit: int) -> list[int]:
    return [token for step in engine.steps(limit=limit, ends=EndTokens()) for token in step.tokens]


def plain(prompt: list[int], limit: int) -> list[int]:
    engine = engine_on(HistoryModel(N_VOCAB, 1))
    read(engine, prompt)
    return write(engine, limit)


def test_the_time_that_is_left_follows_the_pace_so_far_and_is_unknown_before_the_first_token() -> None:
    readings = read(engine_on(HistoryModel(N_VOCAB, 1), at_once=30), [1] * 101)

    assert [(each.read, each.seconds, each.seconds_left) for each in readings] == [
        (0, 0.0, None),
        (30, 1.0, pytest.approx(70 / 30)),
        (60, 2.0, pytest.approx(80 / 60)),
        (90, 3.0, pytest.approx(30 / 90)),
        (100, 4.0, 0.0),
    ]


def test_an_empty_prompt_is_refused_and_leaves_what_was_read() -> None:
    engine = engine_on(HistoryModel(N_VOCAB, 1))
    read(engine, [1, 2, 3])

    with pytest.raises(SpeculationError, match="empty"):
        read(engine, [])

    assert engine.cached.tolist() == [1, 2]
    assert write(engine, 5) == plain([1, 2, 3], 5)


def test_a_context_that_is_full_does_not_go_on() -> None:
    engine = engine_on(HistoryModel(N_VOCAB, 1, n_ctx=8))
    read(engine, [1, 2, 3])
    steps: list[Step] = list(engine.steps(limit=100, ends=EndTokens()))
    assert steps[-1].finish is Finish.CONTEXT

    with pytest.raises(ContextFull, match="9 tokens and the context holds 8") as refused:
        write(engine, 1)

    assert (refused.value.needed, refused.value.n_ctx) == (9, 8)


@given(saved=st.lists(st.integers(0, N_VOCAB - 1), min_size=1, max_size=20), more=st.lists(st.integers(0, 5)))
def test_a_state_that_was_filled_from_outside_is_gone_on_from(saved: list[int], more: list[int]) -> None:
    target = HistoryModel(N_VOCAB, 1)
    engine = engine_on(target)
    read(engine, [5, 4, 3])
    target.rewind(0)
    target.forward(saved, n_rows=0)

    engine.adopt(np.array(saved, dtype=np.int32))

    assert engine.cached.tolist() == saved
    prompt = [*saved, *more, 1]
    assert read(engine, prompt)[0].reused == len(saved)
    assert write(engine, 8) == plain(prompt, 8)


@given(back=st.integers(0, 12))
def test_the_end_can_be_taken_back_and_comes_again(back: int) -> None:
    engine = engine_on(HistoryModel(N_VOCAB, 1))
    read(engine, [1, 2, 3])
    written = write(engine, 12)

    engine.truncate(3 + 12 - back)

    assert engine.cached.tolist() == [1, 2, 3, *written][: 3 + 12 - back - 1]
    assert write(engine, back + 1)[:back] == written[12 - back :]


@pytest.mark.parametrize("can_rewind", [True, False])
def test_chances_are_those_of_the_next_token_and_looking_changes_no_text(can_rewind: bool) -> None:
    target = HistoryModel(N_VOCAB, 1)
    target.can_rewind = can_rewind
    engine = engine_on(target)
    read(engine, [1, 2, 3])
    logits = np.exp(target.row_after([1, 2, 3]).astype(np.float64))

    chances = engine.chances([0, 4])

    assert chances == pytest.approx([logits[0] / logits.sum(), logits[4] / logits.sum()], rel=1e-5)
    assert sum(engine.chances(range(N_VOCAB))) == pytest.approx(1.0)
    read(engine, [1, 2, 3])
    assert write(engine, 6) == plain([1, 2, 3], 6)


def test_an_end_that_was_never_guessed_ends_a_plain_reply_too() -> None:
    engine = engine_on(HistoryModel(N_VOCAB, 1))
    read(engine, [1, 2])
    (first, *_), end = plain([1, 2], 5), plain([1, 2], 5)[0]

    steps = list(engine.steps(limit=5, ends=EndTokens(frozenset({end}))))

    assert [step.tokens for step in steps] == [(first,)]
    assert steps[0].finish is Finish.END


@given(parts=st.lists(st.integers(0, 3000), max_size=6))
def test_a_context_keeps_its_tokens_however_far_it_grows(parts: list[int]) -> None:
    context, expected = Context(), np.arange(sum(parts), dtype=np.int32)

    at = 0
    for n in parts:
        context.extend(expected[at : at + n])
        at += n

    assert np.array_equal(context.tokens, expected)
    assert np.array_equal(context.tail(7), expected[-7:])
    assert np.array_equal(context.tail(-1), expected)


def test_a_script_is_proposed_from_where_the_context_ends() -> None:
    assert ScriptedGuesser([5, 6, 7, 8]).propose(Context([5, 6]), 1, rule_named("coupled", 0)).tokens == (7,)
