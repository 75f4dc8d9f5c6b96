"""What reaches a terminal cannot steer it, and figures say what was counted."""

from __future__ import annotations

import os
import signal
import threading
import time
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.console import answer_to, end_interrupts, figures, on_interrupt, printable, size, watched
from specchat.plain import HELP
from specchat.session import Reply
from speculation.stats import Totals, totals
from speculation.types import PLAIN, Finish, Step


@given(st.text(st.characters() | st.sampled_from("\x1b\x07\x9b\u202e\u2066\u2028\x85\ud800\t\n")))
def test_no_text_can_steer_a_terminal(text: str) -> None:
    shown = printable(text)

    assert len(shown) == len(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not set(shown) & {"\x1b", "\x9b", "\u202e", "\u2066"}
    assert shown.encode().decode() == shown  # half of a surrogate pair could not be sent
    assert len(shown.splitlines()) == len(f"{shown}.".split("\n")) - (shown == "" or shown.endswith("\n"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("a\tb\nc", "a\tb\nc"),
        ("\r\x08\x7f\x9b31m", "␍␈\ufffd\ufffd31m"),
        ("naïve 👩‍👩‍👧‍👦 한국어", "naïve 👩‍👩‍👧‍👦 한국어"),
        ("safe\u202etxt.exe", "safe\ufffdtxt.exe"),
        ("a\u2028b\u2029c\ud800d\udfff", "a\ufffdb\ufffdc\ufffdd\ufffd"),
        ("\u05d0\u200f \u200bnot a line\u00ad", "\u05d0\u200f \u200bnot a line\u00ad"),
    ],
)
def test_control_characters_become_marks_and_text_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [(0, "0 B"), (999, "999 B"), (98362432, "98.4 MB"), (1117320768, "1.1 GB"), (491400064, "491 MB")],
)
def test_sizes_read_as_people_write_them(n_bytes: int, shown: str) -> None:
    assert size(n_bytes) == shown


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where keys are written to that standard input then has."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield ours
    os.close(ours)


@pytest.mark.parametrize(
    ("keys", "answer"), [("Yes \n", "yes"), ("\n", ""), ("\x04", None), ("y\x04\x04", None), ("n\ny\n", "n")]
)
def test_an_answer_is_a_line(keyboard: int, keys: str, answer: str | None) -> None:
    os.write(keyboard, keys.encode())

    assert answer_to("sure? ") == answer


def test_of_lines_typed_ahead_each_answers_one_question(keyboard: int) -> None:
    os.write(keyboard, b"n\ny\n")

    assert (answer_to("this? "), answer_to("that? ")) == ("n", "y")


def test_ctrl_c_that_interrupts_no_read_ends_a_question(keyboard: int) -> None:
    ended, typed = threading.Event(), threading.Event()

    def press() -> None:
        time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # this thread takes it
        if not ended.wait(20):
            typed.set()
            os.write(keyboard, b"too late\n")

    other = threading.Thread(target=press)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            answer_to("sure? ")
    finally:
        ended.set()
        other.join()
    assert not typed.is_set()


def step(guesser: str, drafted: int, accepted: int, seconds: float) -> Step:
    return Step(
        guesser, drafted, min(accepted + 1, drafted), accepted, tuple(range(accepted + 1)), 10, 0.0, seconds, 0.0
    )


def reply(counted: Totals, plain_step_s: float | None) -> Reply:
    return Reply("text", Finish.END, 7, counted, (), 57, 40, 17, 0.1, 0.2, plain_step_s)


def test_totals_add_up_what_the_steps_say() -> None:
    counted = totals([step(PLAIN, 0, 0, 0.03), step("lookup", 8, 3, 0.2), step("draft", 4, 4, 0.1)])

    assert (counted.steps, counted.emitted, counted.drafted, counted.examined, counted.accepted) == (3, 10, 12, 8, 7)
    assert counted.accepted_by == {"lookup": 3, "draft": 4}
    assert counted.alpha == 7 / 8
    assert counted.tokens_per_step == pytest.approx(10 / 3)
    assert (counted.plain_steps, counted.plain_s) == (1, 0.03)
    assert counted.tokens_per_s == pytest.approx(10 / 0.33)


def test_no_speed_up_is_shown_from_fewer_than_32_steps() -> None:
    few = totals([step("lookup", 3, 3, 0.1)] * 31)
    enough = totals([step("lookup", 3, 3, 0.1)] * 32)

    assert "est" not in figures(reply(few, 0.05))
    assert "x2.00 est" in figures(reply(enough, 0.05))
    assert "est" not in figures(reply(enough, None))


def test_figures_of_an_empty_reply_claim_nothing() -> None:
    assert figures(reply(Totals(), 0.03)) == "0 tokens · seed 7 · read 17, reused 40"


ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@pytest.mark.parametrize("asked", ENDS)
def test_being_asked_to_end_is_like_ctrl_c_inside_and_as_before_behind(asked: signal.Signals) -> None:
    before = signal.getsignal(asked)
    stopped: list[str] = []

    with end_interrupts():
        with on_interrupt(lambda: stopped.append("stop")):
            signal.raise_signal(asked)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(asked)

    assert stopped == ["stop"]
    assert signal.getsignal(asked) is before


@pytest.mark.parametrize("asked", ENDS)
def test_who_ignores_it_goes_on_ignoring_it(asked: signal.Signals) -> None:
    before = signal.signal(asked, signal.SIG_IGN)  # as nohup does
    try:
        with end_interrupts(), on_interrupt(lambda: pytest.fail("stopped")):
            signal.raise_signal(asked)
            assert signal.getsignal(asked) is signal.SIG_IGN
    finally:
        signal.signal(asked, before)


def test_watched_work_ends_with_ctrl_c_at_its_next_progress() -> None:
    with watched("work") as work:
        assert work.progress(0.5)
        signal.raise_signal(signal.SIGINT)
        assert not work.progress(0.6)
        assert not work.is_wanted


def test_the_help_of_line_mode_fits_a_narrow_terminal() -> None:
    assert max(map(len, HELP.splitlines())) < 80
