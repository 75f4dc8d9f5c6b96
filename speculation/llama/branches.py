"""Texts that share their beginning, in one cache: a sequence id for each leaf of a tree of guesses.

Sequence 0 is the text. The others exist from the decode of a tree until its winning path is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np

from speculation.types import EngineFailure, Tokens


class Branches:
    """Which sequences the tokens of a batch belong to."""

    def __init__(self, batch: Any, most: int) -> None:
        """`most`: sequences that the batch and the cache have room for, the text's own included."""
        self.most = most
        self._batch = batch
        self._written = 0  # tokens of the batch whose sequences are not just the text's
        self._owners: list[list[int]] = []  # sequences of the pending token, then of each node
        self._used = 0  # sequences beside the text's that hold something
        self._open = False  # whether nodes of a tree are in the cache

    def grow(self, memory: Any, parents: Sequence[int]) -> Tokens:
        """Let every leaf's sequence share the text and enter the tree into the batch; how deep each token lies, (n,).

        Raises EngineFailure where the tree has more leaves than there are sequences.
        """
        self._owners = owners(parents)
        self._used = len(self._owners[0]) - 1
        if self._used >= self.most:
            self._used = 0
            raise EngineFailure(f"a tree of {len(self._owners[0])} branches; there is room for {self.most}")
        self._open = True
        for sequence in range(1, self._used + 1):
            llama_cpp.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
        for i, sequences in enumerate(self._owners):
            self._batch.n_seq_id[i] = len(sequences)
            for j, sequence in enumerate(sequences):
                self._batch.seq_id[i][j] = sequence
        self._written = len(self._owners)
        depths = np.zeros(len(parents) + 1, dtype=np.int32)
        for node, parent in enumerate(parents):
            depths[node + 1] = depths[parent + 1] + 1
        return depths

    def clear_batch(self) -> None:
        """Make the batch the text's own again."""
        for i in range(self._written):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0
        self._written = 0

    def keep(self, memory: Any, path: Sequence[int], n_past: int) -> None:
        """Leave the text and the nodes of a path in the cache, of which n_past tokens stand before the path.

        Raises EngineFailure where the engine did something else.
        """
        winner = self._owners[path[-1] + 1][0] if path else 0
        if winner:
            llama_cpp.llama_memory_seq_rm(memory, 0, n_past, -1)
            llama_cpp.llama_memory_seq_cp(memory, winner, 0, n_past, -1)
        self.drop(memory, n_past + len(path))
        if llama_cpp.llama_memory_seq_pos_max(memory, 0) != n_past + len(path) - 1:
            raise EngineFailure("the engine did not keep the chosen branch of its cache")

    def drop(self, memory: Any, n_past: int) -> None:
        """Forget all nodes of a tree behind the first n_past tokens of the text; nothing where there is none."""
        if self._open:
            for sequence in range(1, self._used + 1):
                llama_cpp.llama_memory_seq_rm(memory, sequence, -1, -1)
            llama_cpp.llama_memory_seq_rm(memory, 0, n_past, -1)
        self._open, self._used = False, 0


def owners(parents: Sequence[int]) -> list[list[int]]:
    """The sequences of the pending token and of each node, where the first leaf is sequence 0, the next one 1, ..."""
    inner = set(parents)
    found: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    leaves = [node for node in range(len(parents)) if node not in inner]
    for sequence, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            found[node + 1].append(sequence)
            node = parents[node]
        found[0].append(sequence)
    return found
