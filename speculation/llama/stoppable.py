"""A decode that can be stopped between two kernels."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp

STOPPED = 2  # the code of a decode that was


def decode(context: Any, batch: Any, abort: Any) -> int:
    """Decode a batch and return the engine's code, 0 for well; `abort`: asked between kernels, None: nobody is."""
    if abort is None:
        return int(llama_cpp.llama_decode(context, batch))
    llama_cpp.llama_set_abort_callback(context, abort, ctypes.c_void_p(0))
    code = int(llama_cpp.llama_decode(context, batch))
    llama_cpp.llama_set_abort_callback(context, llama_cpp.ggml_abort_callback(), ctypes.c_void_p(0))
    return code
