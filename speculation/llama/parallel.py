"""Several texts of one model in one batch, with their hidden states: a row beside others is cheaper than alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import llama_cpp
import numpy as np

from speculation.llama.handles import Handles
from speculation.llama.log import EngineLog
from speculation.llama.weights import LlamaWeights
from speculation.types import CannotLoad, EngineFailure, Logits, Row, Tokens


class Part(NamedTuple):
    """The next tokens of a text."""

    text: int
    start: int  # how many tokens of it were read before
    tokens: Sequence[int] | Tokens


class Read(NamedTuple):
    """What the model made of a part; views that are valid until the next call."""

    hidden: Logits  # (n, n_hidden), the state after each token
    row: Row  # the logits after the last


class ParallelTexts(Handles):
    """Weights with a cache of several texts. Close it to free its memory."""

    def __init__(
        self,
        weights: LlamaWeights,
        log: EngineLog,
        *,
        n_texts: int,
        n_ctx: int,
        n_threads: int,
        n_batch: int = 128,
    ) -> None:
        """Make caches of n_ctx tokens for each of n_texts. Raises CannotLoad."""
        self.weights = weights
        self.n_texts, self.n_ctx, self.n_batch = n_texts, n_ctx, n_batch
        self.n_vocab = weights.vocabulary.n_tokens
        self.n_hidden = int(llama_cpp.llama_model_n_embd_out(weights.handle))
        self._log = log
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_ctx * n_texts
        params.n_batch = params.n_ubatch = params.n_outputs_max = params.n_outputs_max_per_seq = n_batch
        params.n_seq_max, params.kv_unified = n_texts, False  # shared cells would let each text look at all of them
        params.n_threads = params.n_threads_batch = n_threads
        params.embeddings = True
        log.listen()
        self._handle = llama_cpp.llama_init_from_model(weights.handle, params)
        if not self._handle:
            raise CannotLoad(f"no caches of {n_texts} texts for {weights.name}: {log.reason()}")
        self._batch = llama_cpp.llama_batch_init(n_batch, 0, 1)

    def read(self, parts: Sequence[Part]) -> list[Read]:
        """Read the next tokens of some texts, at most n_batch in all. Raises EngineFailure."""
        batch, n = self._batch, 0
        for part in parts:
            for i, token in enumerate(part.tokens):
                batch.token[n], batch.pos[n] = int(token), part.start + i
                batch.n_seq_id[n], batch.seq_id[n][0], batch.logits[n] = 1, part.text, 1
                n += 1
        batch.n_tokens = n
        self._log.error = ""
        code = llama_cpp.llama_decode(self._context, batch)
        if code != 0:
            raise EngineFailure(f"{self.weights.name} refused {n} tokens: {self._log.reason()} (code {code})")
        hidden, rows = (
            np.ctypeslib.as_array(get(self._context), shape=(n, width))
            for get, width in (
                (llama_cpp.llama_get_embeddings, self.n_hidden),
                (llama_cpp.llama_get_logits, self.n_vocab),
            )
        )
        found, end = [], 0
        for part in parts:
            start, end = end, end + len(part.tokens)
            found.append(Read(hidden[start:end], rows[end - 1]))
        return found

    def forget(self, text: int) -> None:
        """Make room for another text in place of this one."""
        self.keep(text, 0)

    def keep(self, text: int, n: int) -> int:
        """Forget what follows the first n tokens of a text; how many are left, which is 0 where it cannot be cut."""
        memory = llama_cpp.llama_get_memory(self._context)
        if n > 0 and llama_cpp.llama_memory_seq_rm(memory, text, n, -1):
            return n
        llama_cpp.llama_memory_seq_rm(memory, text, -1, -1)
        return 0
