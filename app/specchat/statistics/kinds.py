"""What kind of work a reply was, told from its text and its question; and which kind each of its steps wrote."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from specchat.draft_replay import kinds_of_lines
from specchat.statistics.figures import Work

_WORDS_IN_A_ROW = 4
_LEAST_WORDS = 20  # of a reply that can be a rewrite: a short answer repeats its question by chance
_REPEATED = 0.5  # the share of a reply that its question must hold too


def is_rewriting(question: str, reply: str) -> bool:
    """Whether at least half of a reply, in runs of four words, stands in its question, attached files included."""
    # Two words for one: the reply may have cut what was asked about out of a longer text, but not out of a short one.
    if 2 * len(question) < len(reply):
        return False
    written = _runs(reply)
    if len(written) + _WORDS_IN_A_ROW - 1 < _LEAST_WORDS:
        return False
    given = set(_runs(question))
    return sum(run in given for run in written) >= _REPEATED * len(written)


def _runs(text: str) -> list[tuple[str, ...]]:
    words = text.split()
    return list(zip(*(words[i:] for i in range(_WORDS_IN_A_ROW)), strict=False))


def works_of_steps(text: str, emitted: NDArray[np.int32], spans: Sequence[tuple[int, int]] | None) -> list[Work] | Work:
    """The kind of the line that each step begins in; one for all where the text has only one.

    `spans` are (step, first character); without them the characters are shared out by tokens.
    """
    kinds = kinds_of_lines(text.encode("utf-8", "replace"))
    if len(set(kinds)) == 1:
        return Work(kinds[0].value)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))][:-1]
    if spans is None:
        before = np.cumsum(emitted) - emitted
        places = (before * (len(text) / max(1, int(emitted.sum())))).astype(int).tolist()
    else:
        places = _first_places(spans, len(emitted))
    return [Work(kinds[bisect_right(starts, place) - 1].value) for place in places]


def _first_places(spans: Sequence[tuple[int, int]], n_steps: int) -> list[int]:
    """For each step, its first character; a step without any stands where the one before it did."""
    first: dict[int, int] = {}
    for step, start in spans:
        first.setdefault(step, start)
    places, place = [], min((start for _, start in spans), default=0)
    for step in range(n_steps):
        place = first.get(step, place)
        places.append(place)
    return places
