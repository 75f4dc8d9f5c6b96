"""What coming back to a chat costs: its cache taken up from the disk against all of it read again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest

from specchat.conversation import prompt_format
from specchat.loading import EngineOptions, Engines
from specchat.resume import Outcome, fingerprint, keep_state, resume_state
from specchat.session import ChatSession, Reply, ReplySettings
from specchat.states import StateFiles
from speculation.cost import CostTable
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from speculation.sampling import GREEDY
from tests.conftest import THREADS, model_file

pytestmark = pytest.mark.bench

DEPTH = int(os.environ.get("SPECCHAT_BENCH_DEPTH", "4000"))  # tokens of the chat
SOURCE = Path(__file__).parents[2] / "app" / "specchat" / "session.py"


@pytest.fixture(scope="module")
def deep(log: EngineLog) -> Iterator[LlamaModel]:
    weights = LlamaWeights(model_file("qwen2.5-coder-1.5b"), log)
    model = LlamaModel(weights, log, n_ctx=DEPTH + 512, n_threads=THREADS)
    yield model
    model.close()
    weights.close()


def session_on(model: LlamaModel, log: EngineLog) -> ChatSession:
    model.rewind(0)
    shape = prompt_format(model.weights.chat_template, model.weights.vocabulary, {})
    engines = Engines(model, EngineOptions(), log, shape, CostTable({1: 0.03, 32: 0.45}), 0.0)
    return ChatSession(engines, ReplySettings(GREEDY, seed=1, max_tokens=4))


def reply(session: ChatSession, text: str) -> Reply:
    *_, last = session.reply(text)
    assert isinstance(last, Reply)
    return last


def test_first_token_after_coming_back_to_a_chat(deep: LlamaModel, log: EngineLog, tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    vocabulary = deep.weights.vocabulary
    text = (SOURCE.read_text("utf-8") * 3).encode()
    text = vocabulary.decode(vocabulary.encode(text.decode())[: DEPTH - 60])
    first = session_on(deep, log)
    read = reply(first, f"What does this do?\n{text.decode('utf-8', 'replace')}")
    kept = keep_state(first, states, "1")
    started = perf_counter()
    again = keep_state(first, states, "1")
    again_s = perf_counter() - started

    second = session_on(deep, log)
    second.messages = list(first.messages)
    outcomes: list[tuple[Outcome, Reply]] = []
    for _ in range(3):
        deep.rewind(0)
        second.messages = list(first.messages)
        outcomes.append((resume_state(second, states, "1"), reply(second, "And in one word?")))
    started = perf_counter()
    fingerprint(deep.weights.path)
    print_s = perf_counter() - started

    assert kept.reason == ""
    assert again.reason == "it is saved already"
    assert read.first_token_s is not None
    print(f"\n{read.prompt_tokens} tokens read in {read.read_s:.1f} s, first token after {read.first_token_s:.1f} s")
    print(f"saved {kept.n_bytes / 1e6:.0f} MB in {kept.seconds:.2f} s; again, unchanged: {again_s:.3f} s")
    print(f"which file it is: {print_s * 1000:.0f} ms")
    for outcome, resumed in outcomes:
        assert outcome.reason == ""
        assert resumed.first_token_s is not None
        wait = outcome.seconds + resumed.first_token_s
        print(
            f"taken up in {outcome.seconds:.2f} s, {resumed.read_tokens} tokens read, first token after {wait:.2f} s: "
            f"{read.first_token_s / wait:.0f} times sooner"
        )
