"""Heads of a real model: a tiny training makes one that loads, guesses, and leaves the text alone."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter

import numpy as np
import pytest

from specchat.cli import main
from specchat.conversation import Message, Role
from specchat.heads.file import load
from specchat.loading import EngineOptions, Engines, load_engines
from specchat.session import ChatSession, Guess, Reply, ReplySettings, Wrote
from speculation.accept import Rule, gumbel, rule_named
from speculation.context import Context
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import KeepOn
from speculation.guessers.trained_head import TrainedHead
from speculation.llama import EngineLog
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import AlwaysWidens
from speculation.types import Draft, Step
from tests.conftest import THREADS, model_file

pytestmark = pytest.mark.gguf

TIE = 0.5  # widest gap of the two best logits at which a text may part from plain decoding
QUESTION = "What is a brick made of? Answer in a few sentences."


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """SmolLM2 with both kinds of heads, trained on next to nothing."""
    own = tmp_path_factory.mktemp("heads")
    path = model_file("smollm2-135m")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA_DIR", "CACHE_DIR", "STATE_DIR"):
            patch.setenv(f"SPECCHAT_{name}", str(own / name))
        patch.setenv("SPECCHAT_CONFIG", str(own / "own.toml"))
        words = ["heads", "train", str(path), "--positions", "1500", "--epochs", "1", "-t", str(THREADS)]
        assert main(words) == 0
        assert main([*words, "--kind", "medusa", "--resume"]) == 0
        loaded = load_engines(path, EngineOptions(n_ctx=1024, n_threads=THREADS), EngineLog())
        trained = {load(each)[1].kind for each in (own / "DATA_DIR" / "heads").iterdir()}
    assert {str(kind) for kind in trained} == {"eagle", "medusa"} == {str(kind) for kind in loaded.heads}
    yield loaded
    loaded.close()


def written(engines: Engines, *guesses: Guess) -> Reply:
    """A reply in which the guesser changes every few steps."""
    session = ChatSession(engines, ReplySettings(sampling=GREEDY, seed=1, max_tokens=90))
    steps = 0
    session.guess = guesses[0]
    for event in session.reply(QUESTION):
        if isinstance(event, Wrote) and event.step is not None:
            steps += 1
            session.guess = guesses[steps // 5 % len(guesses)]
    assert session.last_reply is not None
    return session.last_reply


def tokens(steps: list[Step] | tuple[Step, ...]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def assert_same(engines: Engines, plain: Reply, other: Reply) -> None:
    """Equal, or parted at a near tie."""
    one, two = tokens(tuple(plain.steps)), tokens(tuple(other.steps))
    same = next((i for i, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        assert len(one) == len(two)
        return
    session = ChatSession(engines, ReplySettings(sampling=GREEDY, seed=1, max_tokens=same + 1))
    list(session.reply(QUESTION))
    prompt = session.prompt.tolist()
    engines.target.rewind(0)
    row = engines.target.forward([*prompt, *one[:same]], n_rows=1)[0]
    assert abs(float(row[one[same]] - row[two[same]])) < TIE


@pytest.mark.parametrize("kind", [Guess.EAGLE, Guess.MEDUSA])
def test_a_head_guesses_and_the_text_stays_plain_up_to_near_ties(kind: Guess, engines: Engines) -> None:
    plain, guessed = written(engines, Guess.OFF), written(engines, kind)

    assert_same(engines, plain, guessed)
    assert sum(step.drafted for step in guessed.steps) > 20
    assert sum(step.accepted for step in guessed.steps) > 0


def test_switching_to_and_from_heads_in_mid_reply_changes_nothing(engines: Engines) -> None:
    plain = written(engines, Guess.OFF)
    mixed = written(engines, Guess.EAGLE, Guess.OFF, Guess.MEDUSA, Guess.LOOKUP)

    assert_same(engines, plain, mixed)
    assert {step.guesser for step in mixed.steps} >= {"plain", "eagle"}


class Bushy(TrainedHead):
    """A head that guesses trees as wide as they may be."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return super().propose(context, k, rule, AlwaysWidens(12, 8))


@pytest.mark.parametrize("kind", [Guess.EAGLE, Guess.MEDUSA])
@pytest.mark.parametrize("sampling", [GREEDY, SamplingConfig(temperature=0.7)], ids=["greedy", "warm"])
def test_trees_of_many_nodes_leave_the_text_plain_up_to_near_ties(
    sampling: SamplingConfig, kind: Guess, engines: Engines
) -> None:
    target, seed = engines.target, 3
    prompt = engines.format.prompt([Message(Role.USER, QUESTION)])
    target.keeps_hidden = True
    found = []
    for controller in (Fixed(), Fixed(str(kind), 63)):
        target.rewind(0)
        own = Bushy(engines.heads[kind], target, sampling)
        engine = Engine(target, {own.name: own}, controller, rule_named("coupled", seed), sampling)
        for _ in engine.read(prompt):
            pass
        found.append(list(engine.steps(limit=40, ends=EndTokens(target.weights.vocabulary.ends))))
    plain, guessed = map(tokens, found)

    assert max(step.drafted for step in found[1]) > 30
    assert sum(step.accepted for step in found[1]) > 0
    same = next((i for i, pair in enumerate(zip(plain, guessed, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        assert plain == guessed
        return
    target.rewind(0)
    row = target.forward([*prompt.tolist(), *plain[:same]], n_rows=1)[0]
    ids = np.array([plain[same], guessed[same]], dtype=np.int32)
    scores = row[ids].astype(np.float64)
    if sampling.temperature:
        scores = scores / sampling.temperature + gumbel(seed, len(prompt) + same, ids)
    assert abs(scores[0] - scores[1]) < TIE


@pytest.mark.bench
def test_bench_what_keeping_states_and_drafting_a_token_cost(engines: Engines) -> None:
    target = engines.target
    target.rewind(0)
    target.forward([1] * 200, n_rows=0)
    for n_rows in (1, 4):
        times: dict[bool, list[float]] = {False: [], True: []}
        for i in range(16):
            target.keeps_hidden = i % 2 == 1
            started = perf_counter()
            target.forward([2] * n_rows, n_rows=n_rows)
            times[target.keeps_hidden].append(perf_counter() - started)
            target.rewind(200)
        print(f"\n{n_rows} rows: {median(times[False]) * 1e3:.2f} ms, with states {median(times[True]) * 1e3:.2f} ms")
    for kind, head in engines.heads.items():
        token_s = TrainedHead(head, target, GREEDY).token_s(perf_counter)
        print(f"{kind}: a token in {token_s * 1e3:.2f} ms, {token_s / median(times[False]):.3f} of a step of four rows")
