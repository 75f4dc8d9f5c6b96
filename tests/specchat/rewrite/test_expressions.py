"""Regular expressions of the user's: what they match, and that none of them can hold up a rewrite."""

from __future__ import annotations

import re
import signal
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.errors import UsageError
from specchat.rewrite import expressions
from specchat.rewrite.checks import check, rails
from specchat.rewrite.expressions import Expression
from specchat.rewrite.part import changes_in, whole
from specchat.rewrite.source import joined, source_of
from tests.specchat.rewrite.shell import TEXT, Shell, put

ENDLESS = "a" * 60 + "!"  # (a+)+$ tries every way to cut this into runs
can_stop = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarm")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MOST_S", 0.1)


@can_stop
@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "(?:a*)*$", "((a{1,30}){1,30}){1,30}$", "(.*a){25}!!"])
def test_an_expression_that_does_not_come_to_an_end_is_refused_by_its_name(impatient: None, text: str) -> None:
    wanted = Expression(text, "--match")

    with pytest.raises(UsageError) as of_lines:
        wanted.lines([ENDLESS], "a.txt")
    with pytest.raises(UsageError) as of_text:
        wanted.spans(ENDLESS, "a.txt")

    assert str(of_lines.value) == str(of_text.value)
    assert str(of_text.value).startswith(f"--match {text} takes more than 0.1 seconds to look for in a.txt")


def spans(text: str) -> object:
    return Expression(text, "--protect").spans(ENDLESS, "a.txt")


@can_stop
def test_behind_a_refusal_and_behind_a_match_no_alarm_is_left(impatient: None) -> None:
    before = signal.getsignal(signal.SIGALRM)

    with pytest.raises(UsageError):
        spans("(a+)+$")
    assert spans("!") == ((60, 61),)

    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_in_a_thread_that_no_signal_reaches_it_matches_without_an_alarm() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(spans("!")))

    thread.start()
    thread.join()

    assert found == [((60, 61),)]


@can_stop
@pytest.mark.parametrize(
    "flags",
    [["--match", "(a+)+$"], ["--protect", "(a+)+$"], ["--between", "(a+)+$", "b"], ["--between", "!", "(a+)+$"]],
)
@pytest.mark.parametrize("mode", ["--write", "--dry-run", "--diff"])
def test_on_a_command_line_that_is_one_line_and_exit_2_and_nothing_is_written(
    shell: Shell, impatient: None, flags: list[str], mode: str
) -> None:
    path = put("a.txt", f"x!\n{ENDLESS}\n{TEXT}")

    done = shell("rewrite", "a.txt", "do it", mode, *flags)

    assert done.code == 2
    assert done.err.count("\n") == 1
    assert f"{flags[0]} (a+)+$ takes more than" in done.err
    assert path.read_text() == f"x!\n{ENDLESS}\n{TEXT}"
    assert not shell.model.prompts


def test_a_long_expression_is_shortened_where_it_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Expression("(" * 10_000, "--match")

    assert len(str(refused.value)) < 300


def test_an_expression_that_may_mean_something_else_one_day_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert Expression("[[a]", "--match").lines(["[", "b", "a"], "a.txt") == [0, 2]
    assert not recwarn.list


LINES = st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=6)


@given(LINES, LINES, st.lists(st.sampled_from(["a", "b", "^", "$", "b\n", "a\nb", "(?s)a.*b", "^a$"]), max_size=3))
def test_a_change_is_refused_where_it_touches_what_an_expression_matches(
    old: list[str], new: list[str], protect: list[str]
) -> None:
    source = source_of(joined(old).encode(), "a.txt")
    changes = changes_in(source, whole(source), new)
    starts = [len(joined(old[:i])) for i in range(len(old) + 1)]
    wanted = {
        each.start + 1
        for each in changes
        for text in protect
        for found in re.finditer(text, joined(old), re.MULTILINE)
        if found.start() < starts[each.end] and starts[each.start] < found.end() and found[0]
    }

    found = check(source, changes, rails(protect=protect))

    assert {each.line for each in found if each.problem == "protected"} == wanted or not "".join(new).strip()
