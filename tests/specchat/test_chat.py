"""A conversation with branches: one path from its beginning to its tip, and a way back to every other one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from specchat.attachments import Attachment, with_attachments
from specchat.chat import Chat, Turn
from specchat.conversation import Message, Role

texts = st.text("ab \n", min_size=1, max_size=5)


class Talking(RuleBasedStateMachine):
    """Anything that a screen may do to a conversation, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = Chat("be brief")
        self.turns: list[Turn] = []

    def is_below(self, turn: Turn, above: Turn) -> bool:
        return above in self.chat.path(turn)

    @rule(text=texts)
    def ask(self, text: str) -> None:
        before = self.chat.path()

        turn = self.chat.add(Role.USER, text)

        self.turns.append(turn)
        assert self.chat.path() == [*before, turn]

    @precondition(lambda self: self.chat.tip is not None and self.chat.tip.role is Role.USER)
    @rule(text=texts | st.just(""))
    def answer(self, text: str) -> None:
        self.turns.append(self.chat.add(Role.ASSISTANT, text))

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def choose(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(self.turns))

        self.chat.choose(turn)

        assert turn in self.chat.path()
        assert self.chat.tip is not None
        assert not any(other.parent == self.chat.tip.id for other in self.turns)

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def look_at_another_branch_and_come_back(self, data: st.DataObject) -> None:
        here = self.chat.path()
        if not here:
            return
        turn = data.draw(st.sampled_from(here))
        other = data.draw(st.sampled_from(self.chat.siblings(turn)))

        self.chat.choose(other)
        self.chat.choose(turn)

        assert self.chat.path()[: len(here)] == here
        ended_early = any(below.parent == here[-1].id for below in self.turns)
        assert ended_early or self.chat.path() == here

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), text=texts)
    def write_another_version(self, data: st.DataObject, text: str) -> None:
        turn = data.draw(st.sampled_from(self.turns))
        before = self.chat.siblings(turn)

        self.chat.branch_from(turn)
        version = self.chat.add(turn.role, text)

        self.turns.append(version)
        assert self.chat.siblings(turn) == self.chat.siblings(version) == [*before, version]
        assert self.chat.path()[-1] is version

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def begin_another_version_and_give_it_up(self, data: st.DataObject) -> None:
        self.chat.choose(data.draw(st.sampled_from(self.turns)))
        here = self.chat.path()
        turn = data.draw(st.sampled_from(here))

        self.chat.branch_from(turn)
        assert self.chat.path() == here[: here.index(turn)]
        self.chat.choose(turn)

        assert self.chat.path() == here

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(self.turns))
        gone = [other for other in self.turns if self.is_below(other, turn)]
        here = self.chat.path()

        self.chat.remove(turn)

        self.turns = [other for other in self.turns if other not in gone]
        assert self.chat.path() == (here[: here.index(turn)] if turn in here else here)

    @precondition(lambda self: self.chat.tip is not None)
    @rule()
    def take_back(self) -> None:
        *before, last = self.chat.path()
        gone = [other for other in self.turns if self.is_below(other, last)]

        assert self.chat.remove_last() is last

        self.turns = [other for other in self.turns if other not in gone]
        assert self.chat.path() == before

    @invariant()
    def the_path_is_a_chain_from_a_beginning_to_the_tip(self) -> None:
        path = self.chat.path()
        assert [turn.parent for turn in path] == [None, *(turn.id for turn in path)][: len(path)]
        assert (path[-1] if path else None) is self.chat.tip
        assert all(turn in self.turns for turn in path)

    @invariant()
    def messages_begin_with_the_system_prompt_and_take_turns(self) -> None:
        system, *said = self.chat.messages()
        assert system == Message(Role.SYSTEM, "be brief")
        assert [message.role for message in said[:1]] in ([], [Role.USER])
        assert all(one.role is not other.role for one, other in pairwise(said))

    @invariant()
    def messages_say_what_the_path_says(self) -> None:
        told = "".join(message.text for message in self.chat.messages()[1:]).replace("\n", "")
        assert told == "".join(turn.text for turn in self.chat.path()).replace("\n", "")

    @invariant()
    def every_turn_can_be_found_by_an_id_of_its_own(self) -> None:
        assert all(self.chat.turn(turn.id) is turn for turn in self.turns)

    @invariant()
    def siblings_share_place_and_role_and_come_oldest_first(self) -> None:
        for turn in self.turns:
            alike = [other for other in self.turns if (other.parent, other.role) == (turn.parent, turn.role)]
            assert self.chat.siblings(turn) == alike


TestTalking = Talking.TestCase
TestTalking.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_messages_up_to_a_turn_of_another_branch_leave_the_path_alone() -> None:
    chat = Chat()
    question = chat.add(Role.USER, "a?")
    first = chat.add(Role.ASSISTANT, "one", tokens=(1, 2))
    chat.branch_from(first)
    second = chat.add(Role.ASSISTANT, "two")

    messages = chat.messages(first)

    assert messages == [Message(Role.USER, "a?"), Message(Role.ASSISTANT, "one", (1, 2))]
    assert chat.path() == [question, second]


def test_a_reply_that_has_grown_is_sent_as_it_is_now() -> None:
    chat = Chat()
    chat.add(Role.USER, "count")
    reply = chat.add(Role.ASSISTANT, "")

    reply.text, reply.tokens = "one two", (7, 8)

    assert chat.messages()[-1] == Message(Role.ASSISTANT, "one two", (7, 8))


def test_questions_that_got_no_reply_are_one_message_with_the_next() -> None:
    chat = Chat()
    chat.add(Role.USER, "first")
    chat.add(Role.ASSISTANT, "")
    chat.add(Role.USER, "second")

    assert chat.messages() == [Message(Role.USER, "first\n\nsecond")]


def test_attachments_reach_the_model_but_not_the_typed_text() -> None:
    chat = Chat()
    attachments = [Attachment("a.py", "x = 1\n"), Attachment("b.py", "")]

    turn = chat.add(Role.USER, "why?", attachments=attachments)

    assert turn.text == "why?"
    assert chat.messages()[0].text == turn.prompt_text == with_attachments("why?", attachments)


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM])
def test_a_conversation_begins_with_a_question(role: Role) -> None:
    with pytest.raises(ValueError, match=r"question|system"):
        Chat().add(role, "hello")


def test_a_reply_answers_a_question_and_no_other_reply() -> None:
    chat = Chat()
    chat.add(Role.USER, "hi")
    chat.add(Role.ASSISTANT, "hello")

    with pytest.raises(ValueError, match="question"):
        chat.add(Role.ASSISTANT, "hello again")


def test_a_turn_of_another_conversation_is_refused_and_changes_nothing() -> None:
    chat, other = Chat(), Chat()
    turn = chat.add(Role.USER, "mine")
    stranger = other.add(Role.USER, "theirs")

    for act in (chat.choose, chat.branch_from, chat.remove, chat.siblings, chat.path):
        with pytest.raises(ValueError, match="not part"):
            act(stranger)

    assert chat.path() == [turn]


def test_a_removed_id_is_never_used_again() -> None:
    chat = Chat()
    first = chat.add(Role.USER, "a")
    chat.remove(first)

    assert chat.add(Role.USER, "b").id != first.id
    with pytest.raises(KeyError):
        chat.turn(first.id)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Why?\nBecause of this", "Why?"),
        ("\n \n  Stale entries  \n", "Stale entries"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 30, ("word " * 30)[:59].rstrip() + "…"),
    ],
)
def test_the_title_is_the_first_line_of_the_first_question(question: str, title: str) -> None:
    chat = Chat()
    first = chat.add(Role.USER, question)
    chat.add(Role.ASSISTANT, "so")
    chat.branch_from(first)

    assert chat.title == title


def test_without_words_the_title_is_the_attachment_and_without_a_question_nothing() -> None:
    chat = Chat()
    assert chat.title == ""

    chat.add(Role.USER, "", attachments=[Attachment("cache.py", "x")])

    assert chat.title == "cache.py"
