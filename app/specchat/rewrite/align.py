"""Which items of one sequence are still there in another: minimal where that is quick, bounded where it is not."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_MOST_EDITS = 400  # that a minimal comparison of one stretch looks for; its time grows with their square ...
_FEWER_EDITS = 40  # ... so this is the limit once ...
_PATIENCE = 20 * _MOST_EDITS**2  # ... so many steps may have been spent, a second or two
_DEEPEST = 32  # stretches within stretches


@dataclass(frozen=True, slots=True)
class Replaced:
    """Items [start, end) of the old sequence that became items [new_start, new_end) of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Replaced]:
    """What was replaced, in order; all else is equal, one to one.

    Of equal explanations the one that keeps every item in its place is preferred: a copy with some lines changed is
    seen as that, even among lines that occur many times.
    """
    found: list[Replaced] = []
    stretches = [(Replaced(0, len(old), 0, len(new)), 0)]
    spent = 0
    while stretches:
        stretch, depth = stretches.pop()
        stretch = _trimmed(old, new, stretch)
        size, new_size = stretch.end - stretch.start, stretch.new_end - stretch.new_start
        if size == 0 or new_size == 0:
            found += [stretch] if size or new_size else []
            continue
        most_edits = _MOST_EDITS if spent < _PATIENCE else _FEWER_EDITS
        kept = _kept(old[stretch.start : stretch.end], new[stretch.new_start : stretch.new_end], most_edits)
        spent += min(most_edits, size + new_size if kept is None else size + new_size - 2 * len(kept)) ** 2
        if kept is not None:
            found += _between(stretch, kept)
            continue
        anchors = _anchors(old, new, stretch) if depth < _DEEPEST else []
        if anchors:
            stretches += [(gap, depth + 1) for gap in _between(stretch, anchors)]
        else:
            found.append(stretch)
    return sorted(found, key=lambda each: (each.start, each.new_start))


def _trimmed(old: Sequence[Hashable], new: Sequence[Hashable], stretch: Replaced) -> Replaced:
    start, end, new_start, new_end = stretch.start, stretch.end, stretch.new_start, stretch.new_end
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return Replaced(start, end, new_start, new_end)


def _kept(old: Sequence[Hashable], new: Sequence[Hashable], most_edits: int) -> list[tuple[int, int]] | None:
    """Pairs of equal items, of a comparison with the fewest edits; None where they are too many to look for."""
    if len(old) != len(new):
        return _myers(old, new, most_edits)
    in_place = [(i, i) for i, item in enumerate(old) if item == new[i]]
    edits = 2 * (len(old) - len(in_place))
    fewer = _myers(old, new, min(most_edits, edits - 1))
    if fewer is not None:
        return fewer
    return in_place if edits <= most_edits or 2 * len(in_place) >= len(old) else None


def _myers(old: Sequence[Hashable], new: Sequence[Hashable], most_edits: int) -> list[tuple[int, int]] | None:
    """Pairs of equal items by Myers 1986, "An O(ND) difference algorithm"; None where more edits are needed."""
    size, new_size = len(old), len(new)
    furthest = {1: 0}  # diagonal -> the furthest old index reached on it
    trace: list[dict[int, int]] = []
    for edits in range(min(most_edits, size + new_size) + 1):
        trace.append(furthest.copy())
        for diagonal in range(-edits, edits + 1, 2):
            if diagonal < -new_size or diagonal > size:
                continue
            at = _stepped(furthest, diagonal, edits)
            while at < size and at - diagonal < new_size and old[at] == new[at - diagonal]:
                at += 1
            furthest[diagonal] = at
            if at >= size and at - diagonal >= new_size:
                return _walked_back(trace, size, new_size)
    return None


def _stepped(furthest: dict[int, int], diagonal: int, edits: int) -> int:
    """The old index on a diagonal after one more edit: an item of `new` added, or one of `old` left out."""
    below, above = furthest.get(diagonal + 1, -1), furthest.get(diagonal - 1, -1)
    return below if diagonal == -edits or (diagonal != edits and above < below) else above + 1


def _walked_back(trace: list[dict[int, int]], at: int, new_at: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        diagonal = at - new_at
        begun = _stepped(trace[edits], diagonal, edits)
        while at > begun:
            at, new_at = at - 1, new_at - 1
            pairs.append((at, new_at))
        below, above = trace[edits].get(diagonal + 1, -1), trace[edits].get(diagonal - 1, -1)
        if diagonal == -edits or (diagonal != edits and above < below):
            new_at -= 1
        else:
            at -= 1
    return pairs[::-1]


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], stretch: Replaced) -> list[tuple[int, int]]:
    """Pairs of equal items in rising order, where the n-th of its kind meets the n-th: far from minimal, but quick."""
    places = _numbered(old, stretch.start, stretch.end)
    met = _numbered(new, stretch.new_start, stretch.new_end)
    pairs = sorted((at, met[key]) for key, at in places.items() if key in met)
    ends: list[int] = []  # the new place that the best chain of each length ends with
    chains: list[int] = []  # ... and the pair
    before: list[int] = []
    for i, (_, new_at) in enumerate(pairs):
        length = bisect_left(ends, new_at)
        before.append(chains[length - 1] if length else -1)
        ends[length : length + 1] = [new_at]
        chains[length : length + 1] = [i]
    chain: list[tuple[int, int]] = []
    i = chains[-1] if chains else -1
    while i >= 0:
        at, new_at = pairs[i]
        chain.append((at - stretch.start, new_at - stretch.new_start))
        i = before[i]
    return chain[::-1]


def _numbered(items: Sequence[Hashable], start: int, end: int) -> dict[tuple[Hashable, int], int]:
    seen: dict[Hashable, int] = {}
    places = {}
    for at in range(start, end):
        seen[items[at]] = number = seen.get(items[at], 0) + 1
        places[items[at], number] = at
    return places


def _between(stretch: Replaced, kept: list[tuple[int, int]]) -> list[Replaced]:
    """The parts of a stretch without its kept pairs, which are counted from its beginning."""
    gaps: list[Replaced] = []
    at, new_at = stretch.start, stretch.new_start
    for pair, new_pair in [*kept, (stretch.end - stretch.start, stretch.new_end - stretch.new_start)]:
        end, new_end = stretch.start + pair, stretch.new_start + new_pair
        if end > at or new_end > new_at:
            gaps.append(Replaced(at, end, new_at, new_end))
        at, new_at = end + 1, new_end + 1
    return gaps
