"""Steps, tokens and spans come back as they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.history.packing import PackedSteps, pack_steps, pack_tokens, unpack_steps, unpack_tokens
from specchat.history.spans import spans_as_json, spans_from_json, with_turns
from specchat.provenance import Author, Origin, Span
from speculation.types import PLAIN, Step
from tests.specchat.history import making
from tests.specchat.history.making import step


@given(st.lists(making.steps, max_size=30))
def test_steps_come_back_as_they_were(steps: list[Step]) -> None:
    assert unpack_steps(pack_steps(steps)) == tuple(steps)


def test_times_come_back_as_32_bit_floats() -> None:
    third = Step(PLAIN, 0, 0, 0, (1,), 9, 1 / 3, 1 / 7, 0.0)

    [back] = unpack_steps(pack_steps([third]))

    assert back.draft_s == pytest.approx(1 / 3, rel=1e-7)
    assert pack_steps([back]) == pack_steps([third])


def test_a_long_reply_takes_less_than_40_bytes_a_step() -> None:
    steps = [
        Step("draft_model", 8, 5, n % 5, tuple(range(n % 5 + 1)), 100 + 3 * n, 0.01 + n * 1e-5, 0.03 + n * 3e-6, 0.001)
        for n in range(400)
    ]

    assert len(pack_steps(steps)) < 40 * len(steps)


@pytest.mark.parametrize("damage", [b"", b"\0", pack_steps([step(1), step(2)])[:-9], b"\x09" + pack_steps([])[1:]])
def test_bytes_that_are_no_steps_are_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match="steps"):
        unpack_steps(damage)


def test_packed_steps_know_their_number_before_they_are_unpacked() -> None:
    steps = PackedSteps(pack_steps([step(1), step(2)])[:-4])

    assert len(steps) == 2
    with pytest.raises(ValueError, match="steps"):
        steps[0]


def test_packed_steps_are_like_the_tuple() -> None:
    steps = (step(1), step(2, 3), step(4))

    packed = PackedSteps(pack_steps(steps))

    assert packed == steps
    assert steps == packed
    assert (packed[1], packed[1:], list(packed)) == (steps[1], steps[1:], list(steps))
    assert packed != steps[:2]


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=200))
def test_tokens_come_back_as_they_were(tokens: list[int]) -> None:
    assert unpack_tokens(pack_tokens(tokens)) == tuple(tokens)


def test_tokens_that_repeat_are_compressed() -> None:
    assert len(pack_tokens([1, 2] * 500)) < 100


def test_damaged_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="tokens"):
        unpack_tokens(b"\1none")


@given(st.lists(making.spans, max_size=10))
def test_spans_come_back_through_json(spans: list[Span]) -> None:
    assert spans_from_json(json.loads(json.dumps(spans_as_json(spans)))) == tuple(spans)


def test_an_origin_is_written_once() -> None:
    origin = Origin(Author.FILE, "a.txt", 3, 1, 9)

    written = spans_as_json([Span(n, n + 1, Author.FILE, n, origin) for n in range(5)])

    assert written is not None
    assert len(written["origins"]) == 1


def test_origins_are_called_by_the_ids_of_the_store() -> None:
    spans = [
        Span(0, 1, Author.TURN, 0, Origin(Author.TURN, "an earlier reply", 1, 2, 0)),
        Span(1, 2, Author.MODEL, 1, None),
    ]

    [first, second] = with_turns(spans, {2: 5}.get)

    assert first.origin is not None
    assert (first.origin.turn, second.origin) == (5, None)
