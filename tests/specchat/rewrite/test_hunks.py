"""Hunks: any subset can be had, and all or none of them is the new or the old file."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.rewrite.hunks import Decision, Mark, Review, marks, review
from specchat.rewrite.merge import merge
from specchat.rewrite.source import source_of
from tests.specchat.rewrite.files import AWKWARD, encoded


@st.composite
def reviews(draw: st.DrawFn) -> tuple[Review, bytes]:
    """A rewrite that keeps, changes, drops and adds lines, some of them again and again split; and its result."""
    source = source_of(draw(encoded()), "a")
    fresh = [text for text in AWKWARD if encodable(text, source.encoding)]
    lines: list[str] = []
    for text in source.texts:
        lines += draw(st.sampled_from([[text], [text], [text], [], [text + "x"], [draw(st.sampled_from(fresh)), text]]))
    lines += draw(st.lists(st.sampled_from(fresh), max_size=2))
    found = review(source, lines)
    for _ in range(draw(st.integers(0, 3))):
        for hunk in found.hunks:
            if draw(st.booleans()):
                found = found.split(hunk.id)
    return found, merge(source, lines)


def encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def of(old: str, new: str) -> Review:
    return review(source_of(old.encode(), "a"), new.splitlines())


@given(reviews())
def test_all_hunks_are_the_merged_file_and_none_the_old_one(both: tuple[Review, bytes]) -> None:
    found, merged = both
    ids = [hunk.id for hunk in found.hunks]

    assert found.result(ids) == found.decide(Decision.ACCEPTED, ids).result() == merged
    assert found.result([]) == found.decide(Decision.REJECTED, ids).result() == found.result() == found.source.data


@given(reviews(), st.data())
def test_a_rejected_hunk_leaves_its_old_bytes(both: tuple[Review, bytes], drawn: st.DataObject) -> None:
    found, _ = both
    chosen = drawn.draw(st.sets(st.sampled_from([hunk.id for hunk in found.hunks]))) if found.hunks else set()
    touched = {
        i for hunk in found.hunks if hunk.id in chosen for each in hunk.changes for i in range(each.start, each.end)
    }
    expected = [line.text for i, line in enumerate(found.source.lines) if i not in touched]
    added = [line.text for hunk in found.hunks if hunk.id in chosen for each in hunk.changes for line in each.lines]

    result = source_of(found.result(chosen), "a", encoding=found.source.encoding)

    assert sorted(result.texts) == sorted(expected + added)
    rest = iter(result.texts)
    assert all(text in rest for text in expected)  # in their order


@given(reviews())
def test_hunks_have_their_own_ids_and_stand_in_order(both: tuple[Review, bytes]) -> None:
    hunks = both[0].hunks

    assert len({hunk.id for hunk in hunks}) == len(hunks)
    assert all(before.end <= after.start for before, after in pairwise(hunks))


def test_changes_close_together_are_one_hunk_that_can_be_split() -> None:
    found = of("a\nb\nc\nd\ne\nf\ng\nh\n", "A\nb\nC\nd\ne\nf\ng\nH\n")

    assert [(hunk.id, hunk.start, hunk.end) for hunk in found.hunks] == [("1", 0, 3), ("2", 7, 8)]
    assert [(hunk.id, hunk.start) for hunk in found.split("1").hunks] == [("1.1", 0), ("1.2", 2), ("2", 7)]


def test_a_block_of_changed_lines_is_split_into_lines() -> None:
    found = of("a1\nb1\n", "a2\nb2\n").split("1")

    assert found.result(["1.2"]) == b"a1\nb2\n"


def test_an_added_line_is_split_from_the_changed_one_beside_it() -> None:
    found = of("total = add(one, two)\n", "# the sum\ntotal = add(one, three)\n").split("1")

    assert found.result(["1.1"]) == b"# the sum\ntotal = add(one, two)\n"
    assert found.result(["1.2"]) == b"total = add(one, three)\n"


def test_what_cannot_be_split_stays() -> None:
    found = of("a\n", "b\n")

    assert found.split("1") == found


def test_an_edited_hunk_is_open_again_and_holds_the_given_lines() -> None:
    found = of("a\r\nb\r\nc\r\n", "a\nB\nc\n").decide(Decision.ACCEPTED, ["1"])

    edited = found.edit("1", ["x", "y"])

    assert edited.find("1").decision is Decision.OPEN
    assert edited.result(["1"]) == b"a\r\nx\r\ny\r\nc\r\n"
    assert found.result() == b"a\r\nB\r\nc\r\n"


def test_an_edit_begins_with_the_lines_as_they_would_be() -> None:
    assert of("a\nb\nc\n", "A\nb\nC\n").new_lines("1") == ["A", "b", "C"]


@given(reviews())
def test_an_edit_that_changes_nothing_changes_no_byte(both: tuple[Review, bytes]) -> None:
    found, _ = both
    for hunk in found.hunks:
        before = found.result([hunk.id])
        assert (
            source_of(found.edit(hunk.id, found.new_lines(hunk.id)).result([hunk.id]), "a").texts
            == source_of(before, "a").texts
        )


def test_an_unknown_id_is_an_error() -> None:
    with pytest.raises(KeyError):
        of("a\n", "b\n").decide(Decision.ACCEPTED, ["7"])


def test_the_words_that_differ_are_marked() -> None:
    found = of("TIMEOUT_MS = 3000  # ms\n", "TIMEOUT_MS = 30000  # ms\n")

    old, new = marks(found.source, found.hunks[0].changes[0])

    assert old == [Mark(0, 13, 17)]
    assert new == [Mark(0, 13, 18)]


def test_marks_lie_on_the_lines_of_a_block() -> None:
    found = of("zero\none two\nthree four\n", "zero\none 2\nthree 4\n")

    old, new = marks(found.source, found.hunks[0].changes[0])

    assert old == [Mark(1, 4, 7), Mark(2, 6, 10)]
    assert new == [Mark(0, 4, 5), Mark(1, 6, 7)]


@pytest.mark.timeout(20)
def test_one_endless_line_is_marked_in_seconds() -> None:
    found = of("one two " * 25_000, "one three " * 25_000)

    assert marks(found.source, found.hunks[0].changes[0])[1]
