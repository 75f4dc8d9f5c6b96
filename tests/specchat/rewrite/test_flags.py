"""Flags: quiet edits, shaky edits, and what only moves spaces."""

from __future__ import annotations

import pytest

from specchat.rewrite.extract import Extracted
from specchat.rewrite.flags import Flag, Kind, Rejection, by_risk, doubts, flags, rejections
from specchat.rewrite.hunks import review
from specchat.rewrite.source import source_of
from speculation.types import Step

PLAIN = [f"line {chr(97 + i % 26)} of the text" for i in range(60)]


def written(lines: list[str]) -> Extracted:
    offsets: list[int] = []
    at = 0
    for line in lines:
        offsets.append(at)
        at += len(line) + 1
    return Extracted(tuple(lines), tuple(offsets), (), True, True)


def flagged(
    old: list[str], new: list[str], rejected: list[Rejection] | None = None, instruction: str = "fix spelling"
) -> list[Flag]:
    source = source_of("".join(f"{line}\n" for line in old).encode(), "a")
    return flags(source, review(source, new).hunks, written(new), rejected or [], instruction)


def edited(line: str, other: str, instruction: str = "fix spelling") -> list[Kind]:
    old, new = [*PLAIN, line, *PLAIN], [*PLAIN, other, *PLAIN]
    return [flag.kind for flag in flagged(old, new, instruction=instruction)]


def step(**facts: object) -> Step:
    known = {"guesser": "lookup", "drafted": 3, "examined": 2, "accepted": 1, "tokens": (7, 8), "context": 50}
    times = {"draft_s": 0.0, "verify_s": 0.0, "accept_s": 0.0}
    return Step(**{**known, **times, "source": 5, "p_rejected": 0.46, "p_chosen": 0.53, **facts})  # type: ignore[arg-type]


def test_a_rejection_stands_at_the_token_that_was_written_instead() -> None:
    found = rejections([step(tokens=(1, 2, 3), accepted=3, p_rejected=None), step()], [2, 5, 9, 12, 20])

    assert found == [Rejection(12, 20, 0.46, 0.53)]


@pytest.mark.parametrize("facts", [{"source": None}, {"source": 99}, {"p_rejected": None}, {"drafted": 1}])
def test_only_rejected_copies_of_the_file_count(facts: dict[str, object]) -> None:
    assert rejections([step(**facts)], [2, 5], lambda index: index < 20) == []


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("wait for 3000 ms", "wait for 30000 ms"),
        ("about 3.14 or so", "about 3.15 or so"),
        ("see https://a.org/x there", "see https://a.org/y there"),
        ("this is not safe", "this is safe"),
        ("if a == b", "if a != b"),
        ("we asked Miller about it", "we asked Muller about it"),
        ("call read_all here", "call read_any here"),
        ("it isn't so", "it is so"),
    ],
)
def test_a_lonely_edit_of_what_matters_is_quiet(line: str, other: str) -> None:
    assert edited(line, other) == [Kind.QUIET]


@pytest.mark.parametrize(("line", "other"), [("teh cat", "the cat"), ("Teh cat", "The cat"), ("it goed", "it went")])
def test_a_corrected_word_is_not_quiet(line: str, other: str) -> None:
    assert edited(line, other) == []


def test_what_the_request_names_is_not_quiet() -> None:
    assert edited("wait for 3000 ms", "wait for 30000 ms", "raise it to 30000") == []


def test_an_edit_among_others_is_not_quiet() -> None:
    old = [*PLAIN, "wait 3000", "a", "b", "c", "d", "teh cat", *PLAIN]
    new = [*PLAIN, "wait 30000", "a", "b", "c", "d", "the cat", *PLAIN]

    assert flagged(old, new) == []


def test_a_long_edit_is_not_quiet() -> None:
    assert edited("wait for 3000 ms", "wait some 30000 long and very dull seconds") == []


def test_a_near_tie_inside_a_hunk_is_shaky_and_says_the_figures() -> None:
    old, new = [*PLAIN, "teh cat", *PLAIN], [*PLAIN, "the cat", *PLAIN]
    at = written(new).offsets[len(PLAIN)]

    (flag,) = flagged(old, new, [Rejection(at, at + 3, 0.46, 0.53)])

    assert (flag.kind, flag.line, flag.p_old, flag.p_new) == (Kind.SHAKY, len(PLAIN) + 1, 0.46, 0.53)


@pytest.mark.parametrize("rejected", [Rejection(0, 3, 0.46, 0.53), Rejection(1140, 1143, 0.02, 0.94)])
def test_a_sure_edit_or_a_tie_elsewhere_is_not_shaky(rejected: Rejection) -> None:
    old, new = [*PLAIN, "teh cat", *PLAIN], [*PLAIN, "the cat", *PLAIN]
    assert written(new).offsets[len(PLAIN)] == 1140

    assert flagged(old, new, [rejected]) == []


def test_leaving_out_a_line_belongs_to_the_token_behind_it() -> None:
    old = [*PLAIN, "gone", *PLAIN]
    source = source_of("".join(f"{line}\n" for line in old).encode(), "a")
    new = written([*PLAIN, *PLAIN])
    at = new.offsets[len(PLAIN)]
    hunk = review(source, list(new.lines)).hunks[0]

    assert doubts(hunk, new, [Rejection(at, at + 4, 0.3, 0.6)])
    assert doubts(hunk, new, [Rejection(at - 1, at + 4, 0.3, 0.6)])
    assert not doubts(hunk, new, [Rejection(at - 9, at - 2, 0.3, 0.6)])


def test_leaving_out_the_last_line_belongs_to_the_end() -> None:
    source = source_of(b"a\nb\n", "a")
    new = written(["a"])

    assert doubts(review(source, ["a"]).hunks[0], new, [Rejection(2, 9, 0.3, 0.6)])


@pytest.mark.parametrize(("line", "other"), [("a b", "a  b"), ("    x", "\tx"), ("x  ", "x")])
def test_only_spaces_are_flagged(line: str, other: str) -> None:
    assert edited(line, other) == [Kind.WHITESPACE]


def test_the_doubtful_hunks_come_first() -> None:
    old = ["teh cat", *PLAIN, "x  ", *PLAIN, "wait 3000", *PLAIN, "teh dog"]
    new = ["the cat", *PLAIN, "x", *PLAIN, "wait 30000", *PLAIN, "the dog"]
    source = source_of("".join(f"{line}\n" for line in old).encode(), "a")
    hunks = review(source, new).hunks

    assert [hunk.id for hunk in by_risk(hunks, flagged(old, new))] == ["3", "2", "1", "4"]
