"""How long sampling takes for a vocabulary of 151,936 tokens (Qwen2.5). Prints times, asserts none."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pytest

from speculation.sampling import GREEDY, SamplingConfig, distribution, probabilities

V = 151_936
REPEATS = 200


def median_ms(work: Callable[[], object]) -> float:
    """The median of REPEATS runs, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


@pytest.mark.bench
def test_time_to_turn_rows_of_logits_into_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (np.random.default_rng(0).normal(size=(5, V)) * 3).astype(np.float32)
    default = SamplingConfig()
    no_top_k = SamplingConfig(top_k=0)

    lines = {
        "five rows, default settings": lambda: [distribution(row, default) for row in rows],
        "five rows, top_k off": lambda: [distribution(row, no_top_k) for row in rows],
        "one greedy row": lambda: distribution(rows[0], GREEDY),
        "probabilities of two tokens": lambda: probabilities(rows[0], [1, 2]),
    }

    with capsys.disabled():
        print()
        for name, work in lines.items():
            print(f"{name:30} {median_ms(work):7.3f} ms")
