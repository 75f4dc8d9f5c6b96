"""The cache of a real model: rows, rollbacks and stops."""

from __future__ import annotations

import llama_cpp
import numpy as np
import pytest

from speculation.types import CannotRewind, EngineFailure, Interrupted
from tests.gguf.rows import BOUNDED, FREE, KINDS, NOT_REWINDING, Make, all_rows, assert_same, some_tokens


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_how_the_tokens_are_cut_into_forwards(make: Make, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = some_tokens(400, seed)
    expected = all_rows(make, kind, tokens)
    model = make(kind, n_batch=24, max_rows=8)

    while (at := model.n_past) < len(tokens):
        n = min(int(rng.choice([1, 5, 24, 25, 31, 32, 100])), len(tokens) - at)
        n_rows = int(rng.integers(0, min(n, 8) + 1))

        rows = model.forward(tokens[at : at + n], n_rows=n_rows)

        assert model.n_past == at + n
        assert_same(rows, expected[at + n - n_rows : at + n])


def test_rows_are_the_memory_of_the_engine_itself(make: Make) -> None:
    model = make("attention")

    first = model.forward([1, 2, 3], n_rows=3)
    second = model.forward([4, 5], n_rows=2)

    assert np.shares_memory(first, second)
    assert second.shape == (2, model.n_vocab)


@pytest.mark.parametrize(("n", "n_rows", "error"), [(2, 3, ValueError), (40, 9, ValueError), (503, 1, EngineFailure)])
@pytest.mark.parametrize("kind", KINDS)
def test_asking_too_much_raises_and_leaves_the_cache_alone(
    make: Make, kind: str, n: int, n_rows: int, error: type[Exception]
) -> None:
    tokens = some_tokens(11)
    model = make(kind, n_batch=24, max_rows=8)
    model.forward(tokens[:10], n_rows=0)

    with pytest.raises(error, match=str(n)):
        model.forward(some_tokens(n), n_rows=n_rows)

    assert model.n_past == 10
    assert_same(model.forward(tokens[10:], n_rows=1), all_rows(make, kind, tokens)[-1:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_token_undoes_its_whole_forward(make: Make, kind: str) -> None:
    tokens = some_tokens(11)
    model = make(kind, n_batch=24)
    model.forward(tokens[:10], n_rows=0)

    with pytest.raises(EngineFailure, match=r"invalid token.*999999"):
        model.forward([*some_tokens(60), 999_999], n_rows=1)  # in the third decode

    assert model.n_past == (10 if kind in FREE else 0)
    assert_same(model.forward(tokens[model.n_past :], n_rows=1), all_rows(make, kind, tokens)[-1:])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", FREE)
def test_after_any_rewinds_rows_equal_those_of_a_fresh_cache(make: Make, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = make(kind, n_batch=64)
    tokens = some_tokens(220 + seed, seed)
    model.forward(tokens, n_rows=0)

    for turn in range(8):
        keep = max(len(tokens) - int(rng.choice([1, 2, 17, 40, 150])), 1)
        added = some_tokens(int(rng.choice([1, 9, 60])), 100 * seed + turn)
        tokens = [*tokens[:keep], *added]
        model.rewind(keep)
        assert model.n_past == keep

        rows = model.forward(added, n_rows=len(added))

        assert_same(rows, all_rows(make, kind, tokens)[-len(added) :])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", BOUNDED)
def test_a_recurrent_state_goes_back_over_the_tokens_of_its_last_step(make: Make, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = make(kind, n_batch=64)
    tokens = some_tokens(90 + seed, seed)
    model.forward(tokens, n_rows=0)

    for turn in range(20):
        width = int(rng.integers(1, model.max_rows + 1))
        added = some_tokens(width, 100 * seed + turn)
        dropped = int(rng.integers(0, width))
        rows = model.forward(added, n_rows=width)
        assert_same(rows, all_rows(make, kind, [*tokens, *added])[-width:])

        tokens = [*tokens, *added][: len(tokens) + width - dropped]
        model.rewind(len(tokens))

        assert model.n_past == len(tokens)
    assert_same(model.forward([7], n_rows=1), all_rows(make, kind, [*tokens, 7])[-1:])
    assert model.can_rewind
    assert not model.rewinds_freely


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize(
    ("widths", "dropped"),
    [((20, 3), 3), ((20, 3), 4), ((8, 1), 1), ((70,), 8)],
    ids=["a whole step", "more than a step", "a step of one", "more than states are kept"],
)
def test_a_state_that_is_gone_is_refused_and_never_handed_out(
    make: Make, kind: str, widths: tuple[int, ...], dropped: int
) -> None:
    tokens = some_tokens(sum(widths))
    model = make(kind, n_batch=128)
    for i, width in enumerate(widths):
        model.forward(tokens[sum(widths[:i]) :][:width], n_rows=0)

    with pytest.raises(CannotRewind, match="last step"):
        model.rewind(len(tokens) - dropped)

    assert model.n_past == len(tokens)
    assert_same(model.forward([7], n_rows=1), all_rows(make, kind, [*tokens, 7])[-1:])


@pytest.mark.parametrize("kind", BOUNDED)
def test_a_recurrent_state_goes_back_once_a_step(make: Make, kind: str) -> None:
    tokens = some_tokens(40)
    model = make(kind)
    model.forward(tokens, n_rows=0)
    model.rewind(35)

    with pytest.raises(CannotRewind):
        model.rewind(34)

    assert_same(model.forward(tokens[35:], n_rows=5), all_rows(make, kind, tokens)[-5:])


@pytest.mark.parametrize("kind", NOT_REWINDING)
def test_a_state_that_cannot_go_back_says_so_and_goes_on(make: Make, kind: str) -> None:
    tokens = some_tokens(60)
    expected = all_rows(make, kind, tokens)
    model = make(kind)
    model.forward(tokens[:50], n_rows=0)

    with pytest.raises(CannotRewind, match=kind):
        model.rewind(49)
    model.rewind(50)

    assert not model.can_rewind
    assert model.n_past == 50
    assert_same(model.forward(tokens[50:], n_rows=10), expected[50:])


@pytest.mark.parametrize("kind", KINDS)
def test_rewind_to_nothing_always_works(make: Make, kind: str) -> None:
    model = make(kind)
    model.forward(some_tokens(50, seed=1), n_rows=0)

    model.rewind(0)

    assert model.n_past == 0
    assert_same(model.forward(some_tokens(9), n_rows=8), all_rows(make, kind, some_tokens(9))[1:])


@pytest.mark.parametrize("answer", [True, False])
def test_a_rollback_that_did_nothing_is_noticed(make: Make, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    model = make("attention")
    model.forward(some_tokens(9), n_rows=0)
    monkeypatch.setattr(llama_cpp, "llama_memory_seq_rm", lambda *_: answer)

    with pytest.raises(CannotRewind):
        model.rewind(8)

    assert model.n_past == 9


@pytest.mark.parametrize("answer", [True, False])
def test_a_model_whose_first_rollback_fails_cannot_rewind(
    make: Make, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    monkeypatch.setattr(llama_cpp, "llama_memory_seq_rm", lambda *_: answer)

    model = make("attention")

    assert not model.can_rewind
    assert model.n_past == 0
    assert_same(model.forward(some_tokens(9), n_rows=9), all_rows(make, "attention", some_tokens(9)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_at_any_time_during_a_long_forward_undoes_it(make: Make, kind: str) -> None:
    tokens = some_tokens(310)
    expected = all_rows(make, kind, tokens)[-1:]
    model = make(kind, n_batch=64)

    def run(stop_at: int | None) -> int:
        """Read 300 tokens behind 10; how often the engine asked whether to stop."""
        asked = 0

        def interrupt() -> bool:
            nonlocal asked
            asked += 1
            return asked == stop_at

        model.rewind(0)
        model.forward(tokens[:10], n_rows=0)
        model.interrupt = interrupt
        try:
            model.forward(tokens[10:], n_rows=1)
        finally:
            model.interrupt = None
        return asked

    total = run(None)
    assert total > 50
    for stop_at in (1, 2, total // 3, total // 2, total - 1):
        with pytest.raises(Interrupted):
            run(stop_at)

        assert model.n_past == (10 if kind in FREE else 0)
        assert_same(model.forward(tokens[model.n_past :], n_rows=1), expected)


def test_a_short_forward_is_not_even_asked_to_stop(make: Make) -> None:
    model = make("attention")
    asked = 0

    def interrupt() -> bool:
        nonlocal asked
        asked += 1
        return True

    model.interrupt = lambda: False
    model.forward(some_tokens(40), n_rows=0)
    model.rewind(0)
    model.interrupt = interrupt

    rows = model.forward(some_tokens(15), n_rows=15)

    assert_same(rows, all_rows(make, "attention", some_tokens(15)))
    assert asked == 0
