"""The mode `recycling` of a session: guesses out of rows that were computed anyway, and the plain text."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.session import Guess, Reply
from speculation.types import PLAIN, CannotRewind
from tests.specchat.fake_target import model_on, session_on


def reply(folder: Path, guess: Guess) -> Reply:
    session = session_on(model_on(folder), seed=4, max_tokens=200)
    session.guess = guess
    return next(event for event in session.reply("what is a brick good for?") if isinstance(event, Reply))


def test_recycling_and_leftovers_guess_and_the_text_is_the_plain_one(tmp_path: Path) -> None:
    plain, recycled = reply(tmp_path, Guess.OFF), reply(tmp_path, Guess.RECYCLING)

    assert recycled.text == plain.text
    assert {PLAIN, "recycling"} <= {step.guesser for step in recycled.steps} <= {PLAIN, "recycling", "leftovers"}


def test_auto_leaves_the_free_guessers_out(tmp_path: Path) -> None:
    guessers = {step.guesser for step in reply(tmp_path, Guess.AUTO).steps}

    assert guessers <= {PLAIN, "lookup"}


def test_a_change_to_recycling_in_mid_reply_is_exact(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path), seed=4, max_tokens=200)
    modes = [Guess.RECYCLING, Guess.LOOKUP, Guess.OFF, Guess.RECYCLING, Guess.AUTO]

    events = []
    for i, event in enumerate(session.reply("what is a brick good for?")):
        events.append(event)
        session.guess = modes[i // 5 % len(modes)]

    assert isinstance(events[-1], Reply)
    assert events[-1].text == reply(tmp_path, Guess.OFF).text


def test_a_target_that_cannot_rewind_refuses_recycling(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path, can_rewind=False))

    with pytest.raises(CannotRewind):
        session.guess = Guess.RECYCLING
