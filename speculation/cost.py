"""What a step costs: the time of one forward as a function of its width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from speculation.types import Model

WIDTHS = (1, 2, 4, 8, 16, 32)  # rows measured at load; between two of them the time is interpolated


@dataclass(frozen=True)
class CostTable:
    """Seconds of a forward by the number of its rows."""

    seconds: Mapping[int, float]  # rows -> seconds; holds the key 1

    def forward_s(self, n_rows: int) -> float:
        """Seconds of a forward of n rows: measured, interpolated, or carried on at the last slope."""
        known = sorted(self.seconds)
        if len(known) == 1:
            return self.seconds[known[0]] * n_rows / known[0]
        upper = next((i for i, n in enumerate(known) if n >= n_rows), len(known) - 1)
        high, low = known[max(upper, 1)], known[max(upper, 1) - 1]
        slope = (self.seconds[high] - self.seconds[low]) / (high - low)
        return self.seconds[low] + slope * (n_rows - low)


def measure(model: Model, clock: Callable[[], float], repeats: int = 3) -> CostTable:
    """Time forwards of an empty cache and leave it empty: median seconds of `repeats` runs for each width.

    The model must be able to rewind.
    """
    seconds = {}
    for width in (n for n in WIDTHS if n <= min(model.max_rows, model.n_ctx)):
        taken = []
        for _ in range(repeats):
            started = clock()
            model.forward([0] * width, n_rows=width)
            taken.append(clock() - started)
            model.rewind(0)
        seconds[width] = median(taken)
    return CostTable(seconds)
