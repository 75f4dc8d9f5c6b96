"""One row of logits -> the distribution that the next token is drawn from.

Definitions and order are those of llama.cpp's default chain: repeat penalty, top_k, top_p, min_p,
temperature. The cuts look at probabilities before temperature. Nothing is drawn here, and no row is ever
changed: rows are views of the engine's memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speculation.types import Distribution, Row, SpeculationError, Tokens, point_mass

MAX_DEPTH = 64  # rows of the matrix that _top folds a row into; 32 and 128 are slower at V = 151,936
FIRST_NUCLEUS = 256  # tokens that _nucleus looks at first

_LOWEST = np.finfo(np.float32).min
_Ids = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How a row of logits is cut and sharpened; the defaults are for chat."""

    temperature: float = 0.7  # 0 is greedy: a point mass on the best token
    top_k: int = 40  # 0 keeps all
    top_p: float = 0.95  # 1.0 keeps all
    min_p: float = 0.05  # relative to the best token; 0.0 keeps all
    repeat_penalty: float = 1.0  # 1.0 is off
    repeat_last_n: int = 64  # tokens of context it looks back over, the draft included; 0 is off, -1 is all

    def __post_init__(self) -> None:
        allowed = {
            "temperature": (0.0 <= self.temperature < math.inf, "0 or more, and finite"),
            "top_k": (self.top_k >= 0, "0 (keep all) or more"),
            "top_p": (0.0 <= self.top_p <= 1.0, "from 0 to 1"),
            "min_p": (0.0 <= self.min_p <= 1.0, "from 0 to 1"),
            "repeat_penalty": (0.0 < self.repeat_penalty < math.inf, "more than 0, and finite"),
            "repeat_last_n": (self.repeat_last_n >= -1, "-1 (whole context), 0 (off) or more"),
        }
        for name, (holds, values) in allowed.items():
            if not holds:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be {values}")


GREEDY = SamplingConfig(temperature=0.0)


@np.errstate(over="ignore")  # a difference of logits beyond the largest float is minus infinity: weight 0
def distribution(row: Row, config: SamplingConfig, recent: Sequence[int] | Tokens = ()) -> Distribution:
    """What the next token is drawn from; tokens of equal logits are in order of id.

    `recent` is the context up to this row, draft included; only its last repeat_last_n tokens count.
    """
    row = _penalised(row, config, recent)
    best, peak = _best(row)
    if config.temperature == 0:
        return point_mass(best)
    ids, total = _candidates(row, peak, config)
    ids = ids[: _kept(_weights(row, ids, peak), total, config)]
    weights = _weights(row, ids, peak, config.temperature)
    probs = weights / weights.sum()
    possible = np.count_nonzero(probs)  # a low temperature rounds the tail to 0, which nothing may list
    return Distribution(ids[:possible].astype(np.int32), probs[:possible])


@np.errstate(over="ignore")
def probabilities(row: Row, ids: Sequence[int] | Tokens) -> NDArray[np.float64]:
    """The softmax probabilities (n,) of n tokens: nothing penalised, nothing cut, temperature 1."""
    _, peak = _best(row)
    return _weights(row, np.asarray(ids, dtype=np.intp), peak) / _total(row, peak)


@np.errstate(over="ignore")
def leading(row: Row, count: int) -> tuple[Tokens, NDArray[np.float64]]:
    """The `count` most probable tokens (fewer if others are impossible), best first, and their shares among them.

    Shares among a few are quick to have, and for the best of eight not far from the probabilities.
    """
    _, peak = _best(row)
    ids = _top(row, count) if count < row.size else _best_first(row, np.arange(row.size))
    weights = _weights(row, ids, peak)
    return ids.astype(np.int32), weights / weights.sum()


def _penalised(row: Row, config: SamplingConfig, recent: Sequence[int] | Tokens) -> Row:
    """The row, or a copy with each recent token made less likely (Keskar et al. 2019, section 4.1)."""
    if config.repeat_penalty == 1 or config.repeat_last_n == 0 or len(recent) == 0:
        return row
    if config.repeat_last_n > 0:
        recent = recent[-config.repeat_last_n :]
    ids = np.asarray(recent, dtype=np.intp)
    logits = row[ids]
    penalised = row.copy()
    # Values come from the row itself, so a token that was seen twice is penalised once. The paper divides
    # always, which would reward a token of negative logit.
    penalised[ids] = np.where(logits > 0, logits / config.repeat_penalty, logits * config.repeat_penalty)
    return penalised


def _best(row: Row) -> tuple[int, float]:
    """The most probable token, the lowest id of several, and its logit."""
    assert row.ndim == 1
    best = int(row.argmax())  # the first NaN if there is one
    peak = float(row[best])
    if not math.isfinite(peak):
        raise SpeculationError(f"the model's logits allow no choice of a token: the highest of them is {peak}")
    return best, peak


def _candidates(row: Row, peak: float, config: SamplingConfig) -> tuple[_Ids, float]:
    """All tokens that can survive the cuts, best first, and the total weight of which top_p is a share."""
    if 0 < config.top_k < row.size:
        ids = _top(row, config.top_k)
        return ids, float(_weights(row, ids, peak).sum())
    total = _total(row, peak)
    if config.min_p > 0:
        # One float below the cut, because _kept has the exact say.
        floor = np.nextafter(np.float32(peak + math.log(config.min_p)), np.float32(-math.inf))
        return _best_first(row, np.flatnonzero(row >= floor)), total
    if config.top_p < 1:
        return _nucleus(row, peak, config.top_p * total), total
    return _best_first(row, np.arange(row.size)), total


def _kept(weights: NDArray[np.float64], total: float, config: SamplingConfig) -> int:
    """How many of the candidates (m,), best first, survive top_p and min_p; at least one."""
    kept = weights.size
    if config.top_p < 1:
        # The token that reaches top_p is kept, so something always is.
        kept = min(kept, int(np.searchsorted(weights.cumsum(), config.top_p * total)) + 1)
    if config.min_p > 0:
        kept = min(kept, int(np.count_nonzero(weights >= config.min_p)))  # the best token weighs 1
    return kept


def _top(row: Row, count: int) -> _Ids:
    """The `count` most probable tokens (fewer if others are impossible), best first; 0 < count < V.

    np.argpartition over V = 151,936 takes 2 ms. Folded into a matrix, the row gives up its column maxima at
    the speed of memory; the count-th largest of them is a logit that at least `count` tokens reach, and only
    columns whose maximum reaches it can hold such a token.
    """
    depth = max(1, min(MAX_DEPTH, row.size // (8 * count)))
    width = row.size // depth  # >= count
    folded = row[: depth * width].reshape(depth, width)
    peaks = folded.max(axis=0)
    # Never minus infinity, or a row of mostly impossible tokens would be sorted whole.
    bound = max(np.partition(peaks, width - count)[width - count], _LOWEST)
    columns = np.flatnonzero(peaks >= bound)
    at_row, at_column = np.nonzero(folded[:, columns] >= bound)
    rest = depth * width + np.flatnonzero(row[depth * width :] >= bound)
    ids = np.concatenate((at_row * width + columns[at_column], rest))  # ascending
    return _best_first(row, ids)[:count]


def _nucleus(row: Row, peak: float, mass: float) -> _Ids:
    """The most probable tokens, best first, as many as reach this weight, or more."""
    count = FIRST_NUCLEUS
    while count < row.size:
        ids = _top(row, count)
        if _weights(row, ids, peak).sum() >= mass:
            return ids
        count *= 4
    return _best_first(row, np.arange(row.size))


def _best_first(row: Row, ids: _Ids) -> _Ids:
    """Ascending ids by falling logit; the sort is stable, so ties stay in order of id."""
    return ids[np.argsort(-row[ids], kind="stable")]


def _weights(row: Row, ids: _Ids, peak: float, temperature: float = 1.0) -> NDArray[np.float64]:
    """Unnormalised probabilities of some tokens; the best token's is 1."""
    return np.exp((row[ids].astype(np.float64) - peak) / temperature)


def _total(row: Row, peak: float) -> float:
    """The sum of all V weights."""
    # In float32, because float64 alone takes up to 1.3 ms at V = 151,936.
    return float(np.exp(row - np.float32(peak)).sum(dtype=np.float64))
