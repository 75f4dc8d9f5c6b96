"""Two sets of changes in one file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.rewrite.source import source_of
from specchat.rewrite.three_way import merge_three
from tests.specchat.rewrite.files import encoded

NAMES = ("now", "before")
BASE = b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n"


@given(encoded())
def test_what_one_side_wrote_into_an_empty_file_is_taken(data: bytes) -> None:
    empty = source_of(data, "a").mark
    merged = merge_three(empty, data, empty, NAMES)

    assert merged is not None
    assert (merged.data, merged.conflicts) == (data, 0)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_changes_that_do_not_touch_are_both_there(one: set[int], other: set[int]) -> None:
    other -= {i + d for i in one for d in (-1, 0, 1)}
    base = [f"{i}\n" for i in range(10)]
    ours = [f"ours {i}\n" if i in one else line for i, line in enumerate(base)]
    theirs = [f"theirs {i}\n" if i in other else line for i, line in enumerate(base)]
    both = [theirs[i] if i in other else ours[i] for i in range(10)]

    files = ["".join(lines).encode() for lines in (base, ours, theirs)]
    merged = merge_three(files[0], files[1], files[2], NAMES)

    assert merged is not None
    assert (merged.data, merged.conflicts) == ("".join(both).encode(), 0)


@given(encoded(), encoded())
def test_where_one_side_changed_nothing_the_other_is_the_result(base: bytes, changed: bytes) -> None:
    for merged in (merge_three(base, base, changed, NAMES), merge_three(base, changed, base, NAMES)):
        assert merged is None or (merged.data, merged.conflicts) == (changed, 0)


def test_both_sides_of_a_conflict_stand_between_marks_with_the_file_s_line_ends() -> None:
    merged = merge_three(BASE, BASE.replace(b"3", b"III"), BASE.replace(b"3", b"drei"), NAMES)

    assert merged is not None
    assert merged.conflicts == 1
    middle = b"<<<<<<< now\r\nIII\r\n=======\r\ndrei\r\n>>>>>>> before\r\n"
    assert merged.data == b"1\r\n2\r\n" + middle + b"4\r\n5\r\n6\r\n"


def test_lines_that_both_add_at_one_place_are_a_conflict() -> None:
    merged = merge_three(b"1\n2\n", b"1\nours\n2\n", b"1\ntheirs\n2\n", NAMES)

    assert merged is not None
    assert merged.conflicts == 1


def test_the_same_change_on_both_sides_is_no_conflict() -> None:
    changed = BASE.replace(b"3", b"III")
    merged = merge_three(BASE, changed, changed, NAMES)

    assert merged is not None
    assert (merged.data, merged.conflicts) == (changed, 0)


def test_a_last_line_without_an_end_gets_one_before_a_mark() -> None:
    merged = merge_three(b"a", b"b", b"c", NAMES)

    assert merged is not None
    assert merged.data == b"<<<<<<< now\nb\n=======\nc\n>>>>>>> before\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [(b"a\0", b"b", b"c"), (b"a", b"\xff\xfeb\0", b"c"), (b"a", b"\xc3\xa9", b"\xe9")],
)
def test_files_of_different_kinds_are_not_merged(base: bytes, ours: bytes, theirs: bytes) -> None:
    assert merge_three(base, ours, theirs, NAMES) is None
