"""A real model with a sliding window: far past it, guessing changes no text and every rollback finds what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import llama_cpp
import numpy as np
import pytest

from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from speculation.testing import ScriptedGuesser
from speculation.types import Logits, Tokens
from tests.conftest import GEMMA, THREADS, cached_file
from tests.gguf.rows import NOISE
from tests.gguf.test_real import assert_same_up_to_near_ties, text_of, write

pytestmark = pytest.mark.gguf

WINDOW = 512  # positions that most layers of this model see
LIMIT = 120
LIST = "".join(
    f"{i}. The {colour} {animal} crossed the {place} and went home.\n"
    for i, (colour, animal, place) in enumerate(
        (colour, animal, place)
        for colour in ("red", "green", "white", "black", "brown")
        for animal in ("fox", "hare", "goose", "bear")
        for place in ("river", "field", "road", "bridge", "garden")
    )
)


@pytest.fixture(scope="module")
def weights(log: EngineLog) -> Iterator[LlamaWeights]:
    loaded = LlamaWeights(cached_file(GEMMA), log)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def gemma(weights: LlamaWeights, log: EngineLog) -> Iterator[LlamaModel]:
    model = LlamaModel(weights, log, n_ctx=3072, n_threads=THREADS)
    yield model
    model.close()


@pytest.fixture(scope="module")
def prompt(weights: LlamaWeights) -> Tokens:
    """About 1,500 tokens, with sentences that come again."""
    vocabulary = weights.vocabulary
    return np.concatenate([np.array([vocabulary.bos], dtype=np.int32), vocabulary.encode(LIST)[:1500]])


@pytest.fixture(scope="module")
def plain(gemma: LlamaModel, prompt: Tokens) -> list[int]:
    return text_of(write(gemma, prompt, [Fixed()], LIMIT))


def oldest(model: LlamaModel) -> int:
    return int(llama_cpp.llama_memory_seq_pos_min(llama_cpp.llama_get_memory(model._context), 0))


@pytest.mark.parametrize("ways", [[Fixed("lookup", 16)], [Fixed("lookup", 5), Fixed(), Fixed("lookup", 63)]])
def test_text_with_lookups_equals_plain_past_the_window(
    gemma: LlamaModel, prompt: Tokens, plain: list[int], ways: list[Controller]
) -> None:
    assert len(prompt) > 2 * WINDOW

    steps = write(gemma, prompt, ways, LIMIT)

    assert sum(step.accepted for step in steps) > 20
    assert_same_up_to_near_ties(gemma, prompt, text_of(steps), plain)


def test_rejected_guesses_longer_than_the_spare_cells_leave_no_trace(
    gemma: LlamaModel, prompt: Tokens, plain: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [int(token) for token in prompt[200:]]  # 31 tokens that are read and dropped again at every step
    scripted = ScriptedGuesser([*prompt.tolist(), *wrong])
    monkeypatch.setattr("tests.gguf.test_real.PromptLookup", lambda: scripted)

    steps = write(gemma, prompt, [Fixed("lookup", 31)], LIMIT // 3)

    assert sum(step.drafted - step.accepted for step in steps) > 3 * LIMIT
    assert oldest(gemma) == 0
    assert_same_up_to_near_ties(gemma, prompt, text_of(steps), plain)


def rows_behind_the_first_batch(model: LlamaModel, tokens: Sequence[int]) -> Logits:
    """Eight rows behind the first 512 tokens, which are what is left in the cache."""
    assert model.n_past == WINDOW
    return np.array(model.forward(tokens[WINDOW : WINDOW + 8], n_rows=8))


def test_a_cache_of_the_window_alone_would_fail(
    weights: LlamaWeights, log: EngineLog, gemma: LlamaModel, prompt: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = prompt.tolist()
    gemma.rewind(0)
    gemma.forward(tokens[:WINDOW], n_rows=0)
    expected = rows_behind_the_first_batch(gemma, tokens)
    make = llama_cpp.llama_init_from_model

    def windowed(model: Any, params: Any) -> Any:
        params.swa_full = False
        return make(model, params)

    monkeypatch.setattr(llama_cpp, "llama_init_from_model", windowed)
    small = LlamaModel(weights, log, n_ctx=3072, n_threads=THREADS)
    for model in (gemma, small):
        model.rewind(0)
        model.forward(tokens, n_rows=0)
        model.rewind(WINDOW)  # the engine says of both that it went back

    np.testing.assert_allclose(rows_behind_the_first_batch(gemma, tokens), expected, atol=NOISE)
    assert oldest(gemma) == 0
    assert np.abs(rows_behind_the_first_batch(small, tokens) - expected).max() > 20 * NOISE
    assert oldest(small) > 0
    small.close()
