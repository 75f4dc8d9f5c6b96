"""What a user sees of a reply while its tokens arrive, and which of them are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.detokenize import ReplyText
from speculation.types import Finish

END = -1
MARK = "\ufffd"


def reply(pieces: Sequence[bytes], stop: Sequence[str] = ()) -> ReplyText:
    """A reply whose token i has the bytes pieces[i]."""
    return ReplyText(lambda token: pieces[token], {END}, stop)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


texts = st.text(st.sampled_from("aé日😀👩\u200d👧\n ") | st.characters(exclude_categories=["Cs"]), max_size=12)
places = st.lists(st.integers(0, 99), max_size=12)


@given(texts.filter(lambda text: MARK not in text), places)
def test_characters_split_over_tokens_are_shown_whole(text: str, places: list[int]) -> None:
    pieces = cut(text.encode(), places)
    written = reply(pieces)

    taken = []
    for token in range(len(pieces)):
        written.feed([token])
        taken.append(written.take())
    written.finish()
    taken.append(written.take())

    assert "".join(taken) == text == written.text
    assert text.startswith("".join(taken[:-1]))


@given(texts, places)
def test_steps_of_many_tokens_show_the_same_as_single_tokens(text: str, places: list[int]) -> None:
    pieces = cut(text.encode(), places)
    single, at_once = reply(pieces, ["a\n"]), reply(pieces, ["a\n"])

    ends = [end for token in range(len(pieces)) if single.stopped_by == "" and (end := single.feed([token]))]
    end = at_once.feed(range(len(pieces)))
    single.finish()
    at_once.finish()

    assert at_once.text == single.text == text.split("a\n")[0]
    assert end == ((len(single.tokens), ends[0][1]) if ends else None)


@pytest.mark.parametrize("broken", [b"\xff", b"\xf0\x9f\x98", b"\xc3"])
def test_invalid_bytes_become_one_mark(broken: bytes) -> None:
    inside, at_end = reply([b"a", broken, b"b"]), reply([b"a", broken])

    inside.feed([0, 1, 2])
    at_end.feed([0, 1])
    inside.finish()
    at_end.finish()
    at_end.finish()

    assert inside.take() == f"a{MARK}b"
    assert at_end.take() == f"a{MARK}"


def test_half_a_character_is_not_shown_before_the_reply_ends() -> None:
    written = reply(["😀".encode()[:3], "😀".encode()[3:]])

    written.feed([0])

    assert written.take() == ""


def test_an_end_token_counts_but_is_not_part_of_the_reply() -> None:
    written = reply([b"a", b"b"])

    assert written.feed([0, END, 1]) == (2, Finish.END)
    assert (written.tokens, written.text, written.kept_tokens()) == ([0], "a", 1)


@pytest.mark.parametrize(
    ("pieces", "stop", "shown", "met", "count"),
    [
        ([b"a", b"ST", b"OP", b"x"], ["STOP"], "a", "STOP", 3),
        ([b"aSTOPx", b"y"], ["STOP"], "a", "STOP", 1),
        ([b"ST", b"ST", b"OP"], ["STOP"], "ST", "STOP", 3),
        ([b"aa", b"ab"], ["aab"], "a", "aab", 2),
        ([b"aba", b"bac"], ["abac"], "ab", "abac", 2),
        ([b"x", b"one two"], ["two", "one"], "x", "one", 2),
        ([b"abcd"], ["abcd", "bc"], "a", "bc", 1),
        ([b"ab", b"cd"], ["abcd", "bc"], "a", "bc", 2),
        ([b"abc"], ["abc", "bc"], "", "abc", 1),
        ([b"a", b"\xc3", b"\xa9b"], ["é"], "a", "é", 3),
        ([b"STOP"], ["STOP"], "", "STOP", 1),
    ],
)
def test_a_reply_ends_before_the_stop_string_that_is_complete_first(
    pieces: list[bytes], stop: list[str], shown: str, met: str, count: int
) -> None:
    written = reply(pieces, stop)

    end = written.feed(range(len(pieces)))
    written.finish()

    assert end == (count, Finish.STOP)
    assert (written.take(), written.stopped_by, len(written.tokens)) == (shown, met, count)


def test_text_held_for_a_stop_string_is_released_once_it_cannot_be_one() -> None:
    written = reply([b"a", b"ST", b"Ox"], ["STOP"])

    written.feed([0, 1])
    held = written.take()
    written.feed([2])

    assert held == "a"
    assert written.take() == "STOx"


def test_text_held_for_a_stop_string_is_released_at_the_end() -> None:
    written = reply([b"a", b"STO"], ["STOP"])

    written.feed([0, 1, END])
    written.finish()

    assert written.text == written.take() == "aSTO"
    assert written.kept_tokens() == 2


def test_an_empty_stop_string_stops_nothing() -> None:
    written = reply([b"a"], [""])

    assert written.feed([0]) is None
    assert written.text == "a"


stops = st.lists(st.text("abé", min_size=1, max_size=3), max_size=3)


@given(st.text("abé😀", max_size=10), places, stops)
def test_where_a_reply_stops_does_not_depend_on_how_it_is_cut_into_tokens(
    text: str, places: list[int], stop: list[str]
) -> None:
    pieces = cut(text.encode(), places)
    written = reply(pieces, stop)

    written.feed(range(len(pieces)))
    written.finish()

    ends = [
        (end, start) for end in range(len(text) + 1) for start in range(end) if any(text[start:end] == s for s in stop)
    ]
    assert written.text == text[: min(ends)[1] if ends else len(text)]


@given(
    st.lists(st.binary(max_size=3) | st.sampled_from([b"a", b"b", b"\xc3", b"\xa9", b"ab"]), max_size=8),
    stops,
)
def test_the_kept_tokens_are_the_most_that_lie_inside_the_shown_text(pieces: list[bytes], stop: list[str]) -> None:
    written = reply(pieces, stop)
    written.feed(range(len(pieces)))
    written.finish()

    kept = written.kept_tokens()

    # A prefix lies inside the text if one mark or more of the text is left for half a character at its end.
    fitting = [
        n
        for n in range(len(written.tokens) + 1)
        if len(b"".join(pieces[:n]).decode("utf-8", "replace")) <= len(written.text)
    ]
    if written.stopped_by:
        assert kept == max(fitting)
    else:
        assert kept == len(written.tokens) == len(pieces)
