"""What a step costs: the time of one forward as a function of its width."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from speculation.types import Interrupted, Model

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


def measure(
    model: Model,
    clock: Callable[[], float],
    repeats: int = 3,
    budget_s: float = 6.0,
    widths: Sequence[int] = WIDTHS,
) -> CostTable:
    """Time forwards of an empty cache and leave it empty: seconds of the fastest of `repeats` runs for each width.

    Other load only ever adds time, so the fastest run says most of the machine, and going round the widths lets a
    disturbance meet them all: a plain step that was measured too slow makes every guess look cheap. After `budget_s`,
    and where a forward is interrupted, what was measured so far has to do; live prices mend it. The model must be
    able to rewind. Raises Interrupted before anything was measured.
    """
    widths = [n for n in widths if n <= min(model.max_rows, model.n_ctx)]
    seconds: dict[int, float] = {}
    began = clock()
    for width in widths * repeats:
        if len(seconds) > 2 and clock() - began > budget_s:
            break
        started = clock()
        try:
            model.forward([0] * width, n_rows=width)
        except Interrupted:
            if not seconds:
                raise
            break
        seconds[width] = min(seconds.get(width, inf), clock() - started)
        model.rewind(0)
    return CostTable({width: max(taken, seconds[1]) for width, taken in seconds.items()})


_BUCKETS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)  # widths up to each of these share what was observed of them
_RECENT, _OWN = 9, 5  # observations whose median corrects all prices, and that of one width
_DRIFT = 1.25  # prices that moved by this factor are looked at again where nobody looked lately
_LATELY, _ENOUGH = 16, 3  # steps; observations among them that settle a price
# Narrow steps wait for memory, wide ones for the processor: narrow ones that became cheaper by up to a quarter say
# nothing of wide ones that nobody has seen yet. What makes steps dearer mostly does so to all.
_MEMORY_ALONE = 0.75
_STALE = 64  # steps after which a width's own observations say less than everyone's


class LivePrices:
    """A cost table corrected by what steps took: heat, other load and a deeper context change all of it."""

    def __init__(self, table: CostTable) -> None:
        self._table = table
        edges = {edge + beyond for edge in _BUCKETS for beyond in (0, 1)}  # corrections change there
        rows = sorted(n for n in edges | set(table.seconds) if n > 1)
        self._knots = [(n - 1, bisect_left(_BUCKETS, n), table.forward_s(n)) for n in rows]  # guesses, and their check
        self._steps = 0
        self._all: deque[float] = deque(maxlen=_RECENT)  # observed / predicted
        self._own: dict[int, deque[float]] = {}  # the same, by bucket
        self._seen: dict[int, int] = {}  # the step of the last observation, by bucket
        self._factor: dict[int, float] = {}
        self._base: dict[int, float] = {}  # of the table, by rows
        self._now: dict[int, float] = {}  # corrected
        self._plain_seen: deque[int] = deque([0] * _ENOUGH, maxlen=_ENOUGH)  # steps of the last plain observations
        self._plain_factor = 1.0

    def forward_s(self, n_rows: int) -> float:
        """Seconds of a forward of n rows, as things are now."""
        seconds = self._now.get(n_rows)
        if seconds is None:
            factor = self._factor.get(bisect_left(_BUCKETS, n_rows), self._factor_unseen)
            seconds = self._now[n_rows] = self._table_s(n_rows) * factor
        return seconds

    def least_chance(self, most: int) -> float:
        """Below which chance of its first token no guess of up to so many tokens can be worth its check.

        Every token's chance to be accepted is at most the first one's, and time is linear between knots.
        """
        plain_s, unseen, factors = self.forward_s(1), self._factor_unseen, self._factor
        least = self.forward_s(most + 1) / (plain_s * most) - 1.0 / most
        for k, bucket, seconds in self._knots:  # this runs at every step
            if k >= most:
                break
            least = min(least, (seconds * factors.get(bucket, unseen) / plain_s - 1.0) / k)
        return least

    @property
    def _factor_unseen(self) -> float:
        common = self._factor.get(-1, 1.0)
        return max(common, min(1.0, common / _MEMORY_ALONE))

    @property
    def plain_is_doubtful(self) -> bool:
        """Whether everything seen lately costs more, or less, than when plain steps were last seen.

        As long as all steps are guessed, a machine that became slower cannot be told from checks that became dearer.
        """
        drift = self._factor.get(-1, 1.0) / self._plain_factor
        return self._steps - self._plain_seen[0] > _LATELY - 1 and not 1 / _DRIFT < drift < _DRIFT

    def observe(self, n_rows: int, seconds: float) -> None:
        """Learn what a forward of n rows took."""
        self._steps += 1
        self._now.clear()
        bucket = bisect_left(_BUCKETS, n_rows)
        ratio = seconds / self._table_s(n_rows)
        self._all.append(ratio)
        self._own.setdefault(bucket, deque(maxlen=_OWN)).append(ratio)
        self._seen[bucket] = self._steps
        for known, last in tuple(self._seen.items()):
            if self._steps - last > _STALE:
                del self._seen[known], self._own[known]
        common = median(self._all) if len(self._all) >= 3 else 1.0
        self._factor = {known: median(own) for known, own in self._own.items() if len(own) >= 3}
        self._factor[-1] = common
        if n_rows == 1:
            self._plain_seen.append(self._steps)
            self._plain_factor = self._factor.get(0, self._plain_factor)

    def _table_s(self, n_rows: int) -> float:
        seconds = self._base.get(n_rows)
        if seconds is None:
            seconds = self._base[n_rows] = self._table.forward_s(n_rows)
        return seconds
