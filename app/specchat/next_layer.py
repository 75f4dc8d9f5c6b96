"""The layer for the token after the next one that some model files bring: loaded where it can run, else left out."""

from __future__ import annotations

from specchat.headers import Header, HeaderError, brings_next_layer
from speculation.llama import EngineLog, LlamaModel, MultiTokenLayers
from speculation.types import CannotLoad


def load_next_layer(
    target: LlamaModel, log: EngineLog, n_threads: int, cache_type: str
) -> tuple[MultiTokenLayers | None, str]:
    """That layer of a target, ready to guess; or None, and why."""
    try:
        return MultiTokenLayers(target, log, n_threads=n_threads, cache_type=cache_type), ""
    except CannotLoad as error:
        return None, str(error)


def brings(header: Header | None) -> bool:
    """Whether a file has such a layer that can run."""
    try:
        return header is not None and brings_next_layer(header)
    except HeaderError:  # of another part
        return False
