"""What llama.cpp says while it loads and runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llama_cpp

from speculation.engine_log import LogLines


class EngineLog(LogLines):
    """What llama.cpp says. It would print to the screen otherwise."""

    def __init__(self, sink: Callable[[str], None] | None = None) -> None:
        super().__init__(sink)
        self._callback = llama_cpp.llama_log_callback(lambda level, text, _: self.take(level, text))

    def listen(self) -> None:
        """Begin anew with what llama.cpp says from now on, in place of whoever listened before."""
        self.clear()
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))
        _listeners.append(self)
        del _listeners[:-1]


# llama.cpp keeps one bare pointer to the callback for the whole process, so somebody has to keep the object.
_listeners: list[EngineLog] = []
