"""Whatever was done to a chat before, a reply is what a fresh conversation with the same history would have got."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.attachments import Attachment, with_attachments
from specchat.chat import Chat
from specchat.context_policy import DoesNotFit, Policy
from specchat.conversation import Message, Role
from specchat.fitting import fit_turns
from specchat.resume import keep_state, resume_state
from specchat.session import ChatSession, ContextFull, Guess, Reading, Reply, Wrote
from specchat.states import StateFiles
from speculation.sampling import SamplingConfig
from tests.specchat.fake_target import LETTERS, model_on, session_on

SETTINGS = {"sampling": SamplingConfig(), "seed": 5, "max_tokens": 12}
N_CTX = 300


class Life:
    """A chat in the hands of somebody who does all that can be done to one."""

    def __init__(self, folder: Path, *, can_rewind: bool) -> None:
        self.folder = folder
        self.can_rewind = can_rewind
        self.chat = Chat("be kind.")
        self.states = StateFiles(folder / "states")
        self.session = self.new_session()
        self.replies = 0

    def new_session(self) -> ChatSession:
        return session_on(model_on(self.folder, N_CTX, can_rewind=self.can_rewind), **SETTINGS)

    def ask(self, n: int) -> None:
        self.chat.add(Role.USER, f"{LETTERS[n % 29] * (n % 7)} again {LETTERS[n % 11]}?" * (1 + n % 3))
        self.answer(stop_at=None)

    def ask_and_stop(self, n: int) -> None:
        self.chat.add(Role.USER, f"stop {LETTERS[n % 29]}?")
        self.answer(stop_at=n % 9)

    def edit(self, n: int) -> None:
        questions = [turn for turn in self.chat.path() if turn.role is Role.USER]
        if questions:
            self.chat.branch_from(questions[n % len(questions)])
            self.ask(n)

    def redo(self, n: int) -> None:
        replies = [turn for turn in self.chat.path() if turn.role is Role.ASSISTANT]
        if replies:
            self.chat.branch_from(replies[n % len(replies)])
            self.answer(stop_at=None)

    def branch(self, n: int) -> None:
        if self.chat.turns:
            self.chat.choose(self.chat.turns[n % len(self.chat.turns)])

    def pin(self, n: int) -> None:
        if path := self.chat.path():
            path[n % len(path)].is_pinned ^= True

    def read_ahead(self, n: int) -> None:
        draft = Message(Role.USER, "an attached file. " * (1 + n % 3))
        try:
            for reading in self.session.read_ahead([*self.chat.messages(), draft]):
                if n % 2 and reading.read:
                    self.session.stop()
        except ContextFull:
            return

    def leave_and_come_back(self, n: int) -> None:
        self.session.messages = self.chat.messages()
        keep_state(self.session, self.states, "1")
        if n % 2:
            self.branch(n)
        self.session = self.new_session()
        self.session.messages = self.chat.messages()
        resume_state(self.session, self.states, "1")

    def use_the_model_for_something_else(self, n: int) -> None:
        self.session.messages = []
        list(self.session.reply("another matter. " * (1 + n % 4)))

    def let_another_guess(self, n: int) -> None:
        self.session.guess = [Guess.OFF, Guess.AUTO, Guess.LOOKUP if self.can_rewind else Guess.AUTO][n % 3]

    def change_the_system_prompt(self, n: int) -> None:
        self.chat.system = ["be kind.", "", "be brief."][n % 3]

    def answer(self, stop_at: int | None) -> None:
        """The reply to the tip of the chat, compared with that of a fresh conversation."""
        try:
            fit_turns(self.session.engines, self.chat.system, self.chat.path(), Policy.DROP, 12).mark()
        except DoesNotFit:  # pinned too much
            for turn in self.chat.turns:
                turn.is_pinned = False
            fit_turns(self.session.engines, self.chat.system, self.chat.path(), Policy.DROP, 12).mark()
        history = self.chat.messages()
        reply = written(self.session, history, stop_at)
        expected = written(self.new_session(), history, stop_at)
        if stop_at is None:
            assert reply.text == expected.text
        else:  # a step of a guesser writes more at once, so it may have come further
            assert reply.text.startswith(expected.text) or expected.text.startswith(reply.text)
        assert reply.prompt_tokens == expected.prompt_tokens
        assert expected.reused_tokens == 0
        if reply.steps:
            said = self.session.messages[-1]
            self.chat.add(Role.ASSISTANT, said.text, tokens=said.tokens, reply=reply)
        self.replies += 1


def written(session: ChatSession, history: list[Message], stop_at: int | None) -> Reply:
    session.messages = history[:-1]
    steps = 0
    for event in session.reply(history[-1].text):
        if isinstance(event, Wrote):
            steps += 1
            if steps == stop_at:
                session.stop()
        elif isinstance(event, Reading) and stop_at == 0:
            session.stop()
    assert session.last_reply is not None
    return session.last_reply


DEEDS: list[Callable[[Life, int], None]] = [
    Life.ask, Life.ask, Life.ask_and_stop, Life.edit, Life.redo, Life.branch, Life.pin, Life.read_ahead,
    Life.leave_and_come_back, Life.use_the_model_for_something_else, Life.let_another_guess,
    Life.change_the_system_prompt,
]  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 200)), max_size=30), st.booleans())
def test_a_reply_is_that_of_a_fresh_conversation_after_any_deeds(
    deeds: list[tuple[Callable[[Life, int], None], int]], can_rewind: bool
) -> None:
    with TemporaryDirectory() as folder:
        life = Life(Path(folder), can_rewind=can_rewind)
        for deed, n in deeds:
            deed(life, n)
        last = life.chat.tip
        if last is None or last.role is Role.ASSISTANT:
            life.ask(1)
        else:
            life.answer(stop_at=None)
        assert life.replies


def test_the_deeds_do_drop_resume_and_reuse(tmp_path: Path) -> None:
    life = Life(tmp_path, can_rewind=True)
    while not any(turn.is_dropped for turn in life.chat.turns):
        life.ask(len(life.chat.turns))
    life.leave_and_come_back(0)
    cached = life.session.cached.size
    assert cached > 50
    life.ask(3)
    assert life.session.last_reply is not None
    assert life.session.last_reply.reused_tokens == cached


# Reading ahead.


@pytest.mark.parametrize("can_rewind", [True, False])
def test_what_was_read_ahead_is_not_read_again_and_the_conversation_stays(tmp_path: Path, can_rewind: bool) -> None:
    session = session_on(model_on(tmp_path, can_rewind=can_rewind), seed=1, max_tokens=5)
    session.messages = [Message(Role.SYSTEM, "be kind. " * 10)]
    draft = "a long file. " * 20
    before = list(session.messages)

    readings = list(session.read_ahead([*before, Message(Role.USER, draft)]))
    cached = session.cached.size
    *_, reply = session.reply(draft + " what is this?")

    assert isinstance(reply, Reply)
    assert readings[-1].read == readings[-1].total == cached
    assert session.messages[:-2] == before
    assert reply.reused_tokens == cached
    # A cache that cannot go back reads only what no edit of the question changes.
    assert cached == (90 + 1 + len(draft) if can_rewind else 90 + 1)
    fresh = session_on(model_on(tmp_path), seed=1, max_tokens=5)
    fresh.messages = before
    *_, expected = fresh.reply(draft + " what is this?")
    assert isinstance(expected, Reply)
    assert reply.text == expected.text


def test_reading_ahead_ends_at_once_when_it_is_stopped_and_goes_on_from_there(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path), seed=1, max_tokens=5)
    draft = "a long file. " * 60
    readings = []
    for reading in session.read_ahead([Message(Role.USER, draft)]):
        readings.append(reading)
        if reading.read:
            session.stop()
    assert 0 < readings[-1].read < readings[-1].total
    *_, reply = session.reply(draft + "well?")

    assert isinstance(reply, Reply)
    assert reply.text
    assert reply.reused_tokens == readings[-1].read


def test_a_draft_that_is_edited_costs_only_what_stands_behind_the_edit(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path), seed=1, max_tokens=5)
    list(session.read_ahead([Message(Role.USER, "a long file. " * 20 + "why")]))
    *_, reply = session.reply("a long file. " * 20 + "how?")

    assert isinstance(reply, Reply)
    assert reply.reused_tokens == 13 * 20


@pytest.mark.parametrize("can_rewind", [True, False])
def test_an_attached_file_is_read_once_however_the_text_is_edited(tmp_path: Path, can_rewind: bool) -> None:
    session = session_on(model_on(tmp_path, can_rewind=can_rewind), seed=1, max_tokens=5)
    file = Attachment("notes", "a long file. " * 20)
    read = []
    for typed in ("", "what", "wh", "who wrote this?"):
        question = Message(Role.USER, with_attachments(typed, [file]))
        *_, last = session.read_ahead([question], with_attachments("", [file]))
        read.append(last.read)

    *_, reply = session.reply(with_attachments("who wrote this?", [file]))

    assert read[0] > 260
    assert max(read[1:]) < 20
    assert isinstance(reply, Reply)
    assert reply.prompt_tokens - reply.reused_tokens < 20


def test_a_draft_that_does_not_fit_says_so(tmp_path: Path) -> None:
    session = session_on(model_on(tmp_path, n_ctx=100))
    with pytest.raises(ContextFull):
        list(session.read_ahead([Message(Role.USER, "a long file. " * 20)]))
