"""The layer that some files bring behind the model's own, which guesses the token after the next one.

llama.cpp calls it nextn. Some of its calls are none of the stable interface: where the installed engine lacks one,
there is no such layer.
"""

from __future__ import annotations

from typing import Any

import llama_cpp
import numpy as np

from speculation.llama.extension import NUMBERS, next_state_calls
from speculation.llama.log import EngineLog
from speculation.llama.model import CACHE_TYPES, LONG_FORWARD, LlamaModel
from speculation.llama.stoppable import STOPPED, decode
from speculation.llama.weights import LlamaWeights
from speculation.next_layers import tensors_of_next_layer
from speculation.trail import Trail
from speculation.types import CannotLoad, EngineFailure, Interrupted, Logits, Row, SpeculationError, Tokens


class MultiTokenLayers:
    """That layer, with a cache of the same text: the `NextLayers` of the guesser."""

    def __init__(self, target: LlamaModel, log: EngineLog, *, n_threads: int, cache_type: str = "f16") -> None:
        """Make a cache as long as the target's. Raises CannotLoad, whose text says why there is no such guesser."""
        self._handle: Any = None
        self._target, self._log = target, log
        weights = target.weights
        if not _is_runnable(weights):
            raise CannotLoad("its file brings none that the engine can run")
        calls = next_state_calls()
        if calls is None:
            raise CannotLoad("the installed engine has no calls for them")
        self._show, self._shown = calls
        self.n_hidden = target.n_hidden
        params = llama_cpp.llama_context_default_params()
        params.ctx_type = llama_cpp.LLAMA_CONTEXT_TYPE_MTP
        params.n_ctx = target.n_ctx
        params.n_batch = params.n_ubatch = llama_cpp.llama_n_batch(target.handle)
        params.n_outputs_max = params.n_outputs_max_per_seq = params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = n_threads
        params.type_k = params.type_v = CACHE_TYPES[cache_type]
        params.swa_full = True
        log.listen()
        self._handle = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._handle:
            raise CannotLoad(f"the engine makes no context for them: {log.reason()}")
        self.n_vocab, self.n_ctx = target.n_vocab, target.n_ctx
        self.trail = Trail(self.n_hidden, self._states_of_target)
        self._n_batch = int(llama_cpp.llama_n_batch(self._handle))
        self._states = np.zeros((self._n_batch, self.n_hidden), dtype=np.float32)
        self._batch = llama_cpp.llama_batch_init(self._n_batch, 0, 1)
        self._batch.embd = self._states.ctypes.data_as(NUMBERS)
        for i in range(self._n_batch):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0
        self._show(self._handle, True, True)
        self._abort = llama_cpp.ggml_abort_callback(lambda _: target.interrupt is not None and target.interrupt())
        try:
            self._probe()
        except SpeculationError as error:
            self.close()
            raise CannotLoad(f"they do not run: {error}") from error

    @property
    def follows(self) -> bool:
        """Whether the states of what the target reads are kept, without which there is nothing to guess from."""
        return self.trail in self._target.trails

    @follows.setter
    def follows(self, follows: bool) -> None:
        if follows == self.follows:
            return
        if follows:
            self.trail.restart(self._target.n_past)
            self._target.trails.append(self.trail)
        else:
            self.trail.restart(0)
            self._target.trails.remove(self.trail)
        self._show(self._target.handle, follows, False)

    def rewind(self, n_past: int) -> None:
        """See `NextLayers.rewind`. Raises EngineFailure."""
        memory = llama_cpp.llama_get_memory(self._context)
        if n_past == 0:
            llama_cpp.llama_memory_clear(memory, False)
        elif not llama_cpp.llama_memory_seq_rm(memory, 0, n_past, -1):
            raise EngineFailure("the layers that guess cannot drop the last tokens of their cache")

    def read(self, at: int, tokens: Tokens, states: Logits) -> None:
        """See `NextLayers.read`. Raises EngineFailure, Interrupted."""
        for start in range(0, len(tokens), self._n_batch):
            part = slice(start, start + self._n_batch)
            self._decode(at + start, tokens[part], states[part], wanted=False)

    def guess(self, at: int, token: int, state: Row) -> tuple[Row, Row]:
        """See `NextLayers.guess`. Raises EngineFailure, Interrupted."""
        self._decode(at, np.array([token], dtype=np.int32), state[np.newaxis], wanted=True)
        logits, shown = llama_cpp.llama_get_logits(self._context), self._shown(self._context)
        if not logits or not shown:
            raise EngineFailure("the layers that guess returned nothing")
        row: Row = np.ctypeslib.as_array(logits, shape=(self.n_vocab,))
        own: Row = np.ctypeslib.as_array(shown, shape=(self.n_hidden,))
        return row, own.copy()

    def close(self) -> None:
        """Free the cache."""
        if self._handle:
            if self.follows:
                self._target.trails.remove(self.trail)
            self._batch.embd = NUMBERS()  # which is numpy's to free
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self._handle)
            self._handle = None

    @property
    def _context(self) -> Any:
        if not self._handle:
            raise SpeculationError("the cache of the layers that guess has been freed")
        return self._handle

    def _states_of_target(self, n: int) -> Logits:
        pointer = self._shown(self._target.handle)
        if not pointer:
            raise EngineFailure(f"{self._target.weights.name} shows no states for the layers that guess")
        return np.ctypeslib.as_array(pointer, shape=(n, self.n_hidden))

    def _decode(self, at: int, tokens: Tokens, states: Logits, *, wanted: bool) -> None:
        n, context = len(tokens), self._context
        self._log.error = ""
        self._states[:n] = states
        self._batch.n_tokens = n
        for i in range(n):
            self._batch.token[i] = int(tokens[i])
            self._batch.pos[i] = at + i
            self._batch.logits[i] = wanted
        stoppable = n >= LONG_FORWARD
        code = decode(context, self._batch, self._abort if stoppable else None)
        if code == STOPPED:
            raise Interrupted("guessing was stopped")
        if code != 0:
            raise EngineFailure(f"the layers that guess refused {n} tokens: {self._log.reason()} (code {code})")

    def _probe(self) -> None:
        """Read a token, guess from another and take them back. Also wakes up the weights."""
        nothing = np.zeros((1, self.n_hidden), dtype=np.float32)
        self.read(0, np.zeros(1, dtype=np.int32), nothing)
        self.guess(1, 1, nothing[0])
        self.rewind(1)
        self.rewind(0)


def _is_runnable(weights: LlamaWeights) -> bool:
    """Whether the layer was loaded, and belongs to a model whose conditions are known."""
    if not weights.has_next_layer or not hasattr(llama_cpp, "llama_model_n_layer_nextn"):
        return False
    n_next = int(llama_cpp.llama_model_n_layer_nextn(weights.handle))
    is_as_wide = llama_cpp.llama_model_n_embd(weights.handle) == llama_cpp.llama_model_n_embd_out(weights.handle)
    return is_as_wide and tensors_of_next_layer(weights.metadata("general.architecture") or "", 0, n_next) is not None
