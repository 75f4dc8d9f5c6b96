"""Files of chats: ours and ChatGPT's, as they are and damaged, where each complaint names its place."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from specchat.conversation import Role
from specchat.history import importing
from specchat.history.errors import ImportRefused
from specchat.history.importing import read_chats
from specchat.history.portable import to_json
from specchat.history.records import ChatRecord
from specchat.history.restore import to_chat
from tests.specchat.history.making import said


def chats_of(tmp_path: Path, content: object) -> list[ChatRecord]:
    path = tmp_path / "conversations.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return list(read_chats(path))


def node(parent: str | None, *children: str, role: str = "", text: str = "", **message: Any) -> dict[str, Any]:
    """A message as ChatGPT writes one."""
    written = {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}, **message}
    return {"parent": parent, "children": list(children), "message": written if role else None}


def conversation(mapping: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"title": "The sky", "create_time": 10.0, "update_time": 20.0, "mapping": mapping, **facts}


TREE = conversation(
    {
        "root": node(None, "system"),
        "system": node("root", "q", role="system", text="", metadata={"is_visually_hidden_from_conversation": True}),
        "q": node("system", "a1", "a2", role="user", text="why is it blue?", create_time=11.0),
        "a1": node("q", role="assistant", text="because"),
        "a2": node("q", "q2", "q3", role="assistant", text="light", metadata={"model_slug": "gpt-x"}),
        "q2": node("a2", role="user", text="and at night?"),
        "q3": node("a2", "a3", role="user", text="and at dawn?"),
        "a3": node("q3", role="assistant", text="red"),
    },
    current_node="a1",
    conversation_id="c-1",
)


def path_of(record: ChatRecord) -> list[str]:
    return [turn.text for turn in record.path()]


# ChatGPT's.


def test_a_conversation_comes_with_its_branches(tmp_path: Path) -> None:
    [record] = chats_of(tmp_path, [TREE])
    chat = to_chat(record)

    assert path_of(record) == ["why is it blue?", "because"]
    assert [turn.text for turn in chat.siblings(chat.turn(2))] == ["because", "light"]
    chat.choose(chat.siblings(chat.turn(2))[1])
    assert [turn.text for turn in chat.path()] == ["why is it blue?", "light", "and at dawn?", "red"]
    assert (record.title, record.is_named, record.model, record.key) == ("The sky", True, "gpt-x", "chatgpt:c-1")
    assert (record.created, record.changed, record.turns[0].created) == (10.0, 20.0, 11.0)


def test_what_is_hidden_or_said_to_tools_is_left_out(tmp_path: Path) -> None:
    mapping = {
        "hidden": node(
            None, "q", role="user", text="about me", metadata={"is_visually_hidden_from_conversation": True}
        ),
        "q": node("hidden", "call", role="user", text="add"),
        "call": node("q", "tool", role="assistant", text="1+1", recipient="python"),
        "tool": node("call", "thought", role="tool", text="2"),
        "thought": node("tool", "a", role="assistant", content={"content_type": "thoughts", "thoughts": []}),
        "a": node("thought", role="assistant", text="two", recipient="all"),
    }

    [record] = chats_of(tmp_path, [conversation(mapping)])

    assert path_of(record) == ["add", "two"]


def test_a_reply_around_a_tool_call_is_one_reply(tmp_path: Path) -> None:
    mapping = {
        "q": node(None, "a", role="user", text="add"),
        "a": node("q", "tool", role="assistant", text="let me see"),
        "tool": node("a", "b", "c", role="tool", text="2"),
        "b": node("tool", role="assistant", text="two"),
        "c": node("tool", role="assistant", text="it is two"),
    }

    [record] = chats_of(tmp_path, [conversation(mapping, current_node="b")])

    assert [turn.text for turn in record.turns] == ["add", "let me see\n\ntwo", "let me see\n\nit is two"]
    assert path_of(record) == ["add", "let me see\n\ntwo"]


def test_a_conversation_that_begins_with_a_reply_gets_a_question(tmp_path: Path) -> None:
    [record] = chats_of(tmp_path, [conversation({"a": node(None, role="assistant", text="hello")})])

    assert [(turn.role, turn.text) for turn in record.turns] == [
        (Role.USER, "(no question)"),
        (Role.ASSISTANT, "hello"),
    ]


def test_a_visible_system_message_is_the_system_prompt(tmp_path: Path) -> None:
    mapping = {"s": node(None, "q", role="system", text="be brief"), "q": node("s", role="user", text="why?")}

    [record] = chats_of(tmp_path, [conversation(mapping)])

    assert (record.system, path_of(record)) == ("be brief", ["why?"])


def test_pictures_are_named_and_transcripts_taken(tmp_path: Path) -> None:
    parts = ["look", {"content_type": "image_asset_pointer"}, {"content_type": "audio_transcription", "text": "said"}]
    content = {"content_type": "multimodal_text", "parts": parts}

    [record] = chats_of(tmp_path, [conversation({"q": node(None, role="user", content=content)})])

    assert path_of(record) == ["look\n[image]\nsaid"]


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"a": node("a", "a", role="user", text="x")},
        {"a": node("b", "b"), "b": node("a", "a", role="user", text="x")},
    ],
)
def test_trees_without_a_beginning_hold_nothing(tmp_path: Path, mapping: dict[str, Any]) -> None:
    [record] = chats_of(tmp_path, [conversation(mapping)])

    assert record.turns == ()


def test_a_deep_conversation_is_read(tmp_path: Path) -> None:
    count = 5000
    mapping = {
        f"n{n}": node(f"n{n - 1}" if n else None, f"n{n + 1}", role="assistant" if n % 2 else "user", text=f"{n}")
        for n in range(count)
    }

    [record] = chats_of(tmp_path, [conversation(mapping)])

    assert len(record.path()) == count


def test_the_archive_that_is_sent_is_read(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.html", "<html>")
        archive.writestr("conversations.json", json.dumps([TREE, TREE]))

    assert len(list(read_chats(path))) == 2


def test_an_archive_without_conversations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.html", "<html>")

    with pytest.raises(ImportRefused, match="archive without"):
        list(read_chats(path))


# Ours, and both.


def test_a_list_may_hold_both_kinds(tmp_path: Path) -> None:
    assert [path_of(record) for record in chats_of(tmp_path, [TREE, to_json(said("one", "two"))])] == [
        ["why is it blue?", "because"],
        ["one", "two"],
    ]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_the_size_of_what_is_read_at_once_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(importing, "BLOCK", block)
    chats = [to_json(said("größer 天", f"{n}", title=f"{n}")) for n in range(3)]

    content = ("\ufeff \n" + json.dumps(chats, ensure_ascii=False, indent=1) + "\n ").encode()

    assert [record.title for record in chats_of(tmp_path, content)] == ["0", "1", "2"]


def test_what_comes_before_the_damage_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(f"[{json.dumps(to_json(said('one')))},\n{{]")
    read = read_chats(path)

    assert path_of(next(read)) == ["one"]
    with pytest.raises(ImportRefused, match="line 2, column 2: "):
        next(read)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "line 1, column 1: this is no file of chats"),
        (b"  \n 7", "line 2, column 2: this is no file of chats"),
        (b"[1]", "line 1, column 2: a chat must be an object"),
        (b'[{"mapping":{}}', "line 1, column 16: there must be a comma or the end"),
        (b'[{"mapping":{}} {}]', "line 1, column 17: there must be a comma"),
        (b'[{"mapping":{}}] x', "line 1, column 18: there is more behind the end"),
        (b'[{"a": NaN}]', "NaN is no number"),
        (b'{"schema": "other/1"}', "chat 1, line 1: the schema is 'other/1'"),
        (b'[{"mapping": {"a": 5}}]', "chat 1, line 1: "),
        (b'[{"mapping": {"a": {"message": {"content": 3}}}}]', "chat 1, line 1: "),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "line 1, column .*: its lists and objects are nested too deeply"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "line 1, column 1: a number has 5001 digits"),
        (b"{}", "chat 1, line 1: there is no schema, and this specchat reads"),
        (b'{"mapping": ' + b"[" * 100_000, "recursion|line 1"),
    ],
)
def test_a_complaint_names_the_file_and_the_place(tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(ImportRefused, match=complaint) as refused:
        chats_of(tmp_path, content)

    assert "conversations.json" in str(refused.value)
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (("turns", 1, "parent"), 7, "turn 2: its place, 2 below 7, is not in the chat"),
        (("turns", 1, "id"), 1, "turn 2: its place"),
        (("turns", 0, "id"), 2**70, "turn 1: id must be a whole number"),
        (("turns", 0, "role"), "system", "turn 1: the system prompt is no turn"),
        (("turns", 0, "text"), None, "turn 1: text must be a text"),
        (("turns", 0, "tokens"), [2**40], "turn 1: a token id is too large"),
        (("turns", 1, "parts", 0, "finish"), "never", "turn 2: part 1: 'never'"),
        (("turns", 1, "parts", 0, "totals"), {}, "turn 2: part 1: "),
        (("turns", 1, "parts", 0, "steps"), {"columns": ["x"], "rows": [[1]]}, "turn 2: part 1: "),
        (("turns", 1, "parts", 0, "spans"), {"origins": [], "spans": [[0, 1, 0, 0, 5]]}, "turn 2: part 1: "),
        (("created",), 1e300, "created must be a number"),
        (("turns",), 5, "turns must be a list"),
        (("settings",), 5, "chat 1, line 1: "),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(
    tmp_path: Path, place: tuple[Any, ...], value: object, complaint: str
) -> None:
    content: Any = json.loads(json.dumps(to_json(said("one", "two"))))
    inside = content
    for each in place[:-1]:
        inside = inside[each]
    inside[place[-1]] = value

    with pytest.raises(ImportRefused, match=complaint):
        chats_of(tmp_path, content)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="cannot be read"):
        list(read_chats(tmp_path / "none.json"))
