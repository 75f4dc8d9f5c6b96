"""Rows of a model's own embeddings and output matrix, unpacked from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from specchat.errors import NotHere, UsageError
from speculation.heads.network import Matrix
from speculation.types import Tokens

_EMBEDDINGS, _OUTPUT = "token_embd.weight", "output.weight"


class Matrices:
    """What a head shares with its model."""

    def __init__(self, path: Path) -> None:
        """Raises NotHere without the package that unpacks all kinds of numbers, UsageError for a file without them."""
        try:
            import gguf
        except ImportError as error:
            raise NotHere("training a head needs the package gguf: pip install 'specchat[heads]'") from error
        self._unpack = gguf.quants.dequantize
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
        if _EMBEDDINGS not in tensors:
            raise UsageError(f"{path.name} holds no embeddings; a model of several files cannot be trained for")
        self._embeddings = tensors[_EMBEDDINGS]
        self._output = tensors.get(_OUTPUT)

    @property
    def are_tied(self) -> bool:
        """Whether one matrix is both."""
        return self._output is None

    def embeddings(self, ids: Tokens) -> Matrix:
        """What tokens go in as, (n, n_hidden)."""
        return self._rows(self._embeddings, ids)

    def output(self, ids: Tokens) -> Matrix:
        """What makes logits of states, (n, n_hidden)."""
        return self._rows(self._output or self._embeddings, ids)

    def _rows(self, tensor: Any, ids: Tokens) -> Matrix:
        return np.ascontiguousarray(self._unpack(tensor.data[ids], tensor.tensor_type), dtype=np.float32)
