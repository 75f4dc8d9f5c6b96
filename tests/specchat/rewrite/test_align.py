"""Comparing two sequences: right, minimal where it is quick, never slow."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.rewrite.align import align

items = st.lists(st.integers(0, 3), max_size=12)


def kept(old: list[int], new: list[int]) -> int:
    """The length of the longest common subsequence, the plain way."""
    row = [0] * (len(new) + 1)
    for item in old:
        diagonal = 0
        for j, other in enumerate(new, start=1):
            diagonal, row[j] = row[j], diagonal + 1 if item == other else max(row[j], row[j - 1])
    return row[-1]


def rebuilt(old: list[int], new: list[int]) -> list[int]:
    result: list[int] = []
    at = 0
    for each in align(old, new):
        result += [*old[at : each.start], *new[each.new_start : each.new_end]]
        at = each.end
    return result + old[at:]


@given(items, items)
def test_what_was_replaced_makes_the_old_into_the_new(old: list[int], new: list[int]) -> None:
    assert rebuilt(old, new) == new


@given(items, items)
def test_as_much_is_kept_as_can_be(old: list[int], new: list[int]) -> None:
    assert len(old) - sum(each.end - each.start for each in align(old, new)) == kept(old, new)


@given(items, st.data())
def test_items_that_are_replaced_by_fresh_ones_stay_in_their_places(old: list[int], data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(0, max(0, len(old) - 1)), max_size=len(old)))
    new = [-1 - i if i in places else item for i, item in enumerate(old)]

    changed = {i for each in align(old, new) for i in range(each.start, each.end)}

    assert changed == places & set(range(len(old)))
    assert all((each.start, each.end) == (each.new_start, each.new_end) for each in align(old, new))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["few kinds", "reversed", "shuffled stretches"])
def test_the_worst_files_are_compared_in_seconds(kind: str) -> None:
    chance = random.Random(6)
    old = [chance.randrange(3) if kind == "few kinds" else i for i in range(60_000)]
    new = [chance.randrange(3) for _ in old] if kind == "few kinds" else old[::-1]
    if kind == "shuffled stretches":
        new = old[:]
        for start in range(0, len(old), 301):
            stretch = new[start + 1 : start + 301]
            chance.shuffle(stretch)
            new[start + 1 : start + 301] = stretch

    assert rebuilt(old, new) == new
