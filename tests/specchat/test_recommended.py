"""Which pair suits how much memory, and that what is here comes before what would have to be fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.catalogue import Catalogue, HubSource, Model, Recommended
from specchat.catalogue_file import load_catalogue
from specchat.recommended import BUFFERS, GIB, among_what_is_here, better_pair, memory_bytes, recommended

SHIPPED = load_catalogue(Path(__file__).parents[2] / "models.toml")
STARTER = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")


def ids(pair: tuple[Model, Model] | None) -> tuple[str, str] | None:
    return None if pair is None else (pair[0].id, pair[1].id)


def here(*names: str) -> Callable[[Model], bool]:
    return lambda model: model.id in names


def changed(model_id: str, **changes: object) -> Catalogue:
    """The shipped catalogue with one model changed."""
    models = (replace(model, **changes) if model.id == model_id else model for model in SHIPPED.models)  # type: ignore[arg-type]
    return replace(SHIPPED, models=tuple(models))


@pytest.mark.parametrize(
    ("gib", "target"),
    [
        (0, "qwen2.5-coder-1.5b"),
        (4, "qwen2.5-coder-1.5b"),
        (8, "qwen2.5-coder-1.5b"),
        (12, "qwen2.5-coder-7b"),
        (16, "qwen2.5-coder-7b"),
        (32, "qwen2.5-coder-14b"),
        (500, "qwen2.5-coder-14b"),
    ],
)
def test_more_memory_gets_a_larger_target(gib: int, target: str) -> None:
    assert ids(recommended(SHIPPED, gib * GIB)) == (target, "qwen2.5-coder-0.5b")


@given(st.integers(0, 64 * GIB), st.integers(0, 64 * GIB))
def test_more_memory_never_gets_a_smaller_target(one: int, other: int) -> None:
    less, more = sorted((one, other))

    assert recommended(SHIPPED, less)[0].file.size <= recommended(SHIPPED, more)[0].file.size


@given(st.integers(0, 64 * GIB))
def test_what_is_recommended_fits_or_is_where_everybody_starts(memory: int) -> None:
    pair = recommended(SHIPPED, memory)

    assert sum(map(memory_bytes, pair)) <= memory or ids(pair) == STARTER


@pytest.mark.parametrize(
    "changes",
    [
        {"licence": "LicenseRef-Qwen-Research"},
        {"licence": "LicenseRef-Gemma-Terms"},
        {"licence": "of which nothing is known"},
        {"sources": (), "unpinned": HubSource("owner/name", "", "x.gguf")},
    ],
)
def test_what_is_not_free_or_cannot_be_fetched_is_not_recommended(changes: dict[str, object]) -> None:
    assert ids(recommended(changed("qwen2.5-coder-7b", **changes), 16 * GIB)) == STARTER


def test_a_list_that_promises_what_does_not_fit_is_not_believed() -> None:
    eager = replace(SHIPPED, recommended=(Recommended(0, "qwen2.5-coder-32b", "qwen2.5-coder-0.5b"),))

    assert ids(recommended(eager, 8 * GIB)) == STARTER


def test_a_better_pair_is_named_only_where_there_is_room_and_it_is_not_here() -> None:
    better = ("qwen2.5-coder-7b", "qwen2.5-coder-0.5b")

    assert ids(better_pair(SHIPPED, here(), 16 * GIB)) == better
    assert ids(better_pair(SHIPPED, here(*STARTER), 16 * GIB)) == better
    assert better_pair(SHIPPED, here(*better), 16 * GIB) is None
    assert better_pair(SHIPPED, here(), 8 * GIB) is None
    assert better_pair(SHIPPED, here(), None) is None


def test_a_default_of_the_users_own_is_not_questioned() -> None:
    assert better_pair(replace(SHIPPED, default_target="qwen3-4b"), here(), 16 * GIB) is None


def test_what_is_here_is_where_it_starts_and_nothing_else_is_preferred_to_it() -> None:
    start = [
        among_what_is_here(SHIPPED, here(*names)).default_target
        for names in ((), STARTER, ("qwen2.5-coder-7b",), ("qwen2.5-coder-7b", *STARTER), ("qwen3-4b",))
    ]

    assert start == [STARTER[0], STARTER[0], "qwen2.5-coder-7b", STARTER[0], STARTER[0]]


def test_memory_counts_weights_the_cache_of_a_context_and_buffers() -> None:
    seven = SHIPPED.find("qwen2.5-coder-7b")

    assert memory_bytes(seven) == 4683073536 + 57344 * 8192 + BUFFERS
    assert memory_bytes(replace(seven, context=100)) == 4683073536 + 57344 * 100 + BUFFERS
    assert memory_bytes(replace(seven, kv_bytes_per_token=0)) == 4683073536 + 4683073536 // 5 + BUFFERS
