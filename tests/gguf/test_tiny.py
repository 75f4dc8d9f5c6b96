"""The random models of tiny.py load in llama.cpp and behave as their names say."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.gguf import tiny

Writer = Callable[[Path], Path]
WRITERS = [
    tiny.write_attention,
    tiny.write_sliding_window,
    tiny.write_recurrent,
    tiny.write_hybrid,
    tiny.write_delta,
]
LONG = [token % 256 for token in range(7, 407)]  # far past the window, and past the 256 cells kept for it


def load(path: Path) -> Any:
    return llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())


@contextmanager
def loaded(path: Path, *, swa_full: bool = False) -> Iterator[tuple[Any, Any]]:
    """A model's vocabulary and a context of 512 tokens over it."""
    model = load(path)
    assert model
    params = llama_cpp.llama_context_default_params()
    params.n_ctx, params.n_ubatch, params.n_threads, params.swa_full = 512, 32, 1, swa_full
    context = llama_cpp.llama_init_from_model(model, params)
    assert context
    yield llama_cpp.llama_model_get_vocab(model), context
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)


def decode(vocabulary: Any, context: Any, tokens: Sequence[int]) -> NDArray[np.float32]:
    """The logits after the last token, from an empty cache."""
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
    held = (llama_cpp.llama_token * len(tokens))(*tokens)  # the batch points into it
    assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(held, len(tokens))) == 0
    n_vocab = llama_cpp.llama_vocab_n_tokens(vocabulary)
    return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (n_vocab,)).copy()


def tokenize(vocabulary: Any, text: str) -> list[int]:
    held, raw = (llama_cpp.llama_token * 512)(), text.encode()
    return list(held[: llama_cpp.llama_tokenize(vocabulary, raw, len(raw), held, len(held), False, True)])


def piece(vocabulary: Any, token: int) -> bytes:
    size = -llama_cpp.llama_token_to_piece(vocabulary, token, b"", 0, 0, True)
    room = ctypes.create_string_buffer(size)
    assert llama_cpp.llama_token_to_piece(vocabulary, token, room, size, 0, True) == size
    return room.raw


@pytest.mark.parametrize("write", WRITERS)
def test_logits_are_spread_out_and_depend_on_history(write: Writer, tmp_path: Path) -> None:
    with loaded(write(tmp_path / "model.gguf")) as (vocabulary, context):
        one, other = (decode(vocabulary, context, [first, 6, 7, 8]) for first in (5, 50))

    assert 1 < one.std() < 5  # so they are finite too
    assert np.exp(one.max() - np.logaddexp.reduce(one)) < 0.9
    assert np.abs(one - other).max() > 0.5


@pytest.mark.parametrize(("write", "drops"), list(zip(WRITERS, [True, True, False, False, False], strict=True)))
def test_only_attention_drops_its_last_token(write: Writer, drops: bool, tmp_path: Path) -> None:
    with loaded(write(tmp_path / "model.gguf")) as (vocabulary, context):
        decode(vocabulary, context, [5, 6])

        assert llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(context), 0, 1, -1) is drops


@pytest.mark.parametrize(("swa_full", "oldest"), [(True, 0), (False, len(LONG) - 256)])
def test_a_sliding_window_forgets_unless_all_is_kept(swa_full: bool, oldest: int, tmp_path: Path) -> None:
    path = tiny.write_sliding_window(tmp_path / "model.gguf")
    with loaded(path, swa_full=swa_full) as (vocabulary, context):
        decode(vocabulary, context, LONG)

        assert llama_cpp.llama_memory_seq_pos_min(llama_cpp.llama_get_memory(context), 0) == oldest


@pytest.mark.parametrize("text", ["Hello, world!\n\n    return", "naïve – “日本” 😀\t\x00é", "-" * 77])
@pytest.mark.parametrize(
    "edits", [{}, {"padding": 5}, {"replace_token": (300, "edited")}, {"replace_token": (371, "<end>")}]
)
def test_text_survives_tokens_and_back(text: str, edits: Any, tmp_path: Path) -> None:
    with loaded(tiny.write_attention(tmp_path / "model.gguf", **edits)) as (vocabulary, _):
        assert b"".join(piece(vocabulary, token) for token in tokenize(vocabulary, text)) == text.encode()
        assert len(tokenize(vocabulary, tiny.LONGEST_TOKEN)) == 1


def test_the_seed_decides_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    first, again, other = (tiny.write_attention(path, seed=seed).read_bytes() for seed in (1, 1, 2))

    assert first == again != other


def test_padding_leaves_the_logits_of_the_other_tokens_alone(tmp_path: Path) -> None:
    rows = []
    for padding in (0, 64):
        with loaded(tiny.write_attention(tmp_path / "d.gguf", padding=padding)) as (vocabulary, context):
            rows.append(decode(vocabulary, context, [5, 6, 7]))

    np.testing.assert_allclose(rows[1][:-64], rows[0], atol=1e-4)


def test_broken_files_are_refused_without_a_crash(tmp_path: Path) -> None:
    whole = tiny.write_attention(tmp_path / "model.gguf")
    lengths = (0, 3, 20, 4_000, 200_000, whole.stat().st_size - 1)

    assert not any(load(tiny.truncate(whole, keep_bytes)) for keep_bytes in lengths)
    assert not load(tiny.write_unknown_architecture(tmp_path / "unknown.gguf"))
