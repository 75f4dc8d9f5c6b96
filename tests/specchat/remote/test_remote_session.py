"""A conversation with a server: what is sent, what is kept, what ends a reply."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from specchat.conversation import Message, Role
from specchat.dialogue import Event
from specchat.remote.errors import RemoteError
from specchat.remote.session import RemoteSession
from specchat.reply import Guess, Reply, ReplySettings, Wrote
from speculation.sampling import SamplingConfig
from speculation.types import Finish
from tests.specchat.remote.chat_server import (
    LAST,
    ChatServer,
    delta,
    ends,
    event,
    falls_silent,
    refuses,
    says,
    sends,
    texts,
)
from tests.specchat.remote.conftest import Connect


def last(events: list[Event]) -> Reply:
    reply = events[-1]
    assert isinstance(reply, Reply)
    return reply


def counters(drafted: int, accepted: int, done: int, running: int = 0) -> str:
    return (
        "# TYPE vllm:spec_decode_num_drafts_total counter\n"
        f'vllm:spec_decode_num_draft_tokens_total{{engine="0",model_name="m"}} {drafted}.0\n'
        f'vllm:spec_decode_num_accepted_tokens_total{{engine="0",model_name="m"}} {accepted}.0\n'
        f'vllm:request_success_total{{engine="0",finished_reason="stop"}} {done}.0\n'
        f'vllm:request_success_total{{engine="0",finished_reason="length"}} 2.0\n'
        f'vllm:num_requests_running{{engine="0"}} {running}.0\n'
    )


def test_a_reply_comes_in_pieces_and_ends_with_what_the_server_said_of_it(
    chat: ChatServer, session_on: Connect
) -> None:
    session = session_on(chat)
    events = list(session.reply("Hi"))
    assert events[:-1] == [Wrote("Hello", None), Wrote(" there.", None)]
    reply = last(events)
    assert (reply.text, reply.finish, reply.steps) == ("Hello there.", Finish.END, ())
    assert reply.server is not None
    assert (reply.server.drafted, reply.server.accepted, reply.server.output_tokens) == (16, 10, 16)
    assert reply.server.tokens_per_step == 16 / 6
    assert (reply.prompt_tokens, reply.reused_tokens, reply.read_tokens) == (49, 9, 40)
    assert reply.speed_up is None
    assert session.last_reply is reply


def test_the_conversation_is_sent_as_it_is_kept(chat: ChatServer, session_on: Connect) -> None:
    session = session_on(chat)
    session.set_system("Be brief.")
    list(session.reply("One"))
    list(session.reply("Two"))
    assert texts(chat.bodies[1]["messages"]) == [
        ("system", "Be brief."),
        ("user", "One"),
        ("assistant", "Hello there."),
        ("user", "Two"),
    ]
    list(session.redo())
    assert chat.bodies[2]["messages"] == chat.bodies[1]["messages"]
    session.new()
    assert session.messages == [Message(Role.SYSTEM, "Be brief.")]


def test_a_reply_that_goes_on_is_begun_for_the_server_and_kept_as_one(chat: ChatServer, session_on: Connect) -> None:
    session = session_on(chat)
    list(session.reply("Hi"))
    reply = last(list(session.go_on(3)))
    assert texts(chat.bodies[1]["messages"])[-1] == ("assistant", "Hello there.")
    assert (chat.bodies[1]["continue_final_message"], chat.bodies[1]["add_generation_prompt"]) == (True, False)
    assert reply.text == "Hello there."
    assert session.messages[-1].text == "Hello there.Hello there."


def test_a_server_that_is_not_known_to_go_on_is_not_asked_to(chat: ChatServer, session_on: Connect) -> None:
    chat.models = {"data": [{"id": "m", "owned_by": "somebody"}]}
    session = session_on(chat)
    list(session.reply("Hi"))
    with pytest.raises(RemoteError, match="not known to go on"):
        list(session.go_on())
    assert len(chat.bodies) == 1


def test_only_what_a_server_takes_is_sent_to_it(chat: ChatServer, session_on: Connect) -> None:
    sampling = SamplingConfig(temperature=0.5, top_k=0, top_p=0.9, min_p=0.1, repeat_penalty=1.1)
    settings = ReplySettings(sampling, seed=2**40 + 3, max_tokens=9, stop=("END",))
    list(session_on(chat, settings).reply("Hi"))
    chat.models = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]}
    list(session_on(chat, settings).reply("Hi"))
    chat.models = {"data": [{"id": "m", "owned_by": "openai"}]}
    other = session_on(chat, settings)
    list(other.reply("Hi"))
    common = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "max_tokens": 9, "stop": ["END"], "stream": True}
    for body in chat.bodies:
        assert {name: body[name] for name in common} == common
    llama, vllm, openai = chat.bodies
    assert (llama["top_k"], llama["min_p"], llama["repeat_penalty"]) == (0, 0.1, 1.1)
    assert (vllm["top_k"], vllm["min_p"], vllm["repetition_penalty"]) == (-1, 0.1, 1.1)
    assert not {"top_k", "min_p", "repeat_penalty", "repetition_penalty"} & set(openai)
    assert other.notices == ["top_k, min_p, repeat_penalty: not sent, for this server is not known to take them"]


def test_who_guesses_is_the_servers_business(chat: ChatServer, session_on: Connect) -> None:
    session = session_on(chat)
    with pytest.raises(RemoteError, match="decides itself who guesses"):
        session.guess = Guess.OFF
    session.guess = Guess.AUTO
    assert session.guess is Guess.AUTO


@pytest.mark.parametrize("begun", [(), (event(delta("Half")),)])
def test_a_stop_from_another_thread_ends_a_silent_reply_and_the_server_notices(
    chat: ChatServer, session_on: Connect, begun: tuple[bytes, ...]
) -> None:
    asked = threading.Event()
    silence = falls_silent(*begun)

    def answer(handler: object) -> None:
        asked.set()
        silence(handler)  # type: ignore[arg-type]

    chat.answers = [answer]
    session = session_on(chat)

    def stop() -> None:
        assert asked.wait(10)
        session.stop()

    if begun:
        events = []
        for each in session.reply("Hi"):
            events.append(each)
            if isinstance(each, Wrote):
                session.stop()
    else:
        stopping = threading.Thread(target=stop)
        stopping.start()
        events = list(session.reply("Hi"))
        stopping.join()
    reply = last(events)
    assert (reply.text, reply.finish) == ("Half" if begun else "", None)
    assert [message.text for message in session.messages] == (["Hi", "Half"] if begun else [])
    assert chat.left.wait(10)


def test_a_stop_ends_a_reply_that_is_still_connecting(
    chat: ChatServer, session_on: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_on(chat)
    connecting, over, gave_up = threading.Event(), threading.Event(), threading.Event()

    connect = socket.create_connection

    def late(*args: Any, **named: Any) -> socket.socket:
        connecting.set()
        if not over.wait(20):
            gave_up.set()
        return connect(*args, **named)

    monkeypatch.setattr(socket, "create_connection", late)

    def stop() -> None:
        assert connecting.wait(10)
        session.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()

    reply = last(list(session.reply("Hi")))

    assert not gave_up.is_set()
    over.set()
    for each in (stopping, *(thread for thread in threading.enumerate() if thread.name == "waiting")):
        each.join()
    assert (reply.text, reply.finish) == ("", None)
    assert chat.bodies == []


def test_a_consumer_that_leaves_keeps_what_it_was_given_and_the_server_notices(
    chat: ChatServer, session_on: Connect
) -> None:
    chat.answers = [falls_silent(event(delta("Half")))]
    session = session_on(chat)
    events = session.reply("Hi")
    assert next(events) == Wrote("Half", None)
    events.close()  # type: ignore[attr-defined]
    assert session.messages[-1] == Message(Role.ASSISTANT, "Half")
    assert chat.left.wait(10)


def test_after_a_stop_the_next_reply_is_whole(chat: ChatServer, session_on: Connect) -> None:
    session = session_on(chat)
    session.stop()
    assert last(list(session.reply("Hi"))).text == "Hello there."


@pytest.mark.parametrize(
    ("finish", "limit", "told", "meant"),
    [
        ("stop", None, 16, Finish.END),
        ("length", 16, 16, Finish.LENGTH),
        ("length", 99, 16, Finish.CONTEXT),
        ("length", None, 16, Finish.CONTEXT),
    ],
)
def test_a_limit_is_ours_where_one_was_set_and_reached(
    chat: ChatServer, session_on: Connect, finish: str, limit: int | None, told: int, meant: Finish
) -> None:
    chat.answers = [says("x", finish=finish)]
    session = session_on(chat, ReplySettings(seed=1, max_tokens=limit))
    assert last(list(session.reply("Hi"))).finish is meant


def test_a_server_that_names_the_text_that_ended_the_reply_is_believed(chat: ChatServer, session_on: Connect) -> None:
    chat.answers = [sends(event(delta("x")), event(ends(stop_reason="END")), event("[DONE]"))]
    assert last(list(session_on(chat).reply("Hi"))).finish is Finish.STOP


def test_thinking_stands_in_the_text_between_the_marks_that_models_write(chat: ChatServer, session_on: Connect) -> None:
    thoughts = [{"choices": [{"delta": {"reasoning_content": text}}]} for text in ("Hm", ", so.")]
    chat.answers = [sends(*map(event, [*thoughts, delta("Yes."), ends(), "[DONE]"]))]
    assert last(list(session_on(chat).reply("Hi"))).text == "<think>\nHm, so.\n</think>\n\nYes."
    chat.answers = [sends(*map(event, [*thoughts, ends("length"), "[DONE]"]))]
    assert last(list(session_on(chat).reply("Hi"))).text == "<think>\nHm, so.\n</think>\n\n"


def test_a_reply_that_comes_whole_is_taken(chat: ChatServer, session_on: Connect) -> None:
    whole = {"choices": [{"message": {"content": "All."}, "finish_reason": "stop"}], "usage": LAST["usage"]}
    chat.answers = [refuses(200, whole)]
    assert last(list(session_on(chat).reply("Hi"))).text == "All."


@pytest.mark.parametrize("field", ["prediction", "stream_options"])
def test_a_refusal_that_names_a_spare_field_costs_that_field_only(
    chat: ChatServer, session_on: Connect, field: str
) -> None:
    chat.answers = [refuses(400, {"error": {"message": f"Unknown parameter: '{field}'"}}), says("Fine.")]
    session = session_on(chat, prediction=True)
    session.predict("the old text")
    assert last(list(session.reply("Hi"))).text == "Fine."
    before, after = chat.bodies
    assert before["prediction"] == {"type": "content", "content": "the old text"}
    assert after == {name: value for name, value in before.items() if name != field}


def test_a_prediction_goes_only_where_one_is_taken_and_with_one_reply_only(
    chat: ChatServer, session_on: Connect
) -> None:
    for prediction in (None, False, True):
        session = session_on(chat, prediction=prediction)
        session.predict("old")
        list(session.reply("Hi"))
        list(session.reply("Hi"))
    assert ["prediction" in body for body in chat.bodies] == [False, False, False, False, True, False]


def test_vllms_counters_are_taken_where_one_reply_alone_moved_them(chat: ChatServer, session_on: Connect) -> None:
    chat.models = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]}
    chat.pages["/metrics"] = counters(100, 50, 7)
    usage = {"choices": [], "usage": LAST["usage"]}
    answer = says("Fine.", last=usage)
    session = session_on(chat)
    for after, told in ((counters(120, 60, 8), 20), (counters(150, 80, 10), None), (counters(160, 85, 11, 1), None)):

        def moved(handler: object, after: str = after) -> None:
            chat.pages["/metrics"] = after
            answer(handler)  # type: ignore[arg-type]

        chat.answers = [moved]
        figures = last(list(session.reply("Hi"))).server
        assert figures is not None
        assert figures.drafted == told


def test_a_server_that_belies_itself_is_told_of_once(chat: ChatServer, session_on: Connect) -> None:
    chat.pages["/props"] = {"default_generation_settings": {"params": {"speculative.types": "none"}}}
    session = session_on(chat)
    list(session.reply("Hi"))
    list(session.reply("Hi"))
    assert session.notices == ["the server says that it guesses nothing, but 10 of 16 guesses were accepted"]


def test_a_long_prompt_teaches_how_long_tokens_are(chat: ChatServer, session_on: Connect) -> None:
    session: RemoteSession = session_on(chat)
    assert session.model.count("x" * 700) == 200
    figures = {"choices": [], "usage": {"prompt_tokens": 1004, "completion_tokens": 2}}
    chat.answers = [says("Fine.", last=figures)]
    list(session.reply("x" * 2000))
    assert session.model.count("x" * 700) == 350


def test_what_is_said_of_a_model_is_its_name_and_its_context(chat: ChatServer, session_on: Connect) -> None:
    chat.models = {"data": [{"id": "/srv/models/big.Q4_K_M.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 512}}]}
    model = session_on(chat).model
    assert (model.name, model.n_ctx, model.is_remote) == ("big.Q4_K_M", 512, True)
    assert model.where == chat.url.removeprefix("http://")
