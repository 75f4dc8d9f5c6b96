"""What a context of the engine and its batch have in common, whoever made them: they are freed once."""

from __future__ import annotations

from typing import Any

import llama_cpp

from speculation.llama.weights import LlamaWeights
from speculation.types import SpeculationError


class Handles:
    """A context and a batch, which belong to the class that made them and that this one is the base of."""

    weights: LlamaWeights
    _handle: Any  # None: freed, or never made
    _batch: Any

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
