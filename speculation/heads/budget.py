"""How large a head may be: drafting a token is bound by reading the head's numbers, and has to cost little."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from speculation.heads.network import shapes

_SHARE = 0.07  # of the bytes of the target, which a step of it reads, that a drafted token may read
_LEAST, _MOST = 4e6, 40e6  # bytes
_FLOAT = 4  # bytes
_OUTPUT = 0.62  # of those, that the rows of the vocabulary may take
_ROUND = 64


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a head is."""

    width: int  # of the stream
    n_ids: int  # tokens that it can guess


def sizes(target_bytes: int, n_hidden: int, n_in: int, n_vocab: int) -> Sizes:
    """The width and the vocabulary with which a drafted token costs under a tenth of a step of the target.

    A step reads the weights of the target, a drafted token those of the head, four bytes a number, at about the
    same pace: the step before has emptied the caches. The skip is as large as it has to be; of the rest most goes to
    the vocabulary.
    """
    budget = min(max(_SHARE * target_bytes, _LEAST), _MOST)
    row = _FLOAT * n_hidden
    skip = n_in * row
    n_ids = max(_ROUND, int(min(_OUTPUT * budget, 0.9 * (budget - skip)) / row) // _ROUND * _ROUND)
    left = budget - skip - n_ids * row
    width = _ROUND
    while _stream(n_in, width + _ROUND, n_hidden) <= left and width < n_hidden:
        width += _ROUND
    return Sizes(width, min(n_ids, n_vocab))


def _stream(n_in: int, width: int, n_hidden: int) -> int:
    """Bytes of all but the skip."""
    return _FLOAT * sum(prod(shape) for name, shape in shapes(n_in, width, n_hidden).items() if name != "skip")
