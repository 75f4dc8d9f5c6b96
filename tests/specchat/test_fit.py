"""What a model takes in memory, compared with what the engine then says, and what gives way where that is too much."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specchat.fit import (
    FLOOR,
    LEAST_STATES,
    MOST_STATES,
    DoesNotFit,
    Needs,
    Room,
    needs,
    no_room_for_draft,
    plan_context,
    states_kept,
    too_large,
)
from specchat.gguf_shape import Shape
from specchat.headers import read_header, weight_bytes
from specchat.kept import Kept
from specchat.loading import EngineOptions, NoRoom, load_engines
from specchat.quantizations import dear_checks
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from tests.conftest import GEMMA, cached_file, model_file
from tests.gguf import tiny

MIB = 1 << 20
GB = 10**9
WRITERS: dict[str, Callable[[Path], Path]] = {
    "attention": tiny.write_attention,
    "sliding window": tiny.write_sliding_window,
    "recurrent": tiny.write_recurrent,
    "hybrid of convolutions": tiny.write_hybrid,
    "hybrid of sums": tiny.write_delta,
    "one key-value head": lambda path: tiny.write_attention(path, architecture="llama"),
}


def said(log: EngineLog, what: str) -> float:
    """MiB that the engine said in all lines of a kind."""
    return sum(float(mib) for mib in re.findall(rf"{what} buffer size = +([\d.]+) MiB", "\n".join(log.lines)))


def assert_estimate_is_what_the_engine_takes(path: Path, n_ctx: int, cache_type: str = "f16") -> None:
    header, log = read_header(path), EngineLog()
    assert header.shape is not None
    expected = needs(header.shape, weight_bytes(header), n_ctx, cache_type)
    weights = LlamaWeights(path, log)
    rollback = states_kept(header.shape)
    model = LlamaModel(weights, log, n_ctx=n_ctx, n_threads=1, rollback=rollback, cache_type=cache_type)
    try:
        assert expected.weights == weights.size_bytes
        assert expected.cache / MIB == pytest.approx(said(log, "(?:KV|RS)"), abs=0.011)  # it rounds each of two
        buffers = said(log, "(?:compute|output)")
        assert buffers / 2 < expected.buffers / MIB < 2 * buffers + 2
        assert (model.can_rewind, model.rewinds_freely) == (header.shape.can_guess, header.shape.can_draft)
    finally:
        model.close()
        weights.close()


@pytest.mark.parametrize("n_ctx", [512, 1000, 2048])
@pytest.mark.parametrize("kind", WRITERS)
def test_the_estimate_is_what_the_engine_takes(kind: str, n_ctx: int, tmp_path: Path) -> None:
    assert_estimate_is_what_the_engine_takes(WRITERS[kind](tmp_path / "model.gguf"), n_ctx)


@pytest.mark.parametrize("kind", ["attention", "sliding window", "hybrid of sums"])
def test_the_estimate_holds_for_a_cache_of_eight_bits(kind: str, tmp_path: Path) -> None:
    path = WRITERS[kind](tmp_path / "model.gguf")

    assert_estimate_is_what_the_engine_takes(path, 2048, "q8_0")


@pytest.mark.gguf
@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
@pytest.mark.parametrize("name", ["smollm2-135m", pytest.param("qwen2.5-coder-0.5b", marks=pytest.mark.pair), GEMMA])
def test_the_estimate_holds_for_real_files(name: str, cache_type: str) -> None:
    path = cached_file(name) if name == GEMMA else model_file(name)

    assert_estimate_is_what_the_engine_takes(path, 4096, cache_type)


def test_the_kinds_of_memory_are_told_from_the_header(tmp_path: Path) -> None:
    shapes = {kind: read_header(write(tmp_path / "model.gguf")).shape for kind, write in WRITERS.items()}

    told = {kind: (shape.memory, shape.can_guess, shape.can_draft) for kind, shape in shapes.items() if shape}
    assert told == {
        "attention": ("attention", True, True),
        "sliding window": ("sliding window", True, True),
        "recurrent": ("recurrent", False, False),
        "hybrid of convolutions": ("hybrid", True, False),
        "hybrid of sums": ("hybrid", True, False),
        "one key-value head": ("attention", True, True),
    }


SHAPE = Shape(
    width=1536, feed_forward=8960, vocabulary=151936, per_token=14336, state=0, memory="attention",
    can_guess=True, can_draft=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("state_bytes", "kept"), [(0, MOST_STATES), (4 << 20, MOST_STATES), (100 << 20, 5), (4 << 30, LEAST_STATES)]
)
def test_as_many_states_are_kept_as_memory_allows(state_bytes: int, kept: int) -> None:
    assert states_kept(replace(SHAPE, state=state_bytes // 4)) == kept


def gigabytes(n_ctx: int) -> Needs:
    """4 GB of weights, and a GB of cache for each 8192 tokens."""
    return Needs(4 * GB, GB * n_ctx // 8192, GB // 2)


def test_what_fits_is_left_as_it_is() -> None:
    plan = plan_context("m", gigabytes, 8192, Room(6 * GB, 8 * GB), insisted=False)

    assert (plan.n_ctx, plan.notice) == (8192, "")


def test_where_memory_is_not_known_nothing_is_changed() -> None:
    plan = plan_context("m", gigabytes, 8192, Room(None, None), insisted=False)

    assert (plan.n_ctx, plan.notice) == (8192, "")


def test_the_context_gives_way_and_it_says_so() -> None:
    plan = plan_context("m", gigabytes, 8192, Room(5 * GB, 8 * GB), insisted=False)

    assert plan.n_ctx == 4096
    assert plan.notice == "the context is 4096 tokens: with 8192 it needs 5.5 GB, 5.0 GB are free"


def test_a_context_that_was_asked_for_is_not_shortened_but_its_price_is_told() -> None:
    plan = plan_context("m", gigabytes, 8192, Room(5 * GB, 8 * GB), insisted=True)

    assert plan.n_ctx == 8192
    assert plan.notice == "m needs about 5.5 GB and 5.0 GB are free: expect it to be slow"


def test_what_exceeds_free_memory_is_tried_with_a_warning() -> None:
    plan = plan_context("m", gigabytes, 8192, Room(2 * GB, 8 * GB), insisted=False)

    assert plan.n_ctx == FLOOR
    assert "expect it to be slow" in plan.notice
    assert "2.0 GB are free" in plan.notice


@pytest.mark.parametrize(("insisted", "n_ctx", "hint"), [(False, 8192, ""), (True, 32768, "; a shorter --ctx")])
def test_what_exceeds_the_machine_is_refused_with_both_figures(insisted: bool, n_ctx: int, hint: str) -> None:
    total = 4 * GB if not insisted else 5 * GB

    with pytest.raises(
        DoesNotFit, match=r"m does not fit: it needs about .* GB with \d+ tokens.*this machine has"
    ) as e:
        plan_context("m", gigabytes, n_ctx, Room(3 * GB, total), insisted=insisted)

    assert hint in str(e.value)


@given(
    weights=st.integers(0, 40),
    per_8k=st.integers(0, 20),
    free=st.integers(0, 60),
    n_ctx=st.sampled_from([256, 2048, 8192, 131072]),
)
def test_a_context_is_only_shortened_as_far_as_it_must_be(weights: int, per_8k: int, free: int, n_ctx: int) -> None:
    def of(tokens: int) -> Needs:
        return Needs(weights * GB, per_8k * GB * tokens // 8192, 0)

    plan = plan_context("m", of, n_ctx, Room(free * GB, None), insisted=False)

    assume(plan.n_ctx < n_ctx)
    assert plan.n_ctx >= FLOOR
    assert of(2 * plan.n_ctx).total > free * GB
    assert plan.notice


def test_before_a_download_both_figures_are_named_where_the_model_will_not_fit() -> None:
    assert too_large("M", 6_100_000_000, Room(3_900_000_000, 8 * GB)) == (
        "M needs about 6.1 GB with 8192 tokens of context, 3.9 GB are free"
    )
    assert too_large("M", GB, Room(GB, 8 * GB)) == ""
    assert too_large("M", GB, Room(None, None)) == ""


def test_a_draft_gives_way_where_both_do_not_fit() -> None:
    draft = Needs(GB // 2, GB // 10, GB // 10)

    assert no_room_for_draft("d", "t", draft, Room(2 * GB, 8 * GB), GB) == ""
    assert no_room_for_draft("d", "t", draft, Room(None, None), GB) == ""
    why = no_room_for_draft("d", "t", draft, Room(GB, 8 * GB), GB // 2)
    assert why == "no room for d beside t: it needs about 700 MB and 500 MB are free"


def test_a_target_is_loaded_with_the_context_that_fits(tmp_path: Path) -> None:
    path = tiny.write_attention(tmp_path / "model.gguf")
    shape = read_header(path).shape
    assert shape is not None
    room = Room(needs(replace(shape), weight_bytes(read_header(path)), 2048).total - 1, 1 << 40)

    engines = load_engines(path, EngineOptions(), EngineLog(), room=lambda: room)
    insisted = load_engines(path, EngineOptions(n_ctx=1024), EngineLog(), room=lambda: room)

    assert engines.target.n_ctx == 2048  # the floor
    assert any("expect it to be slow" in notice for notice in engines.notices)
    assert insisted.target.n_ctx == 1024
    engines.close()
    insisted.close()


def test_a_model_that_is_larger_than_the_machine_is_not_begun(tmp_path: Path) -> None:
    path = tiny.write_attention(tmp_path / "model.gguf")

    with pytest.raises(DoesNotFit, match="model does not fit"):
        load_engines(path, EngineOptions(), EngineLog(), lambda _: pytest.fail("it was begun"), room=lambda: Room(9, 9))


def test_a_draft_without_room_is_refused_and_the_target_keeps_what_it_has(tmp_path: Path) -> None:
    path = tiny.write_attention(tmp_path / "model.gguf")
    room = [Room(None, None)]
    engines = load_engines(path, EngineOptions(n_ctx=512), EngineLog(), room=lambda: room[-1])
    engines.target.forward([1, 2, 3], n_rows=0)
    room.append(Room(1000, 1 << 40))

    with pytest.raises(NoRoom, match="no room for model beside model"):
        engines.load_draft(path)

    assert engines.draft is None
    assert engines.target.n_past == 3
    room.append(Room(1 << 40, 1 << 40))
    engines.load_draft(path)
    assert engines.draft is not None
    engines.close()


def test_the_price_of_a_draft_token_is_measured_once_and_kept(tmp_path: Path) -> None:
    path = tiny.write_attention(tmp_path / "model.gguf")
    prices = Kept(tmp_path / "prices.json")
    engines = load_engines(path, EngineOptions(n_ctx=512), EngineLog(), prices=prices)
    engines.load_draft(path)
    (key,) = (key for key in prices.all() if key.endswith("as draft"))
    prices.put(key, {"1": 12.5})

    engines.load_draft(path)

    assert engines.draft_step_s == 12.5
    engines.drop_draft()
    assert engines.draft_step_s is None
    engines.close()


def test_dear_checks_are_told_once_when_a_model_is_first_loaded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny.write_attention(tmp_path / "model.gguf")
    monkeypatch.setattr("specchat.loading.dear_checks", lambda tensors: f"dear: {dict(tensors)}")
    prices = Kept(tmp_path / "prices.json")
    told = []

    for _ in range(2):
        engines = load_engines(path, EngineOptions(n_ctx=512), EngineLog(), prices=prices)
        told.append(engines.notices)
        engines.close()

    assert told == [["model: dear: {'F32': 21}"], []]


@pytest.mark.parametrize(
    ("tensors", "hint"),
    [
        ({"F32": 141, "Q4_K": 168, "Q6_K": 29}, "mostly Q4_K: on a CPU, checking 7 guesses costs about as much as 7"),
        ({"F32": 100, "Q5_K": 90, "Q6_K": 9}, "mostly Q5_K"),
        ({"IQ2_XXS": 80, "Q8_0": 10, "F32": 300}, "nearly as much as 8 plain steps"),
        ({"F32": 141, "Q8_0": 197}, ""),
        ({"F32": 141, "Q4_0": 180, "Q6_K": 1}, ""),
        ({"Q5_0": 132, "Q8_0": 13, "Q4_K": 12, "Q6_K": 12, "F32": 121}, ""),
        ({"F32": 10}, ""),
        ({}, ""),
    ],
)
def test_quantizations_that_make_checks_dear_are_pointed_out(tensors: dict[str, int], hint: str) -> None:
    said = dear_checks(tensors)

    assert hint in said
    assert bool(said) is bool(hint)
