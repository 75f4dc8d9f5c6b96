"""GGUF files: opened, looked at, closed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp

from speculation.devices import Device, back_ends_of, gpus_of
from speculation.engine_log import back_end_in, mapped_bytes_in
from speculation.llama.log import EngineLog
from speculation.llama.vocabulary import Vocabulary
from speculation.types import CannotLoad, Interrupted, SpeculationError
from speculation.vocabulary import VocabularyKind


class LlamaWeights:
    """A loaded GGUF file: weights and vocabulary, without a cache. Close it to free its memory."""

    def __init__(
        self,
        path: Path,
        log: EngineLog,
        progress: Callable[[float], bool] | None = None,
        *,
        n_gpu_layers: int = -1,
        only_vocabulary: bool = False,
        with_next_layer: bool = False,
    ) -> None:
        """Load a file; `progress` hears 0..1 and may return False to stop. Raises CannotLoad, Interrupted.

        `n_gpu_layers` of it are placed on a GPU where the installed engine can, all of them when -1. With
        `only_vocabulary` there are no weights: it can turn text into tokens, and no LlamaModel can be made of it.
        `with_next_layer` also loads the layer that `MultiTokenLayers` needs, which the file must have.
        """
        self.path = path
        self._handle: Any = None
        _look_at_header(path)
        log.listen()
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        params.vocab_only = only_vocabulary
        self.has_next_layer = with_next_layer and hasattr(params, "load_mtp")
        params.load_mtp = self.has_next_layer
        no_devices = (ctypes.c_void_p * 1)(None)
        if n_gpu_layers == 0:  # or buffers for large batches are kept there all the same
            params.devices = ctypes.addressof(no_devices)
        stopped: list[BaseException] = []

        def report(done: float, _: Any) -> bool:
            try:
                if progress is not None and not progress(done):
                    raise Interrupted(f"loading {path.name} was stopped")
            except BaseException as error:  # also Ctrl-C; ctypes would print it and forget it
                stopped.append(error)
            return not stopped

        params.progress_callback = llama_cpp.llama_progress_callback(report)
        self._handle = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if stopped:
            self.close()
            raise stopped[0]
        if not self._handle:
            raise CannotLoad(f"cannot load {path}: {log.reason()}")
        self.back_end = back_end_in(log.lines)
        self.mapped_bytes = mapped_bytes_in(log.lines)
        self.vocabulary = Vocabulary(self)
        lacks = "vocabulary" if self.vocabulary.kind is VocabularyKind.NONE else ""
        is_model = self.metadata("general.type") not in ("adapter", "mmproj")
        if not is_model or not llama_cpp.llama_model_has_decoder(self._handle):
            lacks = "model that writes text"
        if lacks:
            self.close()
            raise CannotLoad(f"cannot chat with {path}: it holds no {lacks}")

    @property
    def handle(self) -> Any:
        """The llama_model pointer. Raises SpeculationError once closed."""
        if not self._handle:
            raise SpeculationError(f"{self.path.name} has been unloaded")
        return self._handle

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def n_ctx_train(self) -> int:
        return int(llama_cpp.llama_model_n_ctx_train(self.handle))

    @property
    def size_bytes(self) -> int:
        return int(llama_cpp.llama_model_size(self.handle))

    @property
    def chat_template(self) -> str | None:
        """The jinja source in the file; None when it brings none."""
        source = llama_cpp.llama_model_chat_template(self.handle, None)
        return source.decode("utf-8", "replace") if source else None

    def metadata(self, key: str) -> str | None:
        """One value of the file's header as text; None when the key is missing."""
        buffer = ctypes.create_string_buffer(4096)
        size = llama_cpp.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if size >= 0 else None

    def close(self) -> None:
        """Free the weights. Close their LlamaModels first."""
        if self._handle:
            llama_cpp.llama_model_free(self._handle)
            self._handle = None


def _look_at_header(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise CannotLoad(f"cannot load {path}: this is a {'directory' if path.is_dir() else 'device or a pipe'}")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise CannotLoad(f"cannot read {path}: {error.strerror or error}") from error
    if magic != b"GGUF":
        raise CannotLoad(f"cannot load {path}: this is not a GGUF file (it begins with {magic!r})")


def gpus() -> list[Device]:
    """The GPUs that the installed engine can use."""
    llama_cpp.llama_backend_init()
    return gpus_of(llama_cpp.llama_cpp._lib)


def back_ends() -> list[str]:
    """The back ends that are compiled into the installed engine, as ggml names them."""
    llama_cpp.llama_backend_init()
    return back_ends_of(llama_cpp.llama_cpp._lib)


def features() -> str:
    """What the installed engine says of the kernels that it has, in its own form: "CPU : AVX2 = 1 | FMA = 1 | "."""
    return (llama_cpp.llama_print_system_info() or b"").decode("utf-8", "replace")
