"""What suits the memory of a machine: the pair to suggest, and what a model takes. No disk, no network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from specchat.catalogue import Catalogue, Model
from specchat.fit import CONTEXT

BUFFERS = 400_000_000  # bytes for the arithmetic of a pass
GIB = 1 << 30


def memory_bytes(model: Model) -> int:
    """About what a loaded model takes: its weights, the cache of a context, and room for the arithmetic."""
    cache = model.kv_bytes_per_token * min(CONTEXT, model.context)
    return model.file.size + (cache or model.file.size // 5) + BUFFERS


def recommended(catalogue: Catalogue, memory: int) -> tuple[Model, Model]:
    """The best pair for a machine with so many bytes of memory; the one that newcomers start with if nothing fits.

    It can be fetched, and nobody has to ask whether he may use it.
    """
    for entry in catalogue.recommended:
        pair = catalogue.find(entry.target), catalogue.find(entry.draft)
        fits = entry.memory_gib * GIB <= memory and sum(map(memory_bytes, pair)) <= memory
        if fits and all(_is_free(catalogue, model) and not model.why_not_fetched for model in pair):
            return pair
    return catalogue.find(catalogue.default_target), catalogue.find(catalogue.default_draft)


def better_pair(
    catalogue: Catalogue, is_here: Callable[[Model], bool], memory: int | None
) -> tuple[Model, Model] | None:
    """A pair that suits this memory better than the one the catalogue starts with, and is not here yet."""
    if memory is None:
        return None
    target, draft = recommended(catalogue, memory)
    better = [entry.target for entry in catalogue.recommended]
    start = catalogue.default_target  # what the user wrote into a models.toml of his own is not questioned
    if start not in better or target.id not in better[: better.index(start)] or is_here(target):
        return None
    return target, draft


def among_what_is_here(catalogue: Catalogue, is_here: Callable[[Model], bool]) -> Catalogue:
    """The catalogue, beginning with a recommended pair that is here where the default one is not."""
    if is_here(catalogue.find(catalogue.default_target)):
        return catalogue
    for entry in catalogue.recommended:
        if is_here(catalogue.find(entry.target)):
            return replace(catalogue, default_target=entry.target, default_draft=entry.draft)
    return catalogue


def _is_free(catalogue: Catalogue, model: Model) -> bool:
    licence = catalogue.licence(model)
    return licence is not None and licence.terms == "open"
