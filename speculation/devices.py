"""The back ends of llama.cpp, the GPUs that it can run on, and their memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

_GPU_KINDS = (1, 2)  # ggml_backend_dev_type: with memory of their own, and those that share the processor's


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that the engine would put a model on."""

    name: str
    free: int  # bytes
    total: int


def gpus_of(library: Any) -> list[Device]:
    """The GPUs that an engine library can use, asked of ggml itself: llama-cpp-python does not pass these calls on."""
    try:
        at, kind, name = (getattr(library, f"ggml_backend_dev_{word}") for word in ("get", "type", "name"))
        count, memory = library.ggml_backend_dev_count, library.ggml_backend_dev_memory
    except AttributeError:  # a build that hides them
        return []
    at.restype, name.restype, count.restype = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    found = []
    for handle in (ctypes.c_void_p(at(ctypes.c_size_t(i))) for i in range(count())):
        if kind(handle) in _GPU_KINDS:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            memory(handle, ctypes.byref(free), ctypes.byref(total))
            found.append(Device(name(handle).decode("utf-8", "replace"), free.value, total.value))
    return found


def back_ends_of(library: Any) -> list[str]:
    """The back ends that are compiled into an engine library, as ggml names them: CPU, CUDA, MTL, Vulkan, ROCm."""
    try:
        count, at, name = (getattr(library, f"ggml_backend_reg_{word}") for word in ("count", "get", "name"))
    except AttributeError:  # a build that hides them
        return []
    count.restype, at.restype, name.restype = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
    handles = [ctypes.c_void_p(at(ctypes.c_size_t(i))) for i in range(count())]
    return [name(handle).decode("utf-8", "replace") for handle in handles]
