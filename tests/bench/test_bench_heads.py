"""What trained heads are worth: their price here, tokens per step, and where the chooser would use them.

    SPECCHAT_BENCH_HEADS=FOLDER python -m pytest -m bench -s tests/bench/test_bench_heads.py

FOLDER holds what `specchat heads train` wrote (data folder, heads/). The tables are walked through with the real model,
texts and heads on a clock that moves by the price list; a head's token takes what it takes on this machine's processor
among steps of the target, where it runs also beside a GPU (which leaves it its caches, so that it is cheaper there).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pytest

from specchat.bench.replay import Clock, read_cost
from specchat.conversation import Message, Role, prompt_format
from specchat.heads.file import About, load, weights_of
from speculation.accept import rule_named
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.controllers.stopping import Stopping
from speculation.cost import CostTable, measure
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Guesser, KeepOn
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.guessers.trained_head import TrainedHead
from speculation.heads.head import Head
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from speculation.sampling import GREEDY
from speculation.stats import Totals, totals
from speculation.types import PLAIN, Draft, Logits, Step, Tokens
from tests.bench.tasks import TASKS
from tests.conftest import THREADS, model_file

pytestmark = [pytest.mark.bench, pytest.mark.gguf]

MODELS = ("smollm2-135m", "qwen2.5-coder-1.5b")
TABLES = ("cpu-2core", "apple-metal", "consumer-nvidia", "gpu-like", "datacentre")
FREE = CostTable({1: 1.0, 64: 1.001})  # what a tree of 64 guesses is worth where rows cost nothing
LENGTH = 100


class OnClock(LlamaModel):
    """A real model whose steps take what a price list says; reading is free."""

    def __init__(self, weights: LlamaWeights, log: EngineLog, **how: Any) -> None:
        self.clock, self.cost = Clock(), FREE
        super().__init__(weights, log, max_rows=65, **how)

    def forward(self, tokens: Any, *, n_rows: int) -> Logits:
        self.clock.now_s += self.cost.forward_s(n_rows) if n_rows else 0.0
        return super().forward(tokens, n_rows=n_rows)

    def forward_tree(self, pending: int, tokens: Any, parents: Any) -> Logits:
        self.clock.now_s += self.cost.forward_s(len(tokens) + 1)
        return super().forward_tree(pending, tokens, parents)


class HeadOnClock(TrainedHead):
    """A head whose tokens take a given time; several at a depth take as much as the controller reckons with."""

    def __init__(self, head: Head, target: OnClock, token_s: float) -> None:
        super().__init__(head, target, GREEDY)
        self._on, self._each_s = target, token_s

    def propose(self, context: Context, k: int, rule: Any, keep_on: KeepOn | None = None) -> Draft:
        draft = super().propose(context, k, rule, keep_on)
        if draft.tokens:
            deepest = max(len(draft.path(i)) for i in range(len(draft.tokens)))
            self._on.clock.now_s += self._each_s * (keep_on.drafted if isinstance(keep_on, Stopping) else deepest)
        return draft


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, log: EngineLog) -> Iterator[OnClock]:
    weights = LlamaWeights(model_file(request.param), log)
    model = OnClock(weights, log, n_ctx=1024, n_threads=THREADS)
    yield model
    model.close()
    weights.close()


@pytest.fixture
def heads(model: OnClock) -> dict[str, tuple[Head, About]]:
    """Those of the model, by kind."""
    folder = Path(os.environ.get("SPECCHAT_BENCH_HEADS", ""))
    identity = weights_of(model.weights.path)
    found = {}
    for path in sorted(folder.glob(f"{model.weights.name}.*.npz")):
        head, about = load(path, identity)
        found[str(head.kind)] = head, about
    if not found:
        pytest.skip(f"no heads of {model.weights.name} in SPECCHAT_BENCH_HEADS")
    return found


def prompts(model: OnClock) -> list[Tokens]:
    shape = prompt_format(model.weights.chat_template, model.weights.vocabulary, {})
    return [shape.prompt([Message(Role.USER, each)]) for questions in TASKS.values() for each in questions]


def write(model: OnClock, prompt: Tokens, controller: Controller, *guessers: Guesser, clock: Any) -> list[Step]:
    model.rewind(0)
    engine = Engine(model, {each.name: each for each in guessers}, controller, rule_named("coupled", 0), GREEDY, clock)
    for _ in engine.read(prompt):
        pass
    return list(engine.steps(limit=LENGTH, ends=EndTokens(model.weights.vocabulary.ends)))


def test_bench_a_head_on_this_machine(
    model: OnClock, heads: dict[str, tuple[Head, About]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Price of a token among steps of the target, and tokens per step of chains and of the largest tree."""
    asked = prompts(model)
    with capsys.disabled():
        for kind, (head, about) in heads.items():
            print(
                f"\n{model.weights.name}, {kind}: {about.accuracy} right of {about.positions} positions' kind of text"
            )
            for k in (1, 2, 3, 4):
                model.keeps_hidden = True
                plain, drafted, found = [], [], []
                for prompt in asked:
                    own = TrainedHead(head, model, GREEDY)
                    steps = write(model, prompt, Fixed(kind, k), own, clock=perf_counter)
                    found += steps
                    drafted += [step.draft_s / step.drafted for step in steps if step.drafted == k]
                    model.keeps_hidden = False
                    plain += [step.verify_s for step in write(model, prompt, Fixed(), clock=perf_counter)]
                    model.keeps_hidden = True
                if not drafted:
                    continue
                print(
                    f"chain of {k}: {totals(found).tokens_per_step:.3f} tokens per step; a drafted token "
                    f"{median(drafted) * 1e3:.2f} ms, {median(drafted) / median(plain):.3f} of a plain step"
                )
            model.cost, found = FREE, []
            for prompt in asked:
                own = HeadOnClock(head, model, 1e-6)
                adaptive = Adaptive(FREE, heads={kind: 1e-6}, insist=kind)
                found += write(model, prompt, adaptive, own, clock=model.clock)
            guesses = median(step.drafted for step in found if step.drafted)
            print(f"trees where rows are free: {totals(found).tokens_per_step:.3f} tokens per step, {guesses} guesses")


def test_bench_auto_on_this_machine_with_and_without_a_head(
    model: OnClock, heads: dict[str, tuple[Head, About]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether the chooser leaves a head alone where it loses."""
    model.cost, model.keeps_hidden = FREE, True
    cost = measure(model, perf_counter)
    rates: dict[str, float] = {}
    for name in ("off", "lookup", *heads):
        steps: list[Step] = []
        for prompt in prompts(model):
            own = [] if name in ("off", "lookup") else [TrainedHead(heads[name][0], model, GREEDY)]
            model.keeps_hidden = bool(own)
            prices = {each.name: each.token_s(perf_counter) for each in own}
            controller = Fixed() if name == "off" else Adaptive(cost, heads=prices, alphas=seen(own))
            steps += write(model, prompt, controller, PromptLookup(), *own, clock=perf_counter)
        counted = totals(steps)
        rates[name] = counted.emitted / counted.seconds
        with capsys.disabled():
            print(f"\n{name:8} {rates[name] / rates['off']:.3f} x plain; {shares(steps)}")


@pytest.mark.parametrize("table", TABLES)
def test_bench_heads_by_price_list(
    table: str, model: OnClock, heads: dict[str, tuple[Head, About]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where they would win."""
    model.cost = cost = read_cost(table)
    lines = []
    for name in ("lookup", *heads):
        steps, seconds = list[Step](), 0.0
        prices = {name: among_steps_s(model, heads[name][0])} if name in heads else {}
        model.keeps_hidden = name in heads
        for prompt in prompts(model):
            own: list[TrainedHead] = [HeadOnClock(heads[each][0], model, price_s) for each, price_s in prices.items()]
            started = model.clock.now_s
            steps += write(
                model, prompt, Adaptive(cost, heads=prices, alphas=seen(own)), PromptLookup(), *own, clock=model.clock
            )
            seconds += model.clock.now_s - started
        counted: Totals = totals(steps)
        speed = counted.emitted * cost.forward_s(1) / seconds
        price = "".join(f" at {price_s * 1e3:.2f} ms" for price_s in prices.values())
        lines.append(
            f"{name}{price} {speed:.3f} x plain, {counted.tokens_per_step:.2f} tokens per step ({shares(steps)})"
        )
    with capsys.disabled():
        print(f"\n{model.weights.name}, {table}: {'; '.join(lines)}")


def among_steps_s(model: OnClock, head: Head) -> float:
    """Seconds of a drafted token here, in chains of two, whose target has emptied the caches."""
    kind, model.keeps_hidden = str(head.kind), True
    steps = write(model, prompts(model)[0], Fixed(kind, 2), TrainedHead(head, model, GREEDY), clock=perf_counter)
    return median(step.draft_s / step.drafted for step in steps if step.drafted == 2)


def seen(own: list[TrainedHead]) -> dict[str, float]:
    """How often the next token of a head was right when it was trained."""
    return {each.name: each.head.accuracy[0] for each in own}


def shares(steps: list[Step]) -> str:
    """Who guessed, of all steps."""
    names = sorted({step.guesser for step in steps} - {PLAIN})
    return ", ".join(f"{name} {sum(s.guesser == name for s in steps) / len(steps):.0%}" for name in names) or "plain"
