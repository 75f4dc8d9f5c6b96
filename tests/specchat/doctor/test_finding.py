"""How findings are told, and that a check which breaks stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from specchat.doctor.finding import Check, Finding, Verdict, findings_of, note, ok
from specchat.errors import InputRefused


def test_a_check_that_breaks_is_a_problem_and_the_next_one_runs() -> None:
    def breaks() -> Iterator[Finding]:
        yield ok("first", "half of it")
        raise ValueError("words of the user")

    found = list(findings_of([Check("first", breaks), Check("second", lambda: [ok("second", "fine")])]))

    assert [(each.check, each.verdict) for each in found] == [
        ("first", Verdict.OK),
        ("first", Verdict.PROBLEM),
        ("second", Verdict.OK),
    ]
    assert found[1].said == "cannot be checked: ValueError"


def test_an_error_that_was_made_for_people_is_told_in_its_own_words() -> None:
    def refuses() -> Iterator[Finding]:
        raise InputRefused("the catalogue is broken")

    (finding,) = findings_of([Check("catalogue", refuses)])

    assert finding.said == "cannot be checked: the catalogue is broken"


def test_an_error_of_the_system_is_told_in_its_words_without_names_of_files(tmp_path: Path) -> None:
    (finding,) = findings_of([Check("models", lambda: [ok("models", (tmp_path / "secret").read_text())])])

    assert finding.said == "cannot be checked: No such file or directory"


def test_the_advice_has_a_line_of_its_own() -> None:
    assert note("disk", "is full", "make room").lines() == ["note     disk: is full", "         make room"]


def test_a_width_wraps_what_is_said_between_words_and_never_a_command() -> None:
    command = "CMAKE_ARGS=-DGGML_CUDA=on pip install " + "x" * 60

    lines = note("back end", "the processor works and something better is here", command).lines(40)

    assert lines == [
        "note     back end: the processor works",
        "         and something better is here",
        f"         {command}",
    ]


def test_json_has_what_the_line_has_and_the_figures() -> None:
    assert ok("disk", "free", free=7).as_json == {
        "check": "disk",
        "verdict": "ok",
        "said": "free",
        "advice": None,
        "values": {"free": 7},
    }
