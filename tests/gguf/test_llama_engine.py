"""The loop on real caches: the text stays that of plain decoding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from speculation.accept import rule_named
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Guesser
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.llama import LlamaModel
from speculation.sampling import GREEDY
from speculation.testing import ScriptedGuesser
from speculation.types import PLAIN, Finish, Step
from tests.gguf.rows import BOUNDED, FREE, NOISE, NOT_REWINDING, REWINDING, Make, some_tokens

DRAFTS = {"attention": "near", "window": "window", "hybrid": "attention", "delta": "attention"}


def plain_text(model: LlamaModel, prompt: Sequence[int], limit: int) -> tuple[list[int], list[float]]:
    """Greedy decoding a token at a time, and how far the best two logits were apart at each."""
    written: list[int] = []
    gaps: list[float] = []
    row = model.forward(prompt, n_rows=1)[0]
    while True:
        second, first = np.sort(row)[-2:]
        written.append(int(row.argmax()))
        gaps.append(float(first - second))
        if len(written) == limit:
            return written, gaps
        row = model.forward(written[-1:], n_rows=1)[0]


def assert_same_text(written: Sequence[int], plain: tuple[list[int], list[float]]) -> None:
    """Equal, or parted where the best two tokens were too close to call for other kernels."""
    tokens, gaps = plain
    assert len(written) == len(tokens)
    parted = next((i for i, pair in enumerate(zip(written, tokens, strict=True)) if pair[0] != pair[1]), None)
    assert parted is None or gaps[parted] < 2 * NOISE, f"parted at {parted}, where the gap was {gaps[parted or 0]}"


def engine_of(target: LlamaModel, draft: LlamaModel, controller: Fixed) -> Engine:
    guessers: dict[str, Guesser] = {
        "lookup": PromptLookup(),
        "draft": DraftModel(draft, GREEDY, target.n_vocab),
    }
    return Engine(target, guessers, controller, rule_named("coupled", 0), GREEDY)


def write(engine: Engine, prompt: Sequence[int], limit: int) -> list[Step]:
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass
    return list(engine.steps(limit=limit, ends=EndTokens()))


def tokens_of(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


@pytest.mark.parametrize("kind", REWINDING)
@pytest.mark.parametrize("seed", range(3))
def test_greedy_text_is_plain_whoever_guesses_and_whenever_that_changes(make: Make, kind: str, seed: int) -> None:
    prompt = some_tokens(220, seed)
    engine = engine_of(make(kind), make(DRAFTS[kind]), Fixed())
    plans = [Fixed("lookup", 8), Fixed("draft", 3), Fixed(), Fixed("draft", 12), Fixed("lookup", 2)]
    steps = []

    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass
    for i, step in enumerate(engine.steps(limit=150, ends=EndTokens())):
        steps.append(step)
        engine.controller = plans[i // 3 % len(plans)]

    assert_same_text(tokens_of(steps), plain_text(make(kind), prompt, 150))
    assert {step.guesser for step in steps} == {PLAIN, "lookup", "draft"}
    assert sum(step.accepted for step in steps) > 0
    assert sum(step.drafted - step.accepted for step in steps) > 0


@pytest.mark.parametrize("kind", FREE)
def test_a_target_that_drafts_for_itself_is_accepted(make: Make, kind: str) -> None:
    steps = write(engine_of(make(kind), make(kind), Fixed("draft", 5)), some_tokens(50), 120)

    drafted = sum(step.drafted for step in steps)
    assert drafted >= 90
    assert sum(step.accepted for step in steps) >= 0.9 * drafted


@pytest.mark.parametrize("kind", NOT_REWINDING)
def test_a_target_that_cannot_rewind_writes_plainly_and_rereads_a_changed_past(make: Make, kind: str) -> None:
    engine = engine_of(make(kind), make("attention"), Fixed("lookup", 8))

    for prompt in (some_tokens(40), some_tokens(40, seed=1), [*some_tokens(40, seed=1)[:20], 7]):
        steps = write(engine, prompt, 30)

        assert {step.guesser for step in steps} == {PLAIN}
        assert_same_text(tokens_of(steps), plain_text(make(kind), prompt, 30))


@pytest.mark.parametrize("left", [1, 2, 3, 17])
@pytest.mark.parametrize("kind", FREE)
def test_the_context_is_filled_to_its_last_token(make: Make, kind: str, left: int) -> None:
    target, draft = make(kind, n_ctx=256), make(kind, n_ctx=256)
    prompt = some_tokens(target.n_ctx + 1 - left)

    steps = write(engine_of(target, draft, Fixed("draft", 16)), prompt, 100)

    assert steps[-1].finish is Finish.CONTEXT
    assert target.n_past == target.n_ctx
    assert_same_text(tokens_of(steps), plain_text(make(kind, n_ctx=512), prompt, left))


@pytest.mark.parametrize("kind", BOUNDED)
def test_after_a_stop_inside_an_accepted_run_a_recurrent_state_is_read_anew(make: Make, kind: str) -> None:
    prompt = some_tokens(60)
    expected, _ = plain_text(make(kind), prompt, 40)
    engine = engine_of(make(kind), make("attention"), Fixed("scripted", 7))
    engine.guessers = {"scripted": ScriptedGuesser([*prompt, *expected])}
    steps = write(engine, prompt, 33)
    assert sum(step.accepted for step in steps) > 20

    engine.truncate(len(prompt) + 20)
    again = write(engine, [*prompt, *expected[:20]], 20)

    assert_same_text(tokens_of(again), plain_text(make(kind), [*prompt, *expected[:20]], 20))


@pytest.mark.parametrize("kind", [*REWINDING, *NOT_REWINDING])
def test_chances_are_those_of_the_whole_context_also_where_the_cache_had_to_start_over(make: Make, kind: str) -> None:
    prompt = some_tokens(50)
    engine = engine_of(make(kind), make("attention"), Fixed())
    write(engine, prompt, 10)
    engine.truncate(len(prompt) + 5)
    row = make(kind).forward(engine.context.tokens, n_rows=1)[0]

    chances = engine.chances([3, 200])

    np.testing.assert_allclose(np.log(chances), row[[3, 200]] - np.logaddexp.reduce(row), atol=2 * NOISE)
    assert engine.chances([3, 200]) == pytest.approx(chances, rel=0.1)


@pytest.mark.parametrize("kind", REWINDING)
def test_with_a_cache_of_eight_bits_guessing_changes_no_text_either(make: Make, kind: str) -> None:
    prompt = some_tokens(120)
    plain = plain_text(make(kind, cache_type="q8_0"), prompt, 100)
    engine = engine_of(make(kind, cache_type="q8_0"), make(DRAFTS[kind]), Fixed("draft", 5))

    steps = write(engine, prompt, 100)

    assert_same_text(tokens_of(steps), plain)
    assert sum(step.drafted for step in steps) > 50


def test_a_cache_of_eight_bits_gives_nearly_the_same_rows(make: Make) -> None:
    tokens = some_tokens(100)
    rows = [np.array(make("attention", cache_type=kind).forward(tokens, n_rows=8)) for kind in ("f16", "q8_0")]

    assert 0 < np.abs(rows[0] - rows[1]).max() < 10 * NOISE
