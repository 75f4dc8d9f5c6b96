"""Heads that guess from the target's hidden state: Medusa's (Cai et al. 2024) and EAGLE's (Li et al. 2024).

Both give features, which the target's own output matrix turns into logits; of that only the rows of the most frequent
tokens, for reading all of it would cost as much as a small model. EAGLE's head takes the token behind each feature and
goes on from its own features; it needs no attention, because the first feature has attended to the whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from speculation.heads.network import Matrix, Weights, forward, product
from speculation.types import Logits, Row, Tokens


class Kind(StrEnum):
    """How a head guesses."""

    EAGLE = "eagle"  # feature and next token -> next feature, again and again
    MEDUSA = "medusa"  # feature -> one feature for each of the next positions


MEDUSA_DEPTHS = 3  # positions ahead that Medusa's heads guess
# Of EAGLE's head: its matrices are read once for all. Eight tokens at once took 2.0 times as long as one, sixteen 2.7
# times, where the head has 12 MB (two cores, AVX-512).
_BESIDE = 0.15


@dataclass(frozen=True, eq=False)
class Head:
    """A head and what it shares with its target. A token that `ids` lacks is never guessed."""

    kind: Kind
    networks: tuple[Weights, ...]  # one; of Medusa's one for each position ahead
    ids: Tokens  # (r,), distinct
    output: Matrix  # (r, n_features): the target's own rows of these tokens
    embeddings: Matrix  # (r, n_features): likewise; of Medusa's (0, n_features)
    feature_scale: float  # what makes features and
    embedding_scale: float  # embeddings vary by about one
    accuracy: tuple[float, ...] = ()  # on text that it has not learned from, by how many tokens ahead

    @property
    def n_features(self) -> int:
        return int(self.output.shape[1])

    @cached_property
    def places(self) -> dict[int, int]:
        """Token id -> its place in `ids`."""
        return {int(token): place for place, token in enumerate(self.ids)}

    def places_of(self, tokens: Tokens) -> Tokens:
        """The place of each token in `ids`, -1 for none; (n,)."""
        found = np.full(max(int(tokens.max(initial=0)), int(self.ids.max())) + 1, -1, dtype=np.int32)
        found[self.ids] = np.arange(len(self.ids))
        return found[tokens]

    @property
    def beside(self) -> float:
        """What each token after the first adds to the time of drafting several at once, as a share of the first's."""
        return 0.0 if self.kind is Kind.MEDUSA else _BESIDE

    @property
    def bytes_read(self) -> int:
        """Of float32, for each token that is drafted."""
        return self.output.nbytes + sum(matrix.nbytes for matrix in self.networks[0].values())

    def inputs(self, features: Matrix, places: Tokens) -> Matrix:
        """What goes into a network: features (n, d), and behind them the tokens at these places, -1 for none."""
        scaled = features * np.float32(self.feature_scale)
        if self.kind is Kind.MEDUSA:
            return scaled
        behind = self.embeddings[places] * np.float32(self.embedding_scale)
        behind[places < 0] = 0.0
        return np.concatenate([scaled, behind], axis=1)


class Rollout:
    """A head at work behind one feature of the target."""

    def __init__(self, head: Head, feature: Row) -> None:
        self._head = head
        self._features = feature.astype(np.float32)[None, :]  # EAGLE's: of the rows of the last call
        self._depth = 0

    def behind(self, at: Sequence[int], tokens: Sequence[int]) -> Logits | None:
        """Logits for `head.ids` behind some tokens, each of which follows a row of the last call; (n, r).

        The pending token comes first. Medusa's are the same whatever the tokens are, (1, r). None where the head ends.
        """
        head = self._head
        if head.kind is Kind.MEDUSA:
            if self._depth == len(head.networks):
                return None
            features, _ = forward(head.networks[self._depth], head.inputs(self._features, np.empty(0, np.int32)))
            self._depth += 1
        else:
            places = np.array([head.places.get(token, -1) for token in tokens], dtype=np.int32)
            features, _ = forward(head.networks[0], head.inputs(self._features[list(at)], places))
            self._features = features
        rows: Logits = product(features, head.output.T)
        return rows
