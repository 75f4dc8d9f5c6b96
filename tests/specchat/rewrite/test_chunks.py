"""Where long files are cut, and which parts of a file can be named."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.errors import InputRefused, UsageError
from specchat.rewrite.chunks import split
from specchat.rewrite.expressions import Expression
from specchat.rewrite.part import Part, part_between, parts_matching
from specchat.rewrite.source import joined, source_of
from tests.specchat.rewrite.files import AWKWARD


def cut(text: str, room: int) -> list[list[str]]:
    """The pieces of a text, when a line is a token."""
    lines = text.splitlines()
    return [lines[part.start : part.end] for part in split(lines, Part(0, len(lines)), [1] * len(lines), room)]


@given(st.lists(st.sampled_from(AWKWARD), max_size=80), st.integers(1, 30), st.data())
def test_pieces_fit_and_leave_out_nothing_but_blank_lines_between_them(
    lines: list[str], room: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(lines)))
    part = Part(start, data.draw(st.integers(start, len(lines))))
    tokens = [len(line) + 1 for line in lines[part.start : part.end]]

    parts = split(lines, part, tokens, room)

    sizes = [sum(tokens[each.start - start : each.end - start]) for each in parts]
    assert all(size <= room or each.end - each.start == 1 for size, each in zip(sizes, parts, strict=True))
    inside = {line for each in parts for line in range(each.start, each.end)}
    assert len(inside) == sum(each.end - each.start for each in parts)
    assert all(not lines[line].strip() for line in set(range(part.start, part.end)) - inside)
    assert all(one.end <= other.start and one.start < one.end for one, other in pairwise(parts))
    if len(parts) > 1:
        assert all(lines[one.end - 1].strip() and lines[other.start].strip() for one, other in pairwise(parts))


def test_pieces_are_of_like_size() -> None:
    paragraph = "one\ntwo\nthree\n\n"

    assert [len(piece) for piece in cut(paragraph * 10, 30)] == [19, 20]


def test_definitions_and_headings_are_better_places_than_blank_lines_and_those_than_any() -> None:
    code = "def one():\n    a = 1\n\n    b = 2\n    c = 3\n\n\n@cached\ndef two():\n    return 1\n\n    return 2\n"
    text = "Here\n\non and\non.\n\n## Next\nThere\nit ends\n"
    plain = "a\nb\nc\n\nd\ne\nf\ng\n"

    assert [piece[0] for piece in cut(code, 8)] == ["def one():", "@cached"]
    assert [piece[0] for piece in cut(text, 6)] == ["Here", "## Next"]
    assert [piece[0] for piece in cut(plain, 6)] == ["a", "d"]


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\nc\n\n```sh\nd\n\ne\nf\n```\ng\n",
        'a\nb\nc\n\nx = """\nd\n\ne\nf\n"""\ng\n',
    ],
)
def test_a_fence_or_a_string_stays_whole_where_that_is_possible(text: str) -> None:
    first, second = cut(text, 8)

    assert first == ["a", "b", "c"]
    assert second[-1] == "g"


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert [piece[0] for piece in cut("```\na\nb\n\nc\nd\ne\n", 5)] == ["```", "c"]


CODE = source_of(joined(["a = 1", "# begin", "b = 2", "", "c = 3", "# end", "# end", "", "d = 4"]).encode(), "a.py")


def between(text: str) -> Expression:
    return Expression(text, "--between")


class TestNamedParts:
    def test_between_two_expressions_stand_the_lines_behind_one_and_before_the_other(self) -> None:
        assert part_between(CODE, between("^# begin"), between("end$")) == Part(2, 5)

    def test_what_matches_nothing_is_named(self) -> None:
        with pytest.raises(InputRefused, match=r"no line of a\.py matches --between ###"):
            part_between(CODE, between("###"), between("end"))
        with pytest.raises(InputRefused, match=r"behind line 6 matches --between begin"):
            part_between(CODE, between("# end"), between("begin"))
        with pytest.raises(InputRefused, match="no line between lines 6 and 7"):
            part_between(CODE, between("# end"), between("# end"))
        with pytest.raises(InputRefused, match="matches --match zzz"):
            parts_matching(CODE, Expression("zzz", "--match"))

    def test_a_match_names_its_whole_paragraph_once(self) -> None:
        assert parts_matching(CODE, Expression("[abcd] = [24]|begin", "--match")) == [Part(0, 3), Part(8, 9)]

    def test_what_is_no_expression_is_wrong_usage(self) -> None:
        with pytest.raises(UsageError, match=r"--match \( is no regular expression"):
            Expression("(", "--match")
        with pytest.raises(UsageError, match="--between"):
            between("[")
