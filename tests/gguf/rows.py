"""What the tests of caches compare: tokens, and the rows that a fresh cache gives for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from speculation.llama import LlamaModel
from speculation.types import Logits
from tests.gguf import tiny

FREE = ["attention", "window"]  # that drop any number of tokens at any time
BOUNDED = ["hybrid", "delta"]  # that drop those of their last step, once
REWINDING, NOT_REWINDING = FREE + BOUNDED, ["recurrent"]
KINDS = REWINDING + NOT_REWINDING
NOISE = 0.08

Make = Callable[..., LlamaModel]


def some_tokens(n: int, seed: int = 0) -> list[int]:
    """Tokens that no control token is among."""
    rng = np.random.default_rng(seed)
    return [int(token) for token in rng.integers(0, tiny.VOCABULARY.bos, size=n)]


def all_rows(make: Make, kind: str, tokens: Sequence[int]) -> Logits:
    """The row after every token, from a fresh cache that reads them at once."""
    return make(kind, max_rows=512, rollback=0).forward(tokens, n_rows=len(tokens))


def assert_same(rows: Logits, expected: Logits) -> None:
    """Equal up to the noise of 16-bit keys in other kernels, which reaches 0.05; logits deviate by 2.5."""
    np.testing.assert_allclose(rows, expected, atol=NOISE)
