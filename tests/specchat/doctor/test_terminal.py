"""What terminals say of themselves, and what is made of it."""

from __future__ import annotations

import pytest

from specchat.doctor.finding import Finding, Verdict
from specchat.doctor.terminal import Terminal, check_terminal, colours, tells_keys_apart

GOOD = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def look(
    environ: dict[str, str], *, columns: int = 100, rows: int = 40, encoding: str = "utf-8", is_one: bool = True
) -> Finding:
    (finding,) = check_terminal(Terminal(environ, is_one, columns, rows, encoding, "linux"))
    return finding


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({}, 0),
        ({"TERM": "dumb"}, 0),
        ({"TERM": "xterm-kitty", "NO_COLOR": "1"}, 0),
        ({"TERM": "linux"}, 16),
        ({"TERM": "screen-256color"}, 256),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, 1 << 24),
        ({"WT_SESSION": "1"}, 1 << 24),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, 256),
    ],
)
def test_colours_are_counted_by_what_the_terminal_sets(environ: dict[str, str], count: int) -> None:
    assert colours(environ, "linux") == count


@pytest.mark.parametrize(
    ("environ", "apart"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, False),
        ({}, False),
    ],
)
def test_keys_are_told_apart_by_terminals_that_are_known_to_and_not_behind_tmux(
    environ: dict[str, str], apart: bool
) -> None:
    assert tells_keys_apart(environ) is apart


def test_a_good_terminal_is_ok_and_says_how_to_make_a_new_line() -> None:
    finding = look(GOOD)

    assert finding.verdict is Verdict.OK
    assert "100 columns, 40 rows, all colours" in finding.said
    assert "Ctrl+J" in finding.said


@pytest.mark.parametrize(
    ("environ", "change", "said", "advice"),
    [
        ({"TERM": "dumb"}, {}, "cannot place the cursor", "specchat --plain"),
        (GOOD, {"encoding": "ascii"}, "are not UTF-8", "LANG=C.UTF-8"),
        (GOOD, {"columns": 60}, "it is small", "80 columns by 24 rows"),
        ({"TERM": "screen-256color", "TMUX": "x"}, {}, "tmux passes on fewer colours", "COLORTERM=truecolor"),
    ],
)
def test_what_is_in_the_way_is_a_note_that_says_what_to_do(
    environ: dict[str, str], change: dict[str, object], said: str, advice: str
) -> None:
    finding = look(environ, **change)  # type: ignore[arg-type]

    assert finding.verdict is Verdict.NOTE
    assert said in finding.said
    assert advice in finding.advice


def test_where_there_is_none_nothing_is_wrong() -> None:
    finding = look({"TERM": "dumb"}, is_one=False)

    assert finding.verdict is Verdict.OK
    assert finding.values == {"is_one": False}


def test_a_name_that_steers_the_terminal_is_made_harmless() -> None:
    assert "\x1b" not in "".join(look({"TERM": "evil\x1b[2J"}).lines())
