"""Heads for tests."""

from __future__ import annotations

import numpy as np

from speculation.accept import Rule
from speculation.context import Context
from speculation.guessers.base import KeepOn
from speculation.guessers.trained_head import TrainedHead
from speculation.heads.examples import Examples
from speculation.heads.head import MEDUSA_DEPTHS, Head, Kind
from speculation.heads.network import Matrix, fresh
from speculation.testing import AlwaysWidens
from speculation.types import Draft

_LENGTH = 12  # of a text


def untrained(kind: Kind, n_vocab: int, seed: int = 0, *, n_ids: int | None = None, width: int = 4) -> Head:
    """A head of random weights for a target whose states are its logits."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(n_vocab)[:n_ids].astype(np.int32)
    rows = np.eye(n_vocab, dtype=np.float32)[ids]
    n_in, count = (2 * n_vocab, 1) if kind is Kind.EAGLE else (n_vocab, MEDUSA_DEPTHS)
    networks = []
    for _ in range(count):
        weights = fresh(n_in, width, n_vocab, rng)
        weights["skip"] = rng.normal(size=weights["skip"].shape).astype(np.float32)
        networks.append(weights)
    embeddings = rows if kind is Kind.EAGLE else rows[:0]
    return Head(kind, tuple(networks), ids, rows, embeddings, 0.5, 1.0)


class WideHead(TrainedHead):
    """A head by whose prices nearly everything is worth it: k nodes, as many of them side by side as there can be."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return super().propose(context, k, rule, AlwaysWidens(candidates=16, behind=8))


def walks(n: int, n_vocab: int, n_hidden: int, seed: int) -> tuple[Examples, Matrix]:
    """Texts whose next state is a function of the last state and token, and the output matrix that chose the tokens."""
    rng = np.random.default_rng(seed)
    output: Matrix = rng.normal(size=(n_vocab, n_hidden)).astype(np.float32)
    turn = np.linalg.qr(rng.normal(size=(n_hidden, n_hidden)))[0]
    tokens: list[int] = []
    hidden: list[Matrix] = []
    while len(tokens) < n:
        state, token = rng.normal(size=n_hidden), int(rng.integers(n_vocab))
        for _ in range(_LENGTH):
            state = np.tanh(turn @ (state * output[token]) + 0.5 * output[token])
            tokens.append(token)
            hidden.append(state)
            token = int((output @ state).argmax())
    texts = np.arange(len(tokens), dtype=np.int32) // _LENGTH
    return Examples(np.array(tokens, dtype=np.int32), np.array(hidden, dtype=np.float16), texts), output
