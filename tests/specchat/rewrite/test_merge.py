"""New lines in old bytes: nothing but the edited lines changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.rewrite.errors import OutputRefused
from specchat.rewrite.merge import FinalNewline, LineEnds, applied, changes, merge, with_rest
from specchat.rewrite.source import SourceFile, source_of
from tests.specchat.rewrite.files import encoded


def merged(old: bytes, new: str) -> bytes:
    source = source_of(old, "a")
    return merge(source, new.splitlines())


@given(encoded(), st.data())
def test_replaced_lines_change_and_no_other_byte_does(data: bytes, drawn: st.DataObject) -> None:
    source = source_of(data, "a")
    places = drawn.draw(st.sets(st.integers(0, max(0, len(source.lines) - 1))))
    lines = [f"new {i}" if i in places else text for i, text in enumerate(source.texts)]

    expected = [
        f"new {i}{line.end}".encode(source.encoding) if i in places else line.raw for i, line in enumerate(source.lines)
    ]

    # A replaced line without an end is the last one, and stays without.
    assert merge(source, lines) == source.mark + b"".join(expected)


@given(encoded(), st.data())
def test_lines_that_stay_keep_their_bytes_beside_added_and_removed_ones(data: bytes, drawn: st.DataObject) -> None:
    source = source_of(data, "a")
    numbered = numbered_lines(source)
    removed = drawn.draw(st.sets(st.integers(0, max(0, len(numbered.lines) - 1)), max_size=4))
    added = drawn.draw(st.sets(st.integers(0, len(numbered.lines)), max_size=4))
    lines: list[str] = []
    for i, text in enumerate((*numbered.texts, None)):
        lines += [f"added {i}"] if i in added else []
        lines += [text] if text is not None and i not in removed else []

    result = source_of(merge(numbered, lines), "a")

    assert list(result.texts) == lines
    stayed = {line.text: line for line in numbered.lines}
    for line in result.lines[:-1]:
        if line.text in stayed and stayed[line.text].end:
            assert line == stayed[line.text]
    if lines and numbered.lines and lines[-1]:
        assert result.ends_with_newline == numbered.ends_with_newline


def numbered_lines(source: SourceFile) -> SourceFile:
    """The same file with lines that are all different, so that it is clear which one stayed."""
    text = "".join(f"{i} {line.text}{line.end}" for i, line in enumerate(source.lines))
    return source_of(source.mark + text.encode(source.encoding), "a")


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        (b"a\r\nb\r\n", "a\nx\nb\n", b"a\r\nx\r\nb\r\n"),
        (b"a\nb\r\nc\r", "a\nb\nx\nc\n", b"a\nb\r\nx\r\nc\r"),
        (b"a\nb\r\nc\r", "a\nx\nc\n", b"a\nx\r\nc\r"),
        (b"a\nb", "a\nb\nc\n", b"a\nb\nc"),
        (b"a\r\nb", "a\r\n", b"a"),
        (b"a\rb", "x\ra\rb", b"x\ra\rb"),
        (b"a", "a\nb\n", b"a\nb"),
        (b"", "a\nb\n", b"a\nb\n"),
        (b"\xef\xbb\xbfa\r\n", "b\n", b"\xef\xbb\xbfb\r\n"),
        (b"\xff\xfea\0\r\0\n\0", "a\nb\n", b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0"),
        (b"\xe9\r\nb\r\n", "é\nc\n", b"\xe9\r\nc\r\n"),
        (b"a\nb\n", "", b""),
        (b"a\n\n ", "a\n\n", b"a\n\n"),
    ],
)
def test_added_and_changed_lines_end_like_their_neighbours(old: bytes, new: str, result: bytes) -> None:
    assert merged(old, new) == result


def test_a_character_that_the_file_cannot_hold_is_refused_with_its_line() -> None:
    with pytest.raises(OutputRefused, match=r"latin-1, which cannot hold U\+20AC of line 2"):
        merged(b"\xe9\nb\n", "é\n5 €\n")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(OutputRefused):
        merged(b"a\n", "\ud800\n")


@pytest.mark.parametrize(
    ("policy", "result"),
    [(FinalNewline.KEEP, b"x\r\nb"), (FinalNewline.YES, b"x\r\nb\r\n"), (FinalNewline.NO, b"x\r\nb")],
)
def test_the_last_line_ends_as_the_user_wishes(policy: FinalNewline, result: bytes) -> None:
    source = source_of(b"a\r\nb", "a")

    assert applied(source, changes(source, ["x", "b"]), policy) == result


@pytest.mark.parametrize(("ends", "result"), [(LineEnds.LF, b"x\nb\nc"), (LineEnds.CRLF, b"x\r\nb\r\nc")])
def test_all_lines_end_as_the_user_wishes(ends: LineEnds, result: bytes) -> None:
    source = source_of(b"a\r\nb\nc", "a")

    assert applied(source, changes(source, ["x", "b", "c"]), ends=ends) == result


def test_the_rest_is_copied_from_the_place_that_the_reply_has_reached() -> None:
    old = ["a", "b", "}", "c", "}", "d"]

    assert with_rest(old, ["A", "x", "b", "}", "c", "}"]) == (["A", "x", "b", "}", "c", "}", "d"], 5)


def test_of_two_places_that_look_alike_the_nearest_to_the_copy_is_taken() -> None:
    old = ["x", "}", "y", "}", "z"]

    assert with_rest(old, ["new", "}"], near=4) == (["new", "}", "z"], 4)
    assert with_rest(old, ["new", "}"], near=1) == (["new", "}", "y", "}", "z"], 2)


def test_without_a_known_last_line_there_is_no_rest() -> None:
    assert with_rest(["a", "b"], ["a", "new"]) is None
    assert with_rest(["a"], []) is None
