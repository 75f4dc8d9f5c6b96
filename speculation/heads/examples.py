"""Texts of the target with its hidden states: what heads learn from, and are judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speculation.types import Tokens

Hidden = NDArray[np.float16]  # (n, n_features)
Positions = NDArray[np.intp]  # (m,)

_HELD_OUT = 10  # every so many-th text is not learned from


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Positions of texts one behind the other."""

    tokens: Tokens  # (n,)
    hidden: Hidden  # row i: the state after the final norm of the row that read tokens[i]
    texts: Tokens  # (n,), not falling: which text each position belongs to

    def __len__(self) -> int:
        return len(self.tokens)

    def with_ahead(self, ahead: int) -> Positions:
        """The positions behind which so many tokens of the same text follow."""
        return np.flatnonzero(self.texts[: max(0, len(self) - ahead)] == self.texts[ahead:])

    def held_out(self, positions: Positions) -> NDArray[np.bool_]:
        """Which positions, (m,), lie in texts that are not learned from."""
        held: NDArray[np.bool_] = self.texts[positions] % _HELD_OUT == _HELD_OUT - 1
        return held

    @property
    def n_texts(self) -> int:
        return len(np.unique(self.texts))

    def vocabulary(self, count: int, n_vocab: int) -> Tokens:
        """The most frequent tokens of the texts that are learned from, (count,), then those of the lowest ids.

        Most vocabularies are in the order in which their tokens were found, the frequent ones first.
        """
        learned = self.tokens[~self.held_out(np.arange(len(self)))]
        counts = np.bincount(learned, minlength=n_vocab)
        order: Tokens = np.argsort(-counts, kind="stable")[:count].astype(np.int32)
        return order
