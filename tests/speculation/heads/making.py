"""Heads for tests."""

from __future__ import annotations

import numpy as np

from speculation.heads.examples import Examples
from speculation.heads.head import MEDUSA_DEPTHS, Head, Kind
from speculation.heads.network import fresh


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


def chain_of_states(
    n: int, n_vocab: int, n_hidden: int, seed: int
) -> tuple[Examples, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    """Texts whose next token and state are a function of the last state and token, and the output matrix."""
    rng = np.random.default_rng(seed)
    output = rng.normal(size=(n_vocab, n_hidden)).astype(np.float32)
    turn = np.linalg.qr(rng.normal(size=(n_hidden, n_hidden)))[0]
    tokens, hidden, texts = [], [], []
    while len(tokens) < n:
        state = rng.normal(size=n_hidden)
        for _ in range(12):
            token = (
                int(rng.integers(n_vocab))
                if not tokens or texts[-1] != len(texts) // 12
                else int((output @ state).argmax())
            )
            state = np.tanh(turn @ state) * 2 + output[token]
            tokens.append(token)
            hidden.append(state)
            texts.append(len(tokens) // 12)
    examples = Examples(
        np.array(tokens, dtype=np.int32), np.array(hidden, dtype=np.float16), np.array(texts, dtype=np.int32)
    )
    return examples, output
