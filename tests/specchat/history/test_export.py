"""Chats as files: nothing is lost on the way out and back, and hostile text stays text."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.attachments import Attachment
from specchat.console import printable
from specchat.conversation import Role
from specchat.history.export import FORMS, exported
from specchat.history.importing import read_chats
from specchat.history.options import FORMS as OFFERED
from specchat.history.records import ChatRecord, PartRecord, TurnRecord
from specchat.history.store import Store
from specchat.provenance import Author, Origin, Span
from tests.specchat.history import making
from tests.specchat.history.making import ABOUT, said

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</div></article><iframe src='http://evil.example'></iframe>",
    "<!-- ", "]]>", "&lt;b&gt; &amp;", "'-alert(1)-'", "\x1b[2J\x00\x9b", "javascript:alert(1)",
    "</style><style>*{background:url(http://evil.example)}", "\u202etxt.exe",
]  # fmt: skip
HARMLESS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "mark", "article", "div", "pre",
            "details", "summary", "sup", "a", "footer", "ol", "li"}  # fmt: skip


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []  # of the messages
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
        if ("class", "text") in attrs:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.texts and ("div" in self.open or "pre" in self.open) and "sup" not in self.open:
            self.texts[-1] += data


def hostile_chat(text: str) -> ChatRecord:
    spans = (
        Span(0, len(text) // 2, Author.FILE, 0, Origin(Author.FILE, text, 1, 1, 0)),
        Span(len(text) // 2, len(text), Author.MODEL, 0, None),
    )
    part = PartRecord(replace(ABOUT, model=text), 1.0, 2.0, spans=spans)
    question = TurnRecord(1, None, Role.USER, text, attachments=(Attachment(text, text),), latest=2)
    reply = TurnRecord(2, 1, Role.ASSISTANT, text, parts=(part,))
    return ChatRecord(title=text, system=text, latest=1, tip=2, turns=(question, reply))


# JSON.


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(making.records())
def test_a_chat_that_is_exported_and_imported_is_the_same(tmp_path: Path, record: ChatRecord) -> None:
    (tmp_path / "chat.json").write_text(exported(record, "json"), encoding="utf-8")

    assert list(read_chats(tmp_path / "chat.json")) == [record]


def test_a_chat_is_the_same_in_another_store(tmp_path: Path) -> None:
    with Store.open(tmp_path / "one" / "chats.db") as one, Store.open(tmp_path / "two" / "chats.db") as two:
        record = one.load(one.put(said("why?", "because", "really?")))
        (tmp_path / "chat.json").write_text(exported(record, "json"), encoding="utf-8")
        [taken] = read_chats(tmp_path / "chat.json")

        assert two.load(two.put(taken)) == record


def test_json_carries_the_figures_of_each_reply() -> None:
    found = json.loads(exported(said("why?", "because"), "json"))

    assert found["schema"] == "specchat.chat/1"
    assert found["turns"][1]["parts"][0]["totals"]["emitted"] == 5
    assert found["turns"][1]["parts"][0]["about"]["model"] == "qwen"


# HTML.


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(text: str) -> None:
    page = Page(exported(hostile_chat(text), "html"))

    assert page.open == []
    assert {tag for tag, _ in page.tags} <= HARMLESS
    assert page.texts == [printable(text)] * 4  # system prompt, question, attachment, reply


@settings(max_examples=50)
@given(making.records())
def test_a_page_loads_nothing_and_runs_nothing(record: ChatRecord) -> None:
    page = Page(exported(record, "html"))

    for tag, attributes in page.tags:
        assert tag in HARMLESS
        assert not any(name.startswith("on") or name in ("src", "style", "srcset", "action") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in exported(record, "html").split("<body>")[0]


def test_a_page_tints_guesses_and_says_where_copies_are_from() -> None:
    page = exported(hostile_chat("copied, written"), "html")

    assert '<mark class="file">copied,</mark><sup><a href="#note-1">1</a></sup> written' in page
    assert '<li id="note-1">copied, written, line 1</li>' in page


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.lists(making.spans, max_size=5))
def test_no_spans_lose_a_character_of_the_text(text: str, spans: list[Span]) -> None:
    turn = TurnRecord(1, None, Role.ASSISTANT, text, parts=(PartRecord(spans=tuple(spans), ended=1.0),))

    page = Page(exported(ChatRecord(tip=1, turns=(turn,)), "html"))

    assert page.texts == [printable(text)]


# Markdown.


def test_markdown_has_the_path_with_its_figures() -> None:
    assert exported(said("why?", "because"), "md") == (
        "# a chat\n\n## You\n\nwhy?\n\n## qwen\n\nbecause\n\n*stopped, 5 tokens, 2.50 tokens/step*\n"
    )


def test_a_file_cannot_end_its_code_block() -> None:
    turn = TurnRecord(1, None, Role.USER, "look", attachments=(Attachment("a.md", "````\n# not a heading\n```"),))

    text = exported(ChatRecord(title="t", tip=1, turns=(turn,)), "md")

    assert "a.md:\n\n`````\n````\n# not a heading\n```\n`````\n" in text


@pytest.mark.parametrize("form", ["md", "html"])
def test_exported_text_cannot_steer_a_terminal(form: str) -> None:
    assert not set(exported(hostile_chat("\x1b]0;x\x07\x9b"), form)) & set("\x1b\x07\x9b")


def test_a_reply_that_was_not_finished_is_said_to_be_so() -> None:
    turn = TurnRecord(1, None, Role.ASSISTANT, "half", parts=(PartRecord(),))

    assert "*not finished*" in exported(ChatRecord(tip=1, turns=(turn,)), "md")


def test_every_form_is_offered() -> None:
    assert tuple(FORMS) == OFFERED
