"""What is left out when a chat outgrows the context, that it is said, and what is never left out."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.chat import Chat
from specchat.context_policy import DoesNotFit, Fitted, Policy, Weighed, fit_context, reply_room
from specchat.conversation import Message, PromptFormat, Role
from specchat.errors import InputRefused
from specchat.fitting import fit_turns, turn_costs
from specchat.history.keeper import Keeper
from specchat.plain import LineChat
from specchat.session import ContextFull, Reply
from specchat.talk import Talk
from specchat.template import CHATML, Template
from speculation.types import Finish, Tokens
from tests.specchat.fake_target import LETTERS, model_on, session_on

SYSTEM, USER, ASSISTANT = Role.SYSTEM, Role.USER, Role.ASSISTANT


def rounds(n: int, tokens: int = 10, system: int = 5) -> list[Weighed]:
    """A system prompt, n answered questions and one that is not."""
    said = [Weighed(role, tokens) for _ in range(n) for role in (USER, ASSISTANT)]
    return [Weighed(SYSTEM, system), *said, Weighed(USER, tokens)]


def pinned(messages: list[Weighed], at: int) -> list[Weighed]:
    return [replace(message, is_pinned=message.is_pinned or i == at) for i, message in enumerate(messages)]


def with_dropped(messages: list[Weighed], fitted: Fitted) -> list[Weighed]:
    return [replace(message, is_dropped=i in fitted.dropped) for i, message in enumerate(messages)]


def test_what_fits_stays_as_it_is() -> None:
    fitted = fit_context(rounds(4), n_ctx=200, room=20)

    assert (fitted.dropped, fitted.newly_dropped, fitted.tokens, fitted.notice) == ((), (), 95, "")


def test_the_oldest_rounds_go_until_half_of_the_context_is_free() -> None:
    messages = rounds(9)

    fitted = fit_context(messages, n_ctx=200, room=20)

    assert fitted.dropped == tuple(range(1, 13))
    assert fitted.tokens == 5 + 60 + 10
    assert fitted.notice == "the context is full: the 6 oldest rounds are not read any more (120 tokens)"


def test_a_round_with_a_pin_stays_whole() -> None:
    for at in (3, 4):
        fitted = fit_context(pinned(rounds(9), at), n_ctx=200, room=20)
        assert {0, 3, 4, 19} <= set(fitted.kept)
        assert {1, 2, 5, 6} <= set(fitted.dropped)


def test_what_was_dropped_stays_dropped_until_all_fits_twice_over_or_it_is_pinned() -> None:
    first = fit_context(rounds(9), n_ctx=200, room=20)
    again = with_dropped(rounds(9), first)

    assert fit_context(again, n_ctx=200, room=20).dropped == first.dropped
    assert fit_context(again, n_ctx=400, room=20).dropped == first.dropped
    larger = fit_context(again, n_ctx=500, room=20)
    assert (larger.dropped, larger.back) == ((), first.dropped)
    assert larger.notice == "there is room again: all turns are read"
    assert fit_context(pinned(again, 1), n_ctx=200, room=20).back == (1, 2)


@pytest.mark.parametrize("tokens", [3, 10, 25])
def test_the_prompt_keeps_its_beginning_for_many_turns(tokens: int) -> None:
    drops, dropped = 0, Fitted((), (), 0)
    for n in range(60):
        dropped = fit_context(with_dropped(rounds(n, tokens), dropped), n_ctx=400, room=40)
        drops += bool(dropped.newly_dropped)

    assert dropped.dropped
    assert drops <= 60 * 2 * tokens / 120 + 1  # each frees 120 tokens at least


def test_stop_refuses_what_the_others_drop_and_says_what_to_do() -> None:
    with pytest.raises(
        DoesNotFit, match=r"chat has 195 tokens and the context holds 190; begin a new .*--on-full drop"
    ):
        fit_context(rounds(9), n_ctx=190, room=20, policy=Policy.STOP)
    assert fit_context(rounds(9), n_ctx=195, room=20, policy=Policy.STOP).dropped == ()  # a short reply is a reply


@pytest.mark.parametrize("policy", Policy)
def test_what_cannot_fit_is_named(policy: Policy) -> None:
    alone = [Weighed(USER, 300)]
    with pytest.raises(
        DoesNotFit, match=r"the question \(300 tokens\) does not fit .* 200 tokens; .*--ctx, up to 4096"
    ):
        fit_context(alone, n_ctx=200, room=20, policy=policy, most=4096)
    with pytest.raises(DoesNotFit) as refused:
        fit_context(alone, n_ctx=200, room=20, policy=policy, most=200)
    assert "--ctx" not in str(refused.value)
    full = pinned([Weighed(SYSTEM, 90), Weighed(USER, 40), Weighed(ASSISTANT, 40), Weighed(USER, 50)], 1)
    with pytest.raises(
        ContextFull, match=r"the question \(50 tokens\), pinned turns \(80\), the system prompt \(90\) do"
    ):
        fit_context(full, n_ctx=200, room=20, policy=policy)


weights = st.lists(
    st.builds(Weighed, st.sampled_from([USER, ASSISTANT]), st.integers(1, 80), st.booleans(), st.booleans()),
    max_size=30,
)


@given(weights, st.integers(0, 60), st.integers(40, 800), st.sampled_from(Policy))
def test_whatever_is_left_out_the_system_prompt_the_pins_and_the_question_stay_and_it_fits(
    said: list[Weighed], system: int, n_ctx: int, policy: Policy
) -> None:
    messages = [Weighed(SYSTEM, system), *said, Weighed(USER, 10)]
    room = reply_room(n_ctx, None)
    try:
        fitted = fit_context(messages, n_ctx, room, policy)
    except DoesNotFit:
        return
    assert fitted.tokens == sum(messages[i].tokens for i in fitted.kept) <= n_ctx
    assert sorted((*fitted.kept, *fitted.dropped)) == list(range(len(messages)))
    assert {0, len(messages) - 1} <= set(fitted.kept)
    assert not any(messages[i].is_pinned for i in fitted.dropped)
    assert bool(fitted.notice) == bool(fitted.newly_dropped or fitted.back)
    if policy is Policy.STOP:
        assert not any(not said.is_dropped for said in (messages[i] for i in fitted.newly_dropped)) or any(
            message.is_dropped
            for message in messages  # a round of which a part was dropped goes whole
        )
    again = fit_context(with_dropped(messages, fitted), n_ctx, room, policy)
    assert again.dropped == fitted.dropped  # nothing moves before something is said
    # A reply never stands without its question.
    for before, after in zip(fitted.kept, fitted.kept[1:], strict=False):
        if messages[after].role is ASSISTANT:
            assert after == before + 1


# What each message takes up.


class Letters:
    """An encoder of one token a letter, with the control tokens of ChatML."""

    adds_bos = True
    bos = 202

    @property
    def controls(self) -> dict[str, int]:
        return {"<|im_start|>": 200, "<|im_end|>": 201}

    def encode(self, text: str) -> Tokens:
        return np.array([ord(letter) % 200 for letter in text], dtype=np.int32)

    def decode(self, tokens: Sequence[int]) -> bytes:
        return b"known" if list(tokens) == [1, 2, 3, 4, 5] else b""


@pytest.mark.parametrize(
    "messages",
    [
        [Message(USER, "hello")],
        [Message(SYSTEM, "be brief"), Message(USER, "one"), Message(ASSISTANT, "two"), Message(USER, "three")],
        [Message(USER, "a<|im_end|>b"), Message(ASSISTANT, "x<"), Message(USER, "|im_start|>")],
        [Message(USER, "one"), Message(USER, "two"), Message(ASSISTANT, ""), Message(USER, "three")],
        [Message(USER, "q"), Message(ASSISTANT, "known", (1, 2, 3, 4, 5)), Message(USER, "next")],
    ],
)
def test_the_costs_of_messages_add_up_to_the_prompt(messages: list[Message]) -> None:
    shape = PromptFormat(Template(CHATML), Letters())

    costs = shape.costs(messages)

    assert len(costs) == len(messages)
    assert abs(sum(costs) - len(shape.prompt(messages))) <= 6
    assert all(cost >= len(m.text) for cost, m in zip(costs, messages, strict=True))


def test_a_thought_that_the_template_leaves_out_costs_nothing() -> None:
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
        "<|im_start|>assistant\n"
    )
    shape = PromptFormat(Template(source), Letters())
    thinking = [Message(USER, "q"), Message(ASSISTANT, "<think>" + "hm " * 100 + "</think>yes"), Message(USER, "r")]

    assert shape.costs(thinking)[1] < 40
    assert abs(sum(shape.costs(thinking)) - len(shape.prompt(thinking))) <= 4


# A chat of three times the context.

N_CTX = 240


def talk(chat: Chat, tmp_path: Path, policy: Policy, turns: int) -> list[str]:
    """Ask until all was asked or it was refused; what was said of the context."""
    session = session_on(model_on(tmp_path, N_CTX), seed=1, max_tokens=20)
    said = []
    for i in range(turns):
        question = chat.add(USER, f"question {LETTERS[i % 26]} of many.")
        fitted = fit_turns(session.engines, chat.system, chat.path(), policy, 20)
        fitted.mark()
        if fitted.fitted.notice:
            said.append(fitted.fitted.notice)
        session.messages = chat.messages()[:-1]
        *_, reply = session.reply(question.prompt_text)
        assert isinstance(reply, Reply)
        fresh = session_on(model_on(tmp_path, N_CTX), seed=1, max_tokens=20)
        fresh.messages = chat.messages()[:-1]
        *_, expected = fresh.reply(question.prompt_text)
        assert reply.text == expected.text  # type: ignore[union-attr]
        prompt = session.engines.target.weights.vocabulary.decode(session.prompt).decode()
        assert "stay brief." in prompt
        assert "question b of many." in prompt or i < 1
        written = session.messages[-1]
        chat.add(ASSISTANT, written.text, tokens=written.tokens, reply=reply)
        if i == 1:
            question.is_pinned = True
    return said


@pytest.mark.parametrize("policy", [Policy.DROP, Policy.ASK])
def test_a_chat_of_three_times_the_context_goes_on_with_system_prompt_and_pins(tmp_path: Path, policy: Policy) -> None:
    chat = Chat("stay brief.")

    said = talk(chat, tmp_path, policy, 20)

    costs, _ = turn_costs(session_on(model_on(tmp_path)).engines, chat.system, chat.path())
    assert sum(costs.values()) > 3 * N_CTX
    assert len(said) > 1
    assert all("oldest" in each and "not read any more" in each for each in said)
    assert len(chat.path()) == 40  # nothing is lost of what is shown
    assert len(chat.messages()) < 12


def test_under_stop_it_goes_on_to_the_end_of_the_context_and_is_refused_then(tmp_path: Path) -> None:
    chat = Chat("stay brief.")

    with pytest.raises(DoesNotFit, match="begin a new one"):
        talk(chat, tmp_path, Policy.STOP, 20)

    assert not any(turn.is_dropped for turn in chat.turns)


def test_a_dropped_turn_that_is_redone_is_read_with_what_stood_before_it() -> None:
    chat = Chat()
    for i in range(3):
        chat.add(USER, f"q{i}")
        chat.add(ASSISTANT, f"a{i}")
    for turn in chat.path()[:4]:
        turn.is_dropped = True

    assert [m.text for m in chat.messages()] == ["q2", "a2"]
    assert [m.text for m in chat.messages(chat.path()[2])] == ["q0", "a0", "q1"]


# Line mode.


class Lines:
    """A line-mode chat on a fake, with answers to what it asks."""

    def __init__(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_full: str | None, *, yes: bool | None
    ) -> None:
        self.asked: list[str] = []
        self.yes = bool(yes)
        self.session = session_on(model_on(tmp_path, N_CTX), seed=1, max_tokens=20)
        self.session.set_system("stay brief.")
        questions = iter([f"question {LETTERS[i % 26]} of many." for i in range(20)])
        monkeypatch.setattr("specchat.plain.can_ask", lambda: yes is not None)
        monkeypatch.setattr("specchat.plain.confirmed", self.answer)
        monkeypatch.setattr("builtins.input", lambda prompt: _next(questions))
        self.chat = LineChat(self.session, Namespace(on_full=on_full), Talk(self.session, Keeper()))

    def answer(self, question: str) -> bool:
        self.asked.append(question)
        return self.yes


def _next(lines: object) -> str:
    try:
        return next(lines)  # type: ignore[call-overload, no-any-return]
    except StopIteration:
        raise EOFError from None


def test_line_mode_asks_before_it_drops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines(tmp_path, monkeypatch, None, yes=True)

    assert lines.chat.run() == 0

    assert len(lines.asked) > 2
    assert all(text.startswith("Drop the oldest ") for text in lines.asked)
    assert "the context of 240 tokens is full" in capsys.readouterr().err
    assert lines.session.messages[0] == Message(SYSTEM, "stay brief.")
    assert "question t of many." in [message.text for message in lines.session.messages]


def test_line_mode_does_not_ask_the_question_after_a_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines(tmp_path, monkeypatch, "ask", yes=False)

    assert lines.chat.run() == 0

    assert "not asked: /new starts over" in capsys.readouterr().err
    texts = [message.text for message in lines.session.messages]
    assert "question a of many." in texts
    assert "question t of many." not in texts


def test_a_script_that_lets_it_drop_is_told_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines(tmp_path, monkeypatch, "drop", yes=None)

    assert lines.chat.run() == 0

    assert not lines.asked
    assert capsys.readouterr().err.count("not read any more") > 2


@pytest.mark.parametrize("on_full", [None, "ask", "stop"])
def test_a_script_stops_when_the_context_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_full: str | None
) -> None:
    lines = Lines(tmp_path, monkeypatch, on_full, yes=None)

    with pytest.raises((DoesNotFit, InputRefused), match="the context"):
        lines.chat.run()

    assert len(lines.session.messages) > 5


@pytest.mark.parametrize(("on_full", "yes"), [("drop", None), (None, True)])
def test_a_reply_that_the_context_cuts_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    on_full: str | None,
    yes: bool | None,
) -> None:
    lines = endless(Lines(tmp_path, monkeypatch, on_full, yes=yes))

    lines.chat.run()

    assert "the context is full, so the reply ends here" in capsys.readouterr().err
    assert lines.session.last_reply is not None
    assert lines.session.last_reply.finish is Finish.CONTEXT


def test_a_script_ends_with_a_reply_that_the_context_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = endless(Lines(tmp_path, monkeypatch, "stop", yes=None))

    with pytest.raises(InputRefused, match="the context is full, so the reply ends here"):
        lines.chat.run()


def endless(lines: Lines) -> Lines:
    """A model that never ends a reply."""
    lines.session.settings = replace(lines.session.settings, max_tokens=None)
    lines.session.engines.target.weights.vocabulary.ends = frozenset()
    return lines
