"""What a cache holds, as bytes, and back into a cache."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp
import numpy as np

from speculation.llama.log import EngineLog
from speculation.llama.weights import LlamaWeights
from speculation.types import EngineFailure, State


def kind(weights: LlamaWeights, n_ctx: int, cache_type: str, rollback: int) -> str:
    """What has to be equal where a saved state is restored, beside the weights and the engine's version."""
    family = weights.metadata("general.architecture") or ""
    short = weights.metadata(f"{family}.rope.scaling.original_context_length") or ""
    long = short.isdigit() and n_ctx > int(short)  # such models place their tokens in another way then
    return f"{cache_type}, {weights.back_end}, goes back {rollback}{', long' if long else ''}"


def size_bytes(context: Any) -> int:
    """The size of what `saved` gives."""
    return int(llama_cpp.llama_state_seq_get_size(context, 0))


def saved(context: Any, name: str) -> State:
    """What the cache of a model of this name holds. Raises EngineFailure."""
    state = np.empty(size_bytes(context), dtype=np.uint8)
    if llama_cpp.llama_state_seq_get_data(context, _pointer(state), len(state), 0) != len(state):
        raise EngineFailure(f"{name} cannot save the state of its cache")
    return state


def restore(context: Any, log: EngineLog, name: str, state: State, n_past: int) -> None:
    """Put a saved state of n_past tokens into an empty cache. Raises EngineFailure; the cache is empty then.

    The engine does not survive everything that can be forged: give it nothing but what `saved` gave.
    """
    log.error = ""
    read = llama_cpp.llama_state_seq_set_data(context, _pointer(state), len(state), 0)
    memory = llama_cpp.llama_get_memory(context)
    if read != len(state) or llama_cpp.llama_memory_seq_pos_max(memory, 0) != n_past - 1:
        llama_cpp.llama_memory_clear(memory, False)
        raise EngineFailure(f"{name} cannot take up a saved state: {log.reason()}")


def _pointer(state: State) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
