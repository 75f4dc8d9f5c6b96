"""The layer that a file brings for the token after the next: it guesses, the text stays plain, and it may be absent."""

from __future__ import annotations

import ctypes
import io
import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specchat import trial
from specchat.cli import main
from specchat.fit import needs
from specchat.headers import brings_next_layer, read_header, weight_bytes
from specchat.kept import Kept
from specchat.loading import EngineOptions, load_engines
from specchat.session import ChatSession, Guess, Reply, ReplySettings
from specchat.trial import tried, try_out
from speculation.accept import rule_named
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.multi_token import MultiToken
from speculation.llama import EngineLog, LlamaModel, LlamaWeights, MultiTokenLayers, multi_token
from speculation.llama.extension import symbol
from speculation.sampling import GREEDY, SamplingConfig
from speculation.types import CannotLoad, Draft, Step
from tests.gguf import tiny
from tests.gguf.rows import some_tokens
from tests.specchat.test_fit import MIB, said

LOG = EngineLog()
HOT = SamplingConfig(temperature=0.8)
RULE = rule_named("coupled", 5)
WRITERS: dict[str, Callable[[Path], Path]] = {
    "attention": tiny.write_multi_token,
    "delta": lambda path: tiny.write_delta(path, next_layers=1),
}
QUESTION = "one two three one two three one two"


@dataclass(frozen=True, slots=True)
class Pair:
    """A target, and the layer behind it, which follows it."""

    target: LlamaModel
    layers: MultiTokenLayers


Make = Callable[[str], Pair]
Plans = Sequence[tuple[str, int]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mtp")
    return {kind: write(folder / f"{kind}.gguf") for kind, write in WRITERS.items()}


@pytest.fixture(scope="module")
def weights(files: dict[str, Path]) -> Iterator[dict[str, LlamaWeights]]:
    loaded = {kind: LlamaWeights(path, LOG, with_next_layer=True) for kind, path in files.items()}
    yield loaded
    for each in loaded.values():
        each.close()


@pytest.fixture
def make(weights: dict[str, LlamaWeights]) -> Iterator[Make]:
    made: list[Pair] = []

    def new(kind: str) -> Pair:
        target = LlamaModel(weights[kind], LOG, n_ctx=256, n_threads=1, max_rows=16)
        layers = MultiTokenLayers(target, LOG, n_threads=1)
        layers.follows = True
        made.append(Pair(target, layers))
        return made[-1]

    yield new
    for pair in made:
        pair.layers.close()
        pair.target.close()


def engine_on(pair: Pair, sampling: SamplingConfig = GREEDY) -> Engine:
    return Engine(pair.target, {"mtp": MultiToken(pair.layers, sampling)}, Fixed(), RULE, sampling)


def read(engine: Engine, prompt: Sequence[int]) -> None:
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass


def write(engine: Engine, plans: Plans, limit: int = 60) -> list[Step]:
    steps: list[Step] = []
    engine.controller = Fixed(*plans[0])
    for step in engine.steps(limit=limit, ends=EndTokens()):
        steps.append(step)
        engine.controller = Fixed(*plans[len(steps) % len(plans)])
    return steps


def text(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def proposed(engine: Engine, k: int = 4) -> Draft:
    return engine.guessers["mtp"].propose(engine.context, k, RULE)


PLAIN: Plans = [("plain", 0)]
SWITCHING: Plans = [("mtp", 3), ("plain", 0), ("mtp", 1), ("mtp", 5), ("plain", 0), ("plain", 0)]


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
@pytest.mark.parametrize("plans", [[("mtp", 4)], SWITCHING], ids=["throughout", "switching"])
@pytest.mark.parametrize("kind", WRITERS)
def test_the_text_is_the_plain_one_and_guesses_hold(
    make: Make, kind: str, plans: Plans, sampling: SamplingConfig
) -> None:
    texts = []
    for each in (PLAIN, plans):
        engine = engine_on(make(kind), sampling)
        read(engine, some_tokens(40))
        steps = write(engine, each)
        texts.append(text(steps))

    guessed = [step for step in steps if step.guesser == "mtp"]
    assert texts[0] == texts[1]
    assert sum(step.accepted for step in guessed) > 0.3 * sum(step.examined for step in guessed) > 0


@pytest.mark.parametrize("kind", WRITERS)
def test_what_it_proposes_after_a_chat_is_what_it_would_after_reading_it_all(make: Make, kind: str) -> None:
    engine, fresh = engine_on(make(kind)), engine_on(make(kind))
    read(engine, some_tokens(30))
    write(engine, SWITCHING, 40)
    read(engine, [*engine.context.tokens[:50].tolist(), *some_tokens(9, seed=3)])  # an edit
    write(engine, SWITCHING, 20)
    read(fresh, engine.context.tokens.tolist())

    assert len(proposed(engine).tokens) == 4
    assert proposed(engine).tokens == proposed(engine).tokens == proposed(fresh).tokens


def test_a_tree_of_guesses_leaves_the_states_of_the_branch_that_won(make: Make) -> None:
    pair, plain = make("attention"), make("attention")
    for each in (pair, plain):
        each.target.forward(some_tokens(10), n_rows=0)

    pair.target.forward_tree(5, [6, 7, 8, 9], [-1, -1, 1, 1])
    pair.target.keep([1, 3])
    pair.target.forward([11], n_rows=1)
    plain.target.forward([5, 7, 9, 11], n_rows=4)

    assert pair.layers.trail.known == plain.layers.trail.known == range(14)
    rows = [each.layers.trail.rows(range(14)) for each in (pair, plain)]
    np.testing.assert_allclose(rows[0], rows[1], atol=0.05)
    assert np.abs(rows[0]).mean() > 0.3


@pytest.mark.parametrize("kind", WRITERS)
def test_followed_from_mid_reply_on_it_sits_out_one_step_and_the_text_is_the_plain_one(make: Make, kind: str) -> None:
    plain = engine_on(make(kind))
    read(plain, some_tokens(40))
    expected = text(write(plain, PLAIN))
    pair = make(kind)
    pair.layers.follows = False
    engine = engine_on(pair)
    engine.guessers, own = {}, engine.guessers
    read(engine, some_tokens(40))
    steps = write(engine, PLAIN, 20)

    engine.guessers, pair.layers.follows = own, True
    late = write(engine, [("mtp", 3)], 40)

    assert text(steps) + text(late) == expected
    assert late[0].guesser == "plain"
    assert {step.guesser for step in late[1:-1]} == {"mtp"}  # the last one may have room for one token


def test_where_nobody_guesses_with_it_no_state_of_the_target_is_kept(make: Make) -> None:
    pair = make("attention")
    pair.target.forward(some_tokens(40), n_rows=0)
    kept = weakref.ref(pair.layers.trail.rows(range(40)).base)

    pair.layers.follows = False

    assert not pair.layers.trail.known
    assert kept() is None


def test_after_a_saved_state_it_guesses_once_something_was_read(make: Make) -> None:
    pair = make("attention")
    engine = engine_on(pair)
    read(engine, some_tokens(40))
    state, held = pair.target.save_state(), engine.cached.copy()
    read(engine, [1])

    pair.target.restore_state(state, len(held))
    engine.adopt(held)
    read(engine, some_tokens(40))
    steps = write(engine, [("mtp", 3)], 20)

    plain = engine_on(make("attention"))
    read(plain, some_tokens(40))
    assert text(steps) == text(write(plain, PLAIN, 20))
    assert {step.guesser for step in steps[1:-1]} == {"mtp"}


def test_the_rows_of_a_target_are_the_same_whether_it_is_followed_or_not(make: Make) -> None:
    rows = []
    for follows in (True, False):
        pair = make("attention")
        pair.layers.follows = follows
        pair.target.forward(some_tokens(40), n_rows=0)
        rows.append(pair.target.forward([1, 2, 3], n_rows=3).copy())

    np.testing.assert_allclose(rows[0], rows[1], atol=1e-4)


# -- Where there is none -------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["nextn.eh_proj", "nextn", "blk.2.attn_norm", "blk.2."])
def test_a_header_that_promises_what_the_file_lacks_is_not_believed(tmp_path: Path, missing: str) -> None:
    path = tiny.write_multi_token(tmp_path / "torn.gguf", missing=missing)

    assert not brings_next_layer(read_header(path))


@pytest.mark.parametrize("n", [0, 2])
def test_only_one_layer_is_run(tmp_path: Path, n: int) -> None:
    assert not brings_next_layer(read_header(tiny.write_multi_token(tmp_path / "model.gguf", next_layers=n)))


def test_only_architectures_whose_conditions_are_known_are_asked_for_it(tmp_path: Path) -> None:
    path = tiny.write_attention(tmp_path / "llama.gguf")
    weights = LlamaWeights(path, LOG, with_next_layer=True)
    target = LlamaModel(weights, LOG, n_ctx=64, n_threads=1)

    with pytest.raises(CannotLoad, match="brings none that the engine can run"):
        MultiTokenLayers(target, LOG, n_threads=1)
    target.close()
    weights.close()


def test_a_call_of_the_engine_is_found_by_any_of_its_names_or_not_at_all() -> None:
    found = symbol(("no_such_call", "llama_max_devices"), ctypes.c_size_t, ())

    assert found is not None
    assert found() >= 1
    assert symbol(("no_such_call", "_Z12no_such_callv"), None, ()) is None


def test_weights_loaded_without_the_layer_have_none(files: dict[str, Path]) -> None:
    weights = LlamaWeights(files["attention"], LOG)
    target = LlamaModel(weights, LOG, n_ctx=64, n_threads=1)

    with pytest.raises(CannotLoad, match="brings none"):
        MultiTokenLayers(target, LOG, n_threads=1)
    target.close()
    weights.close()


def chat_on(path: Path, guess: Guess, *more: Guess) -> Reply:
    """A reply in which one guesses, and then each of the others for a few steps in turn."""
    engines = load_engines(path, EngineOptions(n_ctx=512, n_threads=1), EngineLog())
    session = ChatSession(engines, ReplySettings(sampling=GREEDY, seed=1, max_tokens=80))
    try:
        session.guess = guess
        turns = (guess, *more)
        for i, event in enumerate(session.reply(QUESTION)):
            session.guess = turns[i // 4 % len(turns)]
            if isinstance(event, Reply):
                return event
    finally:
        engines.close()
    raise AssertionError("no reply")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_session_guesses_with_it_and_switches_in_mid_reply(files: dict[str, Path], kind: str) -> None:
    plain = chat_on(files[kind], Guess.OFF)

    for more in ([], [Guess.OFF, Guess.LOOKUP, Guess.AUTO]):
        guessed = chat_on(files[kind], Guess.MTP, *more)
        assert guessed.text == plain.text
        assert "mtp" in {step.guesser for step in guessed.steps}


def test_a_reply_on_the_command_line_guesses_with_it(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DATA_DIR", "CACHE_DIR", "STATE_DIR", "CONFIG"):
        monkeypatch.setenv(f"SPECCHAT_{name}", str(tmp_path / name.lower()))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    said = []
    for guess in ("mtp", "off"):
        words = [
            "ask",
            "-m",
            str(files["delta"]),
            "-g",
            guess,
            "--max-tokens",
            "40",
            "--temp",
            "0",
            "-t",
            "1",
            "--json",
        ]
        assert main([*words, QUESTION]) == 0
        said.append(json.loads(capsys.readouterr().out))

    assert said[0]["text"] == said[1]["text"]
    assert said[0]["speculation"]["accepted_by_source"]["mtp"] > 0


@pytest.mark.parametrize("kind", [*WRITERS, "llama"])
def test_a_trial_of_a_file_tries_its_layer_too(
    files: dict[str, Path], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files[kind] if kind in files else tiny.write_attention(tmp_path / "llama.gguf")
    asked: list[object] = []

    def counting(*given: Any) -> None:
        asked.append(dict(given[-1]))
        try_out(*given)

    monkeypatch.setattr(trial, "try_out", counting)
    tried(path, Kept(tmp_path / "trials.json"), lambda done: True)

    assert asked == [{"next_layer": True} if kind in files else {}]


@pytest.mark.parametrize("kind", ["torn", "llama", "no calls"])
def test_without_it_a_model_loads_chats_and_says_why(
    tmp_path: Path, files: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "torn":
        path = tiny.write_multi_token(tmp_path / "torn.gguf", missing="blk.2.")
    elif kind == "llama":
        path = tiny.write_attention(tmp_path / "llama.gguf")
    else:
        path = files["attention"]
        monkeypatch.setattr(multi_token, "next_state_calls", lambda: None)
    engines = load_engines(path, EngineOptions(n_ctx=256, n_threads=1), EngineLog())
    session = ChatSession(engines, ReplySettings(sampling=GREEDY, seed=1, max_tokens=10))

    assert Guess.MTP not in engines.own
    with pytest.raises(ValueError, match="has no layers for multi-token prediction: "):
        session.guess = Guess.MTP
    assert any(isinstance(event, Reply) for event in session.reply("hi"))
    engines.close()


def test_a_context_that_cannot_be_made_means_no_such_guesser(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(layers: MultiTokenLayers) -> None:
        raise CannotLoad("out of memory")

    monkeypatch.setattr(MultiTokenLayers, "_probe", refuses)

    engines = load_engines(files["attention"], EngineOptions(n_ctx=256, n_threads=1), EngineLog())

    assert engines.next_layer is None
    assert "out of memory" in engines.why_without(Guess.MTP)
    assert engines.target.trails == []
    engines.close()


@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
@pytest.mark.parametrize("kind", WRITERS)
def test_the_estimate_of_memory_counts_its_cache_and_the_states_that_it_needs(
    files: dict[str, Path], weights: dict[str, LlamaWeights], kind: str, cache_type: str
) -> None:
    header, n_ctx, log = read_header(files[kind]), 512, EngineLog()
    assert header.shape is not None
    target = LlamaModel(weights[kind], log, n_ctx=n_ctx, n_threads=1, cache_type=cache_type)
    taken = said(log, "(?:KV|RS)")
    layers = MultiTokenLayers(target, log, n_threads=1, cache_type=cache_type)
    taken += said(log, "(?:KV|RS)")
    layers.close()
    target.close()

    expected = needs(header.shape, weight_bytes(header), n_ctx, cache_type)

    assert expected.weights == weights[kind].size_bytes
    states = n_ctx * header.shape.width * 4
    assert (expected.cache - states) / MIB == pytest.approx(taken, abs=0.016)  # three that are rounded
