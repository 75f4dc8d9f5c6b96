"""Server-sent events: what any cut of the bytes gives, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.remote.errors import StreamBroken
from specchat.remote.events import Events, Limits

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)


def read(data: bytes, cuts: list[int], limits: Limits | None = None) -> list[str]:
    events = Events(limits or Limits())
    edges = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    return [event for a, b in itertools.pairwise(edges) for event in events.feed(data[a:b])]


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=6), ENDS, st.lists(st.integers(0, 400), max_size=12))
def test_wherever_the_bytes_are_cut_the_events_are_the_same(said: list[list[str]], end: str, cuts: list[int]) -> None:
    stream = "".join(f"{''.join(f'data: {line}{end}' for line in event)}{end}" for event in said)
    assert read(stream.encode(), cuts) == ["\n".join(event) for event in said]


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_no_bytes_at_all_make_it_fail_and_cuts_never_matter(data: bytes, cuts: list[int]) -> None:
    assert read(data, cuts) == read(data, [])


def test_a_character_that_two_reads_share_is_whole() -> None:
    data = "data: naïve 漢字\n\n".encode()
    for cut in range(len(data)):
        assert read(data, [cut]) == ["naïve 漢字"]


def test_a_line_feed_belongs_to_one_carriage_return_only() -> None:
    data = b"data: a\r\n\r\n\ndata: b\r\r"
    assert read(data, list(range(len(data)))) == read(data, []) == ["a", "b"]


def test_comments_other_fields_and_a_byte_order_mark_are_no_text() -> None:
    data = b"\xef\xbb\xbfdata: a\n\n: ping\n\nevent: x\nid: 7\ndata:b\n\nretry\n\n"
    assert read(data, []) == ["a", "b"]


def test_an_event_that_is_not_closed_is_not_given_but_known() -> None:
    events = Events()
    assert list(events.feed(b"data: half")) == []
    assert not events.is_between
    assert list(events.feed(b"\n\n")) == ["half"]
    assert events.is_between


@pytest.mark.parametrize(
    ("data", "limits", "said"),
    [
        (b"data: " + b"x" * 100, Limits(line=50), "a line of more than 50 bytes"),
        (b"data: " + b"x" * 100 + b"\n\n", Limits(line=50), "a line of more than 50 bytes"),
        (b"data: xxxxxxxxxx\n" * 9, Limits(event=50), "an event of more than 50 bytes"),
        (b": ping\n" * 9, Limits(total=50), "without end"),
    ],
)
def test_what_is_too_large_is_refused_in_one_line(data: bytes, limits: Limits, said: str) -> None:
    with pytest.raises(StreamBroken, match=said) as caught:
        read(data, [], limits)
    assert "\n" not in str(caught.value)
