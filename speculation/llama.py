"""The only file that imports llama_cpp: GGUF files, their vocabularies and caches, by low-level functions.

The high-level `Llama` class is not used: it drops the text of long tokens, keeps a score for every token of
the context and ignores a failed rollback.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from speculation.devices import Device, gpus_of
from speculation.engine_log import LogLines, back_end_in, mapped_bytes_in
from speculation.types import (
    CannotLoad,
    CannotRewind,
    EngineFailure,
    Interrupted,
    Logits,
    SpeculationError,
    State,
    Tokens,
)
from speculation.vocabulary import VocabularyFacts, VocabularyKind

ENGINE_VERSION = f"llama-cpp-python {llama_cpp.__version__}"
CACHE_TYPES = {"f16": llama_cpp.GGML_TYPE_F16, "q8_0": llama_cpp.GGML_TYPE_Q8_0}

# Tokens that a recurrent state goes back. The engine builds a few operations for each in every layer, into a graph of
# fixed size, and ends the process where it overflows: with lfm2 from about 15 on.
ROLLBACK = 7
_LONG_FORWARD = 16  # tokens from which asking for a stop between two kernels costs next to nothing


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
    ) -> None:
        """Load a file; `progress` hears 0..1 and may return False to stop. Raises CannotLoad, Interrupted.

        `n_gpu_layers` of it are placed on a GPU where the installed engine can, all of them when -1. With
        `only_vocabulary` there are no weights: it can turn text into tokens, and no LlamaModel can be made of it.
        """
        self.path = path
        self._handle: Any = None
        _look_at_header(path)
        log.listen()
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        params.vocab_only = only_vocabulary
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


class Vocabulary:
    """Text to token ids and back, byte for byte."""

    def __init__(self, weights: LlamaWeights) -> None:
        self._weights = weights
        self._pointer = llama_cpp.llama_model_get_vocab(weights.handle)
        self._pieces: dict[int, bytes] = {}
        self.n_tokens = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self.kind = VocabularyKind(llama_cpp.llama_vocab_type(self._vocab))
        self.bos = int(llama_cpp.llama_vocab_bos(self._vocab))
        self.eos = int(llama_cpp.llama_vocab_eos(self._vocab))
        self.adds_bos = bool(llama_cpp.llama_vocab_get_add_bos(self._vocab))

    @property
    def _vocab(self) -> Any:
        return self._weights.handle and self._pointer

    @cached_property
    def ends(self) -> frozenset[int]:
        """Every token that ends a reply, by llama.cpp's own list for this file."""
        return frozenset(t for t in range(self.n_tokens) if llama_cpp.llama_vocab_is_eog(self._vocab, t))

    @cached_property
    def controls(self) -> dict[str, int]:
        """Text and id of each control token: what a template writes and a user must not."""
        ids = (t for t in range(self.n_tokens) if llama_cpp.llama_vocab_is_control(self._vocab, t))
        return {text.decode("utf-8", "replace"): t for t in ids if (text := self.text(t))}

    def text(self, token: int) -> bytes:
        """The token as it stands in the file, which for byte-level vocabularies is not its text."""
        return bytes(llama_cpp.llama_vocab_get_text(self._vocab, self._known(token)) or b"")

    def encode(self, text: str) -> Tokens:
        """Token ids of text in which control tokens have no meaning, shape (n,)."""
        data = text.encode("utf-8", "replace")
        ids = np.empty(len(data) + 8, dtype=np.int32)  # a byte or more a token, and a space put in front
        pointer = ids.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token))
        n = llama_cpp.llama_tokenize(self._vocab, data, len(data), pointer, len(ids), False, False)
        if n < 0:
            raise SpeculationError(f"cannot turn {len(data)} bytes into tokens of {self._weights.name}")
        return ids[:n].copy()

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; empty for control tokens."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(self._known(token))
        return known

    def _known(self, token: int) -> int:
        if not 0 <= token < self.n_tokens:
            raise ValueError(f"token {token}: there are {self.n_tokens}")  # the engine would abort the process
        return token

    def decode(self, tokens: Sequence[int] | Tokens) -> bytes:
        """The bytes that tokens stand for."""
        return b"".join(self.piece(int(token)) for token in tokens)

    def facts(self, name: str) -> VocabularyFacts:
        """What has to agree with another model's vocabulary."""
        adds_eos = bool(llama_cpp.llama_vocab_get_add_eos(self._vocab))
        bos, eos = self.bos if self.adds_bos else None, self.eos if adds_eos else None
        return VocabularyFacts(name, self.kind.name, self.n_tokens, bos, eos, self.text)

    def _read_piece(self, token: int) -> bytes:
        size = 32
        while True:
            buffer = ctypes.create_string_buffer(size)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if n >= 0:
                return buffer.raw[:n]
            size = -n  # the engine's way of asking for a bigger buffer


class LlamaModel:
    """Weights with a cache of one sequence: the `Model` that engine and draft model guesser run on."""

    def __init__(
        self,
        weights: LlamaWeights,
        log: EngineLog,
        *,
        n_ctx: int,
        n_threads: int,
        n_batch: int = 512,
        max_rows: int = 64,
        rollback: int = ROLLBACK,
        cache_type: str = "f16",
    ) -> None:
        """Make a cache of n_ctx tokens (at most what the model was trained for). Raises CannotLoad.

        `rollback`: how many tokens a recurrent state can go back, which takes the memory of as many states.
        """
        self.weights = weights
        self.interrupt: Callable[[], bool] | None = None  # asked during long forwards; True stops them
        self._log = log
        self._handle: Any = None
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = min(n_ctx, weights.n_ctx_train) if weights.n_ctx_train else n_ctx
        params.n_batch = params.n_ubatch = min(n_batch, params.n_ctx)
        params.n_outputs_max = params.n_outputs_max_per_seq = min(max_rows, params.n_batch)
        params.n_threads = params.n_threads_batch = n_threads
        params.type_k = params.type_v = CACHE_TYPES[cache_type]
        self._cache_type = cache_type
        # The engine needs more room in a batch than it keeps states, or it ends the process.
        params.n_rs_seq = max(min(rollback, max_rows - 1, params.n_batch - 2), 0)
        params.swa_full = True  # with a windowed cache a rollback succeeds and the cells it needs are gone
        log.listen()
        self._handle = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._handle:
            raise CannotLoad(f"no context of {params.n_ctx} tokens for {weights.name}: {log.reason()}")
        self._n_past = 0
        self.n_vocab = weights.vocabulary.n_tokens
        self.n_ctx = int(llama_cpp.llama_n_ctx(self._context))
        # 0: as far as the cache reaches, or not at all, which the probe tells apart.
        self._rollback = int(llama_cpp.llama_n_rs_seq(self._context))
        self._can_undo = 0  # tokens that a limited rollback may drop now
        self.max_rows = min(int(params.n_outputs_max), self._rollback + 1) if self._rollback else params.n_outputs_max
        self._n_batch = int(params.n_batch)
        self._batch = llama_cpp.llama_batch_init(self._n_batch, 0, 1)
        self._token = _view(self._batch.token, self._n_batch)
        self._pos = _view(self._batch.pos, self._n_batch)
        self._wanted = _view(self._batch.logits, self._n_batch)
        _view(self._batch.n_seq_id, self._n_batch)[:] = 1
        for i in range(self._n_batch):
            self._batch.seq_id[i][0] = 0
        self._abort = llama_cpp.ggml_abort_callback(lambda _: self.interrupt is not None and self.interrupt())
        try:
            self.can_rewind = self._probe_rewind()
        except SpeculationError as error:
            self.close()
            raise CannotLoad(f"cannot run {weights.path}: {error}") from error

    @property
    def n_past(self) -> int:
        return self._n_past

    @property
    def rewinds_freely(self) -> bool:
        """Whether any number of tokens can be dropped at any time, as a draft model has to."""
        return self.can_rewind and not self._rollback

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        """See `Model.forward`. Raises EngineFailure, Interrupted."""
        n, before = len(tokens), self._n_past
        if n_rows > min(n, self.max_rows):
            raise ValueError(f"{n_rows} rows asked of {n} tokens; at most {self.max_rows}")
        if before + n > self.n_ctx:
            raise EngineFailure(f"{n} more tokens do not fit: {before} of {self.n_ctx} are in use")
        ids, start = np.asarray(tokens, dtype=np.int32), 0
        try:
            while n - start > self._n_batch:  # the rows come out of the last decode, so it keeps enough tokens
                end = start + min(self._n_batch, n - start - n_rows)
                self._decode(ids[start:end], 0)
                start = end
            self._decode(ids[start:], n_rows)
        except SpeculationError:
            self._undo(before)
            raise
        if n_rows == 0:
            return np.empty((0, self.n_vocab), dtype=np.float32)
        pointer = llama_cpp.llama_get_logits(self._context)
        if not pointer:
            raise EngineFailure(f"{self.weights.name} returned no logits: it is not a model that writes text")
        return np.ctypeslib.as_array(pointer, shape=(n_rows, self.n_vocab))

    def rewind(self, n_past: int) -> None:
        """See `Model.rewind`; rewind(0) always works. The result is checked. Raises CannotRewind.

        A recurrent state goes back once a forward, over tokens of its last decode: the states before it are gone.
        """
        if not 0 <= n_past <= self._n_past:
            raise ValueError(f"rewind to {n_past}: the cache holds {self._n_past} tokens")
        memory = llama_cpp.llama_get_memory(self._context)
        if n_past == 0:
            llama_cpp.llama_memory_clear(memory, False)
        elif n_past != llama_cpp.llama_memory_seq_pos_max(memory, 0) + 1:
            if self._rollback and self._n_past - n_past > self._can_undo:  # the engine would hand out a stale state
                raise CannotRewind(f"{self.weights.name} can drop only tokens of its last step from its cache")
            removed = llama_cpp.llama_memory_seq_rm(memory, 0, n_past, -1)
            if not removed or llama_cpp.llama_memory_seq_pos_max(memory, 0) != n_past - 1:
                raise CannotRewind(f"{self.weights.name} cannot drop the last tokens of its cache")
        if n_past != self._n_past:
            self._can_undo = 0
        self._n_past = n_past

    @property
    def state_kind(self) -> str:
        """What has to be equal where a saved state is restored, beside the weights and the engine's version."""
        family = self.weights.metadata("general.architecture") or ""
        short = self.weights.metadata(f"{family}.rope.scaling.original_context_length") or ""
        long = short.isdigit() and self.n_ctx > int(short)  # such models place their tokens in another way then
        return f"{self._cache_type}, {self.weights.back_end}, goes back {self._rollback}{', long' if long else ''}"

    @property
    def state_bytes(self) -> int:
        """The size of what `save_state` gives."""
        return int(llama_cpp.llama_state_seq_get_size(self._context, 0))

    def save_state(self) -> State:
        """What the cache holds, for `restore_state` of a model with the same `state_kind`. Raises EngineFailure."""
        state = np.empty(self.state_bytes, dtype=np.uint8)
        if llama_cpp.llama_state_seq_get_data(self._context, _pointer(state), len(state), 0) != len(state):
            raise EngineFailure(f"{self.weights.name} cannot save the state of its cache")
        return state

    def restore_state(self, state: State, n_past: int) -> None:
        """Put a saved state of n_past tokens in place of the cache. Raises EngineFailure; the cache is empty then.

        The engine does not survive everything that can be forged: give it nothing but what `save_state` gave.
        """
        self.rewind(0)
        if n_past > self.n_ctx:
            raise EngineFailure(f"a state of {n_past} tokens does not fit into a context of {self.n_ctx}")
        self._log.error = ""
        read = llama_cpp.llama_state_seq_set_data(self._context, _pointer(state), len(state), 0)
        memory = llama_cpp.llama_get_memory(self._context)
        if read != len(state) or llama_cpp.llama_memory_seq_pos_max(memory, 0) != n_past - 1:
            llama_cpp.llama_memory_clear(memory, False)
            raise EngineFailure(f"{self.weights.name} cannot take up a saved state: {self._log.reason()}")
        self._n_past, self._can_undo = n_past, 0

    def _undo(self, n_past: int) -> None:
        """Go back to before a forward that failed, or to nothing where a recurrent state is lost; n_past says so."""
        try:
            self.rewind(0 if self._rollback else n_past)
        except CannotRewind:
            self.rewind(0)

    def close(self) -> None:
        """Free the cache."""
        if self._handle:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self._handle)
            self._handle = None

    @property
    def _context(self) -> Any:
        if not self._handle or not self.weights.handle:
            raise SpeculationError(f"the cache of {self.weights.name} has been freed")
        return self._handle

    def _decode(self, ids: Tokens, n_rows: int) -> None:
        n, context = len(ids), self._context  # first of all: the batch is freed with the context
        self._log.error = ""
        self._batch.n_tokens = n
        self._token[:n] = ids
        self._pos[:n] = np.arange(self._n_past, self._n_past + n)
        self._wanted[:n] = 0
        if n_rows:
            self._wanted[n - n_rows : n] = 1
        stoppable = self.interrupt is not None and n >= _LONG_FORWARD
        if stoppable:
            llama_cpp.llama_set_abort_callback(context, self._abort, ctypes.c_void_p(0))
        code = llama_cpp.llama_decode(context, self._batch)
        if stoppable:
            llama_cpp.llama_set_abort_callback(context, llama_cpp.ggml_abort_callback(), ctypes.c_void_p(0))
        if code == 2:
            raise Interrupted("reading was stopped")
        if code != 0:
            raise EngineFailure(f"{self.weights.name} refused {n} tokens: {self._log.reason()} (code {code})")
        self._n_past += n
        self._can_undo = min(n - 1, self._rollback)

    def _probe_rewind(self) -> bool:
        """Decode two tokens and take one back. Also wakes up the weights, or the first reply would wait."""
        self.forward([0, 1], n_rows=1)
        try:
            self.rewind(1)
        except CannotRewind:
            return False
        finally:
            self.rewind(0)
        return True


def _pointer(state: State) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _view(pointer: Any, n: int) -> NDArray[Any]:
    return np.ctypeslib.as_array(pointer, shape=(n,))
