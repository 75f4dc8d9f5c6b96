"""A draft model that sat idle reads the reply in the next pause, and `auto` knows what it would have been worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from specchat.conversation import Message, Role
from specchat.session import ChatSession, Guess, Reply
from specchat.shadow import was_idle, written
from speculation.llama import LlamaModel
from speculation.sampling import GREEDY, SamplingConfig
from speculation.types import EngineFailure, Step
from tests.specchat.fake_target import FakeTarget, model_on, session_on

DEAR_S, CHEAP_S = 50.0, 0.01  # a token of the draft model; a plain step takes about one second
AT_ONCE = 7  # tokens of a reply that the draft model compares in a batch


def chat(tmp_path: Path, *, token_s: float = DEAR_S, **settings: object) -> ChatSession:
    """A session with a draft model that is so dear that nobody asks it, or so cheap that everybody does."""
    session = session_on(model_on(tmp_path), **{"sampling": GREEDY, "seed": 5, "max_tokens": 40, **settings})
    draft = model_on(tmp_path, name="small")
    draft._blur, draft.max_rows = 1.0, AT_ONCE
    session.engines.draft = cast(LlamaModel, draft)
    session.engines.draft_step_s = token_s
    session.guess = Guess.AUTO
    return session


def small(session: ChatSession) -> FakeTarget:
    return cast(FakeTarget, session.engines.draft)


def answer(session: ChatSession, question: str = "what is it?") -> Reply:
    *_, last = session.reply(question)
    assert isinstance(last, Reply)
    return last


def alpha(session: ChatSession) -> float:
    assert session._equipment.auto is not None
    return session._equipment.auto._drafters["draft"].alpha


def expected(session: ChatSession, reply: Reply, read: int | None = None) -> float:
    """What the controller should think: every token of the reply that no guess brought, looked at one by one."""
    text = session._engine.context.tokens.tolist()
    at, accepted, examined = reply.prompt_tokens, 0.0, 0.0
    until = len(text) if read is None else at + read
    for step in reply.steps:
        for i in range(len(step.tokens)):
            if i >= step.accepted and at < until:
                held = int(small(session).row_after(text[:at]).argmax()) == text[at]
                accepted, examined = 0.97 * accepted + held, 0.97 * examined + 1.0
            at += 1
    return (accepted + 0.7 * 8) / (examined + 8)


def test_afterwards_the_chooser_knows_how_often_the_draft_model_would_have_been_right(tmp_path: Path) -> None:
    session = chat(tmp_path)
    reply = answer(session)
    assert alpha(session) == 0.7
    before, target = list(session.messages), session.cached.tolist()

    compared = list(session.shadow())

    assert sum(compared) == reply.totals.emitted > 2 * AT_ONCE
    assert max(compared) == AT_ONCE
    assert alpha(session) == pytest.approx(expected(session, reply))
    assert alpha(session) != pytest.approx(0.7, abs=0.01)
    assert session._equipment.draft is not None
    assert session._equipment.draft.confidence.chance(0.9) != 0.05 + 0.9 * 0.9
    assert session.messages == before
    assert session.cached.tolist() == target


def test_its_cache_is_warm_then_and_nothing_is_heard_twice(tmp_path: Path) -> None:
    session = chat(tmp_path)
    answer(session)
    list(session.shadow())
    known, read = alpha(session), small(session).evaluated

    assert small(session).n_past == session.context_tokens - 1
    assert list(session.shadow()) == []
    assert alpha(session) == known
    assert small(session).evaluated == read
    session.guess = Guess.DRAFT
    prompt = session.engines.format.prompt([*session.messages, Message(Role.USER, "and?")])
    reply = answer(session, "and?")
    assert reply.totals.accepted_by.get("draft", 0) > 0
    shared = session.context_tokens - len(reply.steps) - len(prompt)
    assert small(session).evaluated - read < len(prompt) // 2 + 16 * len(reply.steps) + shared


def test_a_stop_leaves_what_was_heard_so_far_and_the_next_pause_goes_on_there(tmp_path: Path) -> None:
    session, whole = chat(tmp_path), chat(tmp_path)
    reply, _ = answer(session), answer(whole)

    first = []
    for compared in session.shadow():
        first.append(compared)
        if compared:
            session.stop()
    assert sum(first) == AT_ONCE
    assert alpha(session) == pytest.approx(expected(session, reply, sum(first)))
    rest = list(session.shadow())

    assert sum(first) + sum(rest) == reply.totals.emitted > 2 * AT_ONCE
    assert alpha(session) == pytest.approx(expected(session, reply))
    list(whole.shadow())
    assert alpha(session) == alpha(whole)
    assert small(session).evaluated == small(whole).evaluated
    assert answer(session, "why?").text == answer(whole, "why?").text


def test_a_stop_leaves_a_chat_in_which_the_draft_model_guesses_as_ever(tmp_path: Path) -> None:
    def second(*, listens: bool) -> Reply:
        session = chat(tmp_path)
        answer(session)
        for _ in session.shadow() if listens else ():
            session.stop()
        session.guess = Guess.DRAFT
        return answer(session, "and what else?")

    listened, fresh = second(listens=True), second(listens=False)

    assert listened.text == fresh.text
    assert listened.totals.accepted_by["draft"] > 0


@pytest.mark.parametrize("guess", [Guess.OFF, Guess.LOOKUP])
def test_nothing_is_read_where_auto_does_not_choose(tmp_path: Path, guess: Guess) -> None:
    session = chat(tmp_path)
    answer(session)
    session.guess = guess
    assert list(session.shadow()) == []
    answer(session)
    session.guess = Guess.AUTO

    assert list(session.shadow()) == []  # of a reply in which it did not choose either
    assert small(session).evaluated == 0


def test_nothing_is_read_without_a_draft_model(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path), sampling=GREEDY, max_tokens=40)
    assert list(session.shadow()) == []
    answer(session)

    assert list(session.shadow()) == []

    other = chat(tmp_path)
    answer(other)
    other.engines.draft = None
    other.guess = Guess.AUTO
    assert list(other.shadow()) == []


def test_a_draft_model_that_was_asked_learned_then_and_reads_nothing_again(tmp_path: Path) -> None:
    session = chat(tmp_path, token_s=CHEAP_S)
    reply = answer(session)
    assert reply.totals.accepted_by.get("draft", 0) > 0

    assert list(session.shadow()) == []


@pytest.mark.parametrize(
    ("rule", "temperature", "reads"),
    [("coupled", 0.8, True), ("rejection", 0.8, False), ("rejection", 0.0, True), ("block", 0.8, False)],
)
def test_what_would_have_been_drawn_is_known_only_where_the_seed_says_it(
    tmp_path: Path, rule: str, temperature: float, reads: bool
) -> None:
    session = chat(tmp_path, rule=rule, sampling=SamplingConfig(temperature=temperature))
    answer(session)

    assert bool(list(session.shadow())) == reads


def test_other_settings_of_sampling_would_have_drawn_otherwise(tmp_path: Path) -> None:
    session = chat(tmp_path)
    answer(session)
    session.settings = type(session.settings)(sampling=SamplingConfig(temperature=1.5))
    session.guess = Guess.AUTO

    assert list(session.shadow()) == []


@pytest.mark.parametrize(("token_s", "read"), [(DEAR_S, [0, 2, 6]), (CHEAP_S, list(range(8)))])
def test_without_hope_it_reads_ever_more_seldom(tmp_path: Path, token_s: float, read: list[int]) -> None:
    session = chat(tmp_path)
    found = []
    for i in range(8):
        session.messages = []
        answer(session, f"question {'abcdefgh'[i]}?")
        assert session._equipment.auto is not None
        seconds = session._equipment.auto._drafters["draft"]._seconds
        seconds.extend([token_s] * 9)
        if list(session.shadow()):
            found.append(i)
        seconds.extend([DEAR_S] * 9)  # so that nobody asks it in the next reply

    assert found == read


def test_a_draft_model_that_fails_is_not_asked_again_for_this_reply(tmp_path: Path) -> None:
    session = chat(tmp_path)
    answer(session)

    def fails(*args: object, **kwargs: object) -> None:
        raise EngineFailure("no room")

    small(session).forward = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(EngineFailure):
        list(session.shadow())

    assert list(session.shadow()) == []
    assert answer(session, "and?").text


def steps_of(*counts: tuple[str, int, int]) -> Sequence[Step]:
    """(guesser, examined, accepted) of each."""
    return [Step(name, n, n, accepted, (0,) * (accepted + 1), 0, 0.0, 0.0, 0.0) for name, n, accepted in counts]


def test_a_guesser_was_idle_that_was_asked_for_one_token_in_ten_at_most() -> None:
    plain = [("plain", 0, 0)] * 9
    assert was_idle("draft", steps_of(*plain, ("draft", 1, 0)))
    assert not was_idle("draft", steps_of(*plain, ("draft", 2, 0)))
    assert was_idle("draft", steps_of(("lookup", 9, 9)))


def test_only_the_tokens_that_no_guess_brought_are_a_draft_models_concern(tmp_path: Path) -> None:
    session = chat(tmp_path)
    answer(session)
    tokens = session._engine.context.tokens

    found = written(tokens, 3, steps_of(("lookup", 4, 2), ("plain", 0, 0), ("lookup", 1, 0)), GREEDY, 7)

    assert found.own == {5, 6, 7}
