"""An EAGLE-3 head from a file of its own, run by llama.cpp beside its target.

The engine's encoder makes a feature of what three layers of the target were given, its decoder is the head itself. It
ends the process where a head and a target do not belong together, so that is looked at first (`why_unfit`).
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp
import numpy as np

from speculation.heads.eagle3 import HeadFacts, TargetFacts, why_unfit
from speculation.llama.extension import NUMBERS, layer_input_calls, next_state_calls
from speculation.llama.log import EngineLog
from speculation.llama.model import LlamaModel
from speculation.llama.weights import LlamaWeights
from speculation.trail import Trail
from speculation.types import CannotLoad, EngineFailure, Interrupted, Logits, Row, SpeculationError, Tokens

_ROWS = 64  # of a batch; the engine keeps room for the logits of each


class Eagle3Layers:
    """A head with a cache of entries, which follows what its target reads: the `FeatureHead` of the guesser."""

    def __init__(
        self, weights: LlamaWeights, facts: HeadFacts, target: LlamaModel, log: EngineLog, *, n_threads: int
    ) -> None:
        """Make a cache as long as the target's, which has to be closed after this. Raises CannotLoad.

        `facts`: what the file of the weights says.
        """
        self.weights = weights
        self._handle: Any = None
        self._target, self._facts, self._log = target, facts, log
        states, inputs = next_state_calls(), layer_input_calls()
        if states is None or inputs is None:
            raise CannotLoad(f"cannot use {weights.name}: the installed engine has no calls for EAGLE-3 heads")
        if reason := why_unfit(target_facts(target), facts):
            raise CannotLoad(reason)
        (show_states, self._states_shown), (self._show_inputs, self._inputs_shown) = states, inputs
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = target.n_ctx
        params.n_batch = params.n_ubatch = params.n_outputs_max = params.n_outputs_max_per_seq = min(
            _ROWS, target.n_ctx
        )
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = n_threads
        params.ctx_other = target.handle  # whose tables it may borrow
        log.listen()
        self._handle = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._handle:
            raise CannotLoad(f"no context for {weights.name}: {log.reason()}")
        show_states(self._handle, True, True)
        self.n_vocab, self.n_ctx = weights.vocabulary.n_tokens, int(llama_cpp.llama_n_ctx(self._handle))
        self._n_batch = int(params.n_batch)
        self._batch = llama_cpp.llama_batch_ext_init(self._handle)
        self._trail = Trail(facts.width, self._features)
        self._n_entries = 0
        self._state: Logits = np.zeros((1, facts.width), dtype=np.float32)  # of the last entry
        self.ids: Tokens = np.arange(self.n_vocab, dtype=np.int32)
        try:
            self._probe()
        except SpeculationError as error:
            self.close()
            raise CannotLoad(f"cannot run {weights.path}: {error}") from error

    @property
    def known(self) -> range:
        """See `FeatureHead.known`."""
        return self._trail.known

    @property
    def follows(self) -> bool:
        """Whether features are made of what the target reads, without which there is nothing to guess from."""
        return self._trail in self._target.trails

    @follows.setter
    def follows(self, follows: bool) -> None:
        if follows == self.follows:
            return
        if follows:
            self._trail.restart(self._target.n_past)
            self._target.trails.append(self._trail)
        else:
            self._trail.restart(0)
            self._target.trails.remove(self._trail)
        for layer in set(self._facts.layers):
            self._show_inputs(self._target.handle, layer, follows)

    def rewind(self, n_entries: int) -> None:
        """See `FeatureHead.rewind`. Raises EngineFailure."""
        memory = llama_cpp.llama_get_memory(self._context)
        if n_entries == 0:
            llama_cpp.llama_memory_clear(memory, False)
            self._state = np.zeros_like(self._state)
        elif not llama_cpp.llama_memory_seq_rm(memory, 0, n_entries, -1):
            raise EngineFailure(f"{self.weights.name} cannot drop the last entries of its cache")
        self._n_entries = n_entries

    def read(self, first: int, tokens: Tokens) -> Row:
        """See `FeatureHead.read`. Raises EngineFailure, Interrupted."""
        features = self._trail.rows(range(first, first + len(tokens)))
        last = len(tokens) - 1
        for start in range(0, last, self._n_batch):
            if self._target.interrupt is not None and self._target.interrupt():
                raise Interrupted("guessing was stopped")
            end = min(start + self._n_batch, last)
            self._decode(tokens[start:end], features[start:end], wanted=False)
        self._decode(tokens[last:], features[last:], wanted=True)
        return self._row()

    def after(self, token: int) -> Row:
        """See `FeatureHead.after`; with an empty cache, its state is nothing. Raises EngineFailure."""
        self._decode(np.array([token], dtype=np.int32), self._state, wanted=True)
        return self._row()

    def close(self) -> None:
        """Free the cache; the weights stay."""
        if self._handle:
            self.follows = False
            llama_cpp.llama_batch_ext_free(self._batch)
            llama_cpp.llama_free(self._handle)
            self._handle = None

    @property
    def _context(self) -> Any:
        if not self._handle:
            raise SpeculationError(f"the cache of {self.weights.name} has been freed")
        return self._handle

    def _features(self, n: int) -> Logits:
        """Of the n tokens that the target read last."""
        width = self._facts.target_width
        given = [self._inputs_shown(self._target.handle, layer) for layer in self._facts.layers]
        inputs = np.concatenate([np.ctypeslib.as_array(each, shape=(n, width)) for each in given], axis=1)
        features = np.empty((n, self._facts.width), dtype=np.float32)
        for start in range(0, n, self._n_batch):
            part = inputs[start : start + self._n_batch]
            llama_cpp.llama_batch_ext_clear(self._batch)
            for i, row in enumerate(part):
                at = llama_cpp.llama_batch_ext_add_embd(self._batch, 0, _embedding(row))
                self._place(at, self._n_entries + i, wanted=True)  # not used, but looked at
            self._process(llama_cpp.LLAMA_PROCESS_TYPE_ENCODE, len(part))
            features[start : start + len(part)] = self._states(len(part))
        return features

    def _decode(self, tokens: Tokens, features: Logits, *, wanted: bool) -> None:
        """Append entries. Of the last one, row and state can be had where they are wanted."""
        llama_cpp.llama_batch_ext_clear(self._batch)
        for i, token in enumerate(tokens.tolist()):
            at = llama_cpp.llama_batch_ext_add_token(self._batch, 0, token)
            if at < 0 or not llama_cpp.llama_batch_ext_set_embd_token(self._batch, at, _embedding(features[i])):
                raise EngineFailure(f"{self.weights.name} does not take token {token}")
            self._place(at, self._n_entries + i, wanted=wanted and i == len(tokens) - 1)
        self._process(llama_cpp.LLAMA_PROCESS_TYPE_DECODE, len(tokens))
        self._n_entries += len(tokens)
        if wanted:
            self._state = self._states(1).copy()

    def _place(self, at: int, position: int, *, wanted: bool) -> None:
        llama_cpp.llama_batch_ext_set_pos(self._batch, at, ctypes.byref(llama_cpp.llama_pos(position)))
        llama_cpp.llama_batch_ext_set_output_logits(self._batch, at, wanted)

    def _process(self, kind: int, n: int) -> None:
        self._log.error = ""
        code = llama_cpp.llama_process(self._context, kind, self._batch)
        if code != 0:
            raise EngineFailure(f"{self.weights.name} refused {n} entries: {self._log.reason()} (code {code})")

    def _states(self, n: int) -> Logits:
        pointer = self._states_shown(self._context)
        if not pointer:
            raise EngineFailure(f"{self.weights.name} shows no states")
        return np.ctypeslib.as_array(pointer, shape=(n, self._facts.width))

    def _row(self) -> Row:
        """A view of the engine's memory where every token can be guessed."""
        pointer = llama_cpp.llama_get_logits(self._context)
        if not pointer:
            raise EngineFailure(f"{self.weights.name} returned no logits")
        row: Row = np.ctypeslib.as_array(pointer, shape=(self.n_vocab,))
        return row if len(self.ids) == self.n_vocab else row[self.ids]

    def _probe(self) -> None:
        """Find out which tokens it guesses, and that it runs. Also wakes up the weights."""
        row = self.after(0)
        self.ids = np.flatnonzero(np.isfinite(row[: self._target.n_vocab])).astype(np.int32)
        if len(self.ids) < 2:
            raise EngineFailure("it guesses no tokens")
        self.after(int(self.ids[0]))
        self.rewind(1)
        self.rewind(0)


def target_facts(target: LlamaModel) -> TargetFacts:
    """What `why_unfit` asks of a target."""
    weights = target.weights
    return TargetFacts(
        weights.name,
        weights.metadata("general.architecture") or "",
        int(llama_cpp.llama_model_n_layer(weights.handle)),
        int(llama_cpp.llama_model_n_embd(weights.handle)),
        target.n_vocab,
    )


def _embedding(row: Row) -> Any:
    return llama_cpp.llama_embd(ctypes.cast(row.ctypes.data, NUMBERS), 1, len(row))
