"""Tiny models, loaded once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from tests.gguf import tiny
from tests.gguf.rows import Make

WRITERS: dict[str, Callable[[Path], Path]] = {
    "attention": tiny.write_attention,
    "window": tiny.write_sliding_window,
    "recurrent": tiny.write_recurrent,
    "hybrid": tiny.write_hybrid,
    "delta": tiny.write_delta,
    "near": lambda path: tiny.write_attention(path, drift=0.05),
}
LOG = EngineLog()


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LlamaWeights]]:
    folder = tmp_path_factory.mktemp("models")
    loaded = {kind: LlamaWeights(write(folder / f"{kind}.gguf"), LOG) for kind, write in WRITERS.items()}
    yield loaded
    for each in loaded.values():
        each.close()


@pytest.fixture
def make(tiny_weights: dict[str, LlamaWeights]) -> Iterator[Make]:
    """Makes models of a kind, each with an empty cache of its own."""
    made = []

    def new(
        kind: str,
        *,
        n_ctx: int = 512,
        n_batch: int = 512,
        max_rows: int = 64,
        rollback: int = 7,
        cache_type: str = "f16",
    ) -> LlamaModel:
        model = LlamaModel(
            tiny_weights[kind],
            LOG,
            n_ctx=n_ctx,
            n_threads=1,
            n_batch=n_batch,
            max_rows=max_rows,
            rollback=rollback,
            cache_type=cache_type,
        )
        made.append(model)
        return model

    yield new
    for model in made:
        model.close()
