"""What the loop costs beside the forwards: against a bare decode loop, per step, per lookup, and in memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pytest

from specchat.conversation import Message, Role, prompt_format
from speculation.accept import Coupled, rule_named
from speculation.context import Context
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.llama import LlamaModel
from speculation.sampling import GREEDY, SamplingConfig, distribution
from speculation.types import Step, Tokens
from tests.bench.tasks import QUESTIONS
from tests.conftest import THREADS, model_file

pytestmark = pytest.mark.bench

TOKENS = 64


def prompt_of(model: LlamaModel) -> Tokens:
    shape = prompt_format(model.weights.chat_template, model.weights.vocabulary, {})
    return shape.prompt([Message(Role.USER, QUESTIONS[0])])


def engine_on(model: LlamaModel, prompt: Tokens, controller: Fixed, sampling: SamplingConfig) -> Engine:
    model.rewind(0)
    engine = Engine(model, {"lookup": PromptLookup()}, controller, rule_named("coupled", 1), sampling)
    for _ in engine.read(prompt):
        pass
    return engine


def bare_s(model: LlamaModel, prompt: Tokens) -> float:
    """Seconds of a token in the shortest loop that decodes at all."""
    model.rewind(0)
    token = int(model.forward(prompt, n_rows=1)[0].argmax())
    started = perf_counter()
    for _ in range(TOKENS):
        token = int(model.forward([token], n_rows=1)[0].argmax())
    return (perf_counter() - started) / TOKENS


def loop_s(model: LlamaModel, prompt: Tokens) -> float:
    """Seconds of a token in ours with guessing off."""
    engine = engine_on(model, prompt, Fixed(), GREEDY)
    started = perf_counter()
    for _ in engine.steps(limit=TOKENS, ends=EndTokens()):
        pass
    return (perf_counter() - started) / TOKENS


@pytest.mark.parametrize("name", ["smollm", "qwen"])
def test_loop_against_a_bare_decode_loop(
    name: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    model: LlamaModel = request.getfixturevalue(name)
    prompt = prompt_of(model)
    pairs = [(loop_s(model, prompt), bare_s(model, prompt)) for _ in range(9)][1:]

    ours, bare = (median(pair[i] for pair in pairs) * 1e3 for i in (0, 1))
    ratio = median(ours / bare for ours, bare in pairs)
    with capsys.disabled():
        print(f"\n{name}: loop {ours:.2f} ms, bare {bare:.2f} ms a token; median ratio {ratio:.4f} (target 1.02)")


def test_work_outside_the_forwards(qwen: LlamaModel, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = prompt_of(qwen)
    lines = []
    for title, sampling, target in (
        ("temperature 0", GREEDY, 0.5),
        ("default sampling", SamplingConfig(), 1.5),
    ):
        engine = engine_on(qwen, prompt, Fixed("lookup", 4), sampling)
        steps: list[Step] = [s for s in engine.steps(limit=TOKENS, ends=EndTokens()) if s.drafted == 4]
        outside = [(s.draft_s + s.accept_s) * 1e3 for s in steps]
        lines.append(
            f"outside the forwards, k = 4, V = {qwen.n_vocab}, {title}: median {median(outside):.3f} ms, "
            f"95th percentile {np.quantile(outside, 0.95):.3f} ms (target {target})"
        )
    rows, rule = qwen.forward([1, 2, 3, 4, 5], n_rows=5), Coupled(1)
    taken = []
    for _ in range(50):
        started = perf_counter()
        for i, row in enumerate(rows):
            rule.pick(distribution(row, SamplingConfig()), i)
        taken.append((perf_counter() - started) * 1e3)
    lines.append(f"five rows turned into distributions and drawn from: median {median(taken):.3f} ms (target 1.5)")
    with capsys.disabled():
        print("\n" + "\n".join(lines))


@pytest.mark.parametrize("length", [1_000, 8_000, 128_000])
def test_lookup_at_length(length: int, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 20_000, size=(400, 12))
    text = np.concatenate([words[i] for i in rng.integers(0, 400, size=length // 12)])  # prose repeats its phrases
    context, guesser = Context(text), PromptLookup()
    started = perf_counter()
    guesser.candidates(context, 16)
    built = perf_counter() - started
    taken = []
    for _ in range(2000):
        context.extend(words[rng.integers(0, 400)][:4])  # a step that emitted four tokens
        started = perf_counter()
        guesser.candidates(context, 16)
        taken.append(perf_counter() - started)

    with capsys.disabled():
        print(f"\nlookup at {length} tokens: {median(taken) * 1e3:.4f} ms a step of four tokens, 95th percentile "
              f"{np.quantile(taken, 0.95) * 1e3:.4f} ms (target 0.1); built in {built:.2f} s")  # fmt: skip


CHILD = """
import sys
from pathlib import Path
from specchat.loading import EngineOptions, load_engines
from specchat.session import ChatSession, ReplySettings
from speculation.llama import EngineLog
lines = []
engines = load_engines(Path(sys.argv[1]), EngineOptions(n_threads=int(sys.argv[2])), EngineLog(lines.append))
session = ChatSession(engines, ReplySettings(seed=1, max_tokens=60))
for _ in session.reply("word " * 1500):
    pass
print("\\n".join(line for line in lines if "buffer size" in line))
print(open("/proc/self/status").read())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_beside_model_and_cache(capsys: pytest.CaptureFixture[str]) -> None:
    path: Path = model_file("qwen2.5-coder-1.5b")
    out = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(THREADS)], capture_output=True, text=True, check=True
    ).stdout
    anonymous = int(re.findall(r"RssAnon:\s+(\d+) kB", out)[0]) / 1024
    repacked = sum(float(x) for x in re.findall(r"REPACK model buffer size =\s+([\d.]+) MiB", out))
    cache = sum(float(x) for x in re.findall(r"KV buffer size =\s+([\d.]+) MiB", out))

    with capsys.disabled():
        print(f"\nmemory: {anonymous:.0f} MiB anonymous, of which weights repacked by the engine {repacked:.0f}, cache "
              f"{cache:.0f}; everything else {anonymous - repacked - cache:.0f} MiB (target 250 MB)")  # fmt: skip
