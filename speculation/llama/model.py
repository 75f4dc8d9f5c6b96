"""Weights with a cache: rows of logits out of it, tokens and branches taken back from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from speculation.llama import states
from speculation.llama.branches import Branches
from speculation.llama.handles import Handles
from speculation.llama.log import EngineLog
from speculation.llama.stoppable import STOPPED, decode
from speculation.llama.weights import LlamaWeights
from speculation.trail import Trail
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

CACHE_TYPES = {"f16": llama_cpp.GGML_TYPE_F16, "q8_0": llama_cpp.GGML_TYPE_Q8_0}

# Tokens that a recurrent state goes back. The engine builds a few operations for each in every layer, into a graph of
# fixed size, and ends the process where it overflows: with lfm2 from about 15 on.
ROLLBACK = 7
LONG_FORWARD = 16  # tokens from which asking for a stop between two kernels costs next to nothing
_MOST_BRANCHES = 255  # sequences; the engine allows 256


class LlamaModel(Handles):
    """Weights with a cache of one text: the `TreeModel` that engine and draft model guesser run on."""

    def __init__(
        self,
        weights: LlamaWeights,
        log: EngineLog,
        *,
        n_ctx: int,
        n_threads: int,
        n_batch: int = 512,
        max_rows: int = 128,
        rollback: int = ROLLBACK,
        cache_type: str = "f16",
    ) -> None:
        """Make a cache of n_ctx tokens (at most what the model was trained for). Raises CannotLoad.

        `rollback`: how many tokens a recurrent state can go back, which takes the memory of as many states.
        """
        self.weights = weights
        self.interrupt: Callable[[], bool] | None = None  # asked during long forwards; True stops them
        self.keeps_hidden = False  # see `ShowsHidden`
        self.trails: list[Trail] = []  # that follow the cache
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
        n_branches = min(_MOST_BRANCHES, max(1, int(params.n_outputs_max) - 1)) if _may_branch(weights) else 1
        params.n_seq_max, params.kv_unified = n_branches, n_branches > 1
        params.swa_full = True  # with a windowed cache a rollback succeeds and the cells it needs are gone
        log.listen()
        self._handle = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._handle:
            raise CannotLoad(f"no context of {params.n_ctx} tokens for {weights.name}: {log.reason()}")
        self._n_past = 0
        self._hidden = 0  # rows of the last decode whose states can be had
        self.n_hidden = int(llama_cpp.llama_model_n_embd_out(weights.handle))
        self.n_vocab = weights.vocabulary.n_tokens
        self.n_ctx = int(llama_cpp.llama_n_ctx(self._context))
        # 0: as far as the cache reaches, or not at all, which the probe tells apart.
        self._rollback = int(llama_cpp.llama_n_rs_seq(self._context))
        self._can_undo = 0  # tokens that a limited rollback may drop now
        self.max_rows = min(int(params.n_outputs_max), self._rollback + 1) if self._rollback else params.n_outputs_max
        self._n_batch = int(params.n_batch)
        self._batch = llama_cpp.llama_batch_init(self._n_batch, 0, n_branches)
        self._token = _view(self._batch.token, self._n_batch)
        self._pos = _view(self._batch.pos, self._n_batch)
        self._wanted = _view(self._batch.logits, self._n_batch)
        _view(self._batch.n_seq_id, self._n_batch)[:] = 1
        for i in range(self._n_batch):
            self._batch.seq_id[i][0] = 0
        self._branches = Branches(self._batch, n_branches)
        self._abort = llama_cpp.ggml_abort_callback(lambda _: self.interrupt is not None and self.interrupt())
        try:
            self.can_rewind = self._probe_rewind()
        except SpeculationError as error:
            self.close()
            raise CannotLoad(f"cannot run {weights.path}: {error}") from error

    @property
    def handle(self) -> Any:
        """The llama_context pointer. Raises SpeculationError once closed."""
        return self._context

    @property
    def n_past(self) -> int:
        return self._n_past

    @property
    def rewinds_freely(self) -> bool:
        """Whether any number of tokens can be dropped at any time, as a draft model has to."""
        return self.can_rewind and not self._rollback

    @property
    def can_tree(self) -> bool:
        """See `TreeModel.can_tree`: not where a state is one for all tokens, or a layer sees only the last of them."""
        return self.rewinds_freely and self._branches.most > 1

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        """See `Model.forward`. Raises EngineFailure, Interrupted."""
        self._branches.drop(self._memory, self._n_past)
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
        return self._rows(n_rows)

    def forward_tree(self, pending: int, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """See `TreeModel.forward_tree`. Raises EngineFailure, Interrupted."""
        self._branches.drop(self._memory, self._n_past)
        n, before = len(tokens) + 1, self._n_past
        if not self.can_tree or n > min(self.max_rows, self._n_batch):
            raise ValueError(f"a tree of {n} tokens; at most {self.max_rows if self.can_tree else 0}")
        if before + n > self.n_ctx:
            raise EngineFailure(f"{n} more tokens do not fit: {before} of {self.n_ctx} are in use")
        try:
            depths = self._branches.grow(self._memory, parents)
            self._decode(np.array([pending, *tokens], dtype=np.int32), n, depths)
        except SpeculationError:
            self._branches.drop(self._memory, self._n_past)
            self._undo(before)
            raise
        finally:
            self._branches.clear_batch()
        self._n_past = before + 1
        return self._rows(n)

    def hidden_rows(self) -> Logits:
        """See `ShowsHidden.hidden_rows`."""
        pointer = llama_cpp.llama_get_embeddings(self._context) if self._hidden else None
        if not pointer:
            return np.empty((0, self.n_hidden), dtype=np.float32)
        return np.ctypeslib.as_array(pointer, shape=(self._hidden, self.n_hidden))

    def keep(self, path: Sequence[int]) -> None:
        """See `TreeModel.keep`."""
        self._branches.keep(self._memory, path, self._n_past)
        self._n_past += len(path)
        for trail in self.trails:
            trail.keep(path)

    def rewind(self, n_past: int) -> None:
        """See `Model.rewind`; rewind(0) always works. The result is checked. Raises CannotRewind.

        A recurrent state goes back once a forward, over tokens of its last decode: the states before it are gone.
        """
        if not 0 <= n_past <= self._n_past:
            raise ValueError(f"rewind to {n_past}: the cache holds {self._n_past} tokens")
        memory = self._memory
        self._branches.drop(memory, self._n_past)
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
        for trail in self.trails:
            trail.cut(n_past)

    @property
    def state_kind(self) -> str:
        """What has to be equal where a saved state is restored, beside the weights and the engine's version."""
        return states.kind(self.weights, self.n_ctx, self._cache_type, self._rollback)

    @property
    def state_bytes(self) -> int:
        """The size of what `save_state` gives."""
        return states.size_bytes(self._context)

    def save_state(self) -> State:
        """What the cache holds, for `restore_state` of a model with the same `state_kind`. Raises EngineFailure."""
        return states.saved(self._context, self.weights.name)

    def restore_state(self, state: State, n_past: int) -> None:
        """Put a saved state of n_past tokens in place of the cache. Raises EngineFailure; the cache is empty then."""
        self.rewind(0)
        if n_past > self.n_ctx:
            raise EngineFailure(f"a state of {n_past} tokens does not fit into a context of {self.n_ctx}")
        states.restore(self._context, self._log, self.weights.name, state, n_past)
        self._n_past, self._can_undo = n_past, 0
        for trail in self.trails:
            trail.restart(n_past)

    def _undo(self, n_past: int) -> None:
        """Go back to before a forward that failed, or to nothing where a recurrent state is lost; n_past says so."""
        try:
            self.rewind(0 if self._rollback else n_past)
        except CannotRewind:
            self.rewind(0)

    @property
    def _memory(self) -> Any:
        return llama_cpp.llama_get_memory(self._context)

    def _rows(self, n_rows: int) -> Logits:
        if n_rows == 0:
            return np.empty((0, self.n_vocab), dtype=np.float32)
        pointer = llama_cpp.llama_get_logits(self._context)
        if not pointer:
            raise EngineFailure(f"{self.weights.name} returned no logits: it is not a model that writes text")
        return np.ctypeslib.as_array(pointer, shape=(n_rows, self.n_vocab))

    def _decode(self, ids: Tokens, n_rows: int, depths: Tokens | None = None) -> None:
        """Decode tokens one behind the other, or each so many positions behind the cache."""
        n, context = len(ids), self._context  # first of all: the batch is freed with the context
        self._log.error = ""
        self._batch.n_tokens = n
        self._token[:n] = ids
        self._pos[:n] = self._n_past + (np.arange(n) if depths is None else depths)
        # The engine makes every token an output then, which reading a prompt must not pay for.
        self._hidden = n if self.keeps_hidden and n_rows == n else 0
        llama_cpp.llama_set_embeddings(context, self._hidden > 0)
        self._wanted[:n] = 0
        if n_rows:
            self._wanted[n - n_rows : n] = 1
        stoppable = self.interrupt is not None and n >= LONG_FORWARD
        code = decode(context, self._batch, self._abort if stoppable else None)
        if code == STOPPED:
            raise Interrupted("reading was stopped")
        if code != 0:
            raise EngineFailure(f"{self.weights.name} refused {n} tokens: {self._log.reason()} (code {code})")
        for trail in self.trails:
            (trail.decoded if depths is None else trail.decoded_tree)(self._n_past, n)
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


def _may_branch(weights: LlamaWeights) -> bool:
    """Whether the engine keeps a key and a value for every token in every layer, so that texts can share them."""
    model = weights.handle
    folds = llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model)
    return not folds and llama_cpp.llama_model_n_swa(model) == 0


def _view(pointer: Any, n: int) -> NDArray[Any]:
    return np.ctypeslib.as_array(pointer, shape=(n,))
