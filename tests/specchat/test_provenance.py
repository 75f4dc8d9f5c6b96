"""Every character of a reply has one author, by the record of the steps, and copies know where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.attachments import Attachment
from specchat.chat import Chat, Turn
from specchat.conversation import Role
from specchat.provenance import Author, Authorship, Origin, Places, Span, clipped, line_shares
from speculation.types import PLAIN, Finish, Step

START, END = 256, 257  # control tokens of a vocabulary of bytes
GUESSED = set(Author) - {Author.MODEL}


def piece(token: int) -> bytes:
    return bytes([token]) if token < 256 else b""


def step(
    n_tokens: int, accepted: int = 0, *, guesser: str = "draft", source: int | None = None, finish: Finish | None = None
) -> Step:
    """A step that emitted so many tokens; what they are does not matter to their authors."""
    guesser = guesser if accepted else PLAIN
    counts = {"drafted": accepted, "examined": accepted, "accepted": accepted, "context": 1}
    times = {"draft_s": 0.0, "verify_s": 0.1, "accept_s": 0.0}
    return Step(guesser, tokens=tuple(range(n_tokens)), source=source, finish=finish, **counts, **times)  # type: ignore[arg-type]


def nowhere() -> Places:
    return Places([START], piece, [])


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def grouped(pieces: list[bytes], sizes: Iterable[int]) -> list[list[bytes]]:
    groups, at = [], 0
    for size in sizes:
        groups.append(pieces[at : at + size])
        at += size
    return [group for group in [*groups, pieces[at:]] if group]


fragments = st.sampled_from(["a", "é", "日", "😀", "\n", "👩\u200d👧"]).map(str.encode)
broken = st.sampled_from([b"\xff", b"\xf0\x9f", b"\xc3", b"\x80", b"\0"])
replies = st.lists(fragments | broken, max_size=12).map(b"".join)


@given(replies, st.lists(st.integers(0, 99), max_size=12), st.lists(st.integers(1, 5)), st.data())
def test_spans_cover_every_character_once_and_tell_guessed_from_written(
    data: bytes, places: list[int], sizes: list[int], draw: st.DataObject
) -> None:
    groups = grouped([*cut(data, places), b""], sizes)
    written = Authorship(nowhere())
    guessed_tokens, before = [], ""

    for i, group in enumerate(groups):
        accepted = draw.draw(st.integers(0, len(group)))
        is_last = i == len(groups) - 1
        written.feed(step(len(group), accepted, finish=Finish.END if is_last else None), group)
        guessed_tokens += [place < accepted for place in range(len(group))]
        assert written.text.startswith(before)
        assert not written.spans or written.spans[-1].end == len(written.text)
        before = written.text
    written.finish()
    written.finish()

    edges = [0, *(span.end for span in written.spans)]
    assert written.text == data.decode("utf-8", "replace")
    assert [span.start for span in written.spans] == edges[:-1]
    assert edges[-1] == len(written.text)
    assert all(span.start < span.end for span in written.spans)
    assert len(written.ends) == len(guessed_tokens)
    assert written.who == Counter(
        {a: n for a, n in ((Author.DRAFT, sum(guessed_tokens)), (Author.MODEL, guessed_tokens.count(False))) if n}
    )
    for guessed, (start, end) in zip(guessed_tokens, pairwise([0, *written.ends]), strict=True):
        authors = {span.author for span in written.spans if span.start < end and start < span.end}
        assert authors <= ({Author.DRAFT} if guessed else {Author.MODEL})


def test_what_one_step_and_one_author_brought_is_one_span() -> None:
    written = Authorship(nowhere())

    written.feed(step(4, 3), [b"a", b"b", b"c", b"d"])
    written.feed(step(2, 1), [b"e", b"f"])
    written.feed(step(1), [b"g"])

    authors = [(span.start, span.end, span.author, span.step) for span in written.spans]
    assert authors == [
        (0, 3, Author.DRAFT, 0),
        (3, 4, Author.MODEL, 0),
        (4, 5, Author.DRAFT, 1),
        (5, 6, Author.MODEL, 1),
        (6, 7, Author.MODEL, 2),
    ]


def test_a_character_belongs_to_the_token_that_completes_it() -> None:
    written = Authorship(nowhere())
    smile = "😀".encode()

    written.feed(step(2, 1), [b"a" + smile[:2], smile[2:]])

    assert [(span.start, span.end, span.author) for span in written.spans] == [
        (0, 1, Author.DRAFT),
        (1, 2, Author.MODEL),
    ]


def test_an_end_token_is_counted_but_not_shown_even_where_it_has_a_text() -> None:
    written = Authorship(nowhere())

    written.feed(step(2, 1, finish=Finish.END), [b"a", b"</s>"])

    assert written.text == "a"
    assert written.ends == [1, 1]
    assert written.who == {Author.DRAFT: 1, Author.MODEL: 1}


def test_clipped_spans_end_where_the_shown_text_does() -> None:
    spans = [Span(0, 3, Author.DRAFT, 0, None), Span(3, 5, Author.MODEL, 0, None), Span(5, 6, Author.DRAFT, 1, None)]

    assert clipped(spans, 6) == spans
    assert clipped(spans, 4) == [spans[0], Span(3, 4, Author.MODEL, 0, None)]
    assert clipped(spans, 3) == spans[:1]
    assert clipped(spans, 0) == []


@given(st.lists(st.tuples(st.text("ab\n", min_size=1, max_size=5), st.sampled_from(list(Author)))), st.integers(0, 9))
def test_line_shares_weighed_by_length_are_the_guessed_characters(parts: list[tuple[str, Author]], more: int) -> None:
    text = "".join(part for part, _ in parts)
    starts = [0]
    for part, _ in parts:
        starts.append(starts[-1] + len(part))
    spans = [
        Span(a, b, author, i, None) for i, ((a, b), (_, author)) in enumerate(zip(pairwise(starts), parts, strict=True))
    ]
    ahead = Span(len(text), len(text) + more, Author.DRAFT, len(parts), None)  # of text that is held back

    shares = line_shares(text, [*spans, ahead])

    lines = text.split("\n")
    lengths = [len(line) + 1 for line in lines[:-1]] + [len(lines[-1])]
    guessed = sum(len(part) for part, author in parts if author in GUESSED)
    assert len(shares) == len(lines)
    assert all(0 <= share <= 1 for share in shares)
    assert sum(share * length for share, length in zip(shares, lengths, strict=True)) == pytest.approx(guessed)


def test_line_shares_of_a_text_that_was_copied_in_part() -> None:
    spans = [Span(0, 3, Author.FILE, 0, None), Span(3, 8, Author.MODEL, 0, None), Span(8, 9, Author.DRAFT, 1, None)]

    assert line_shares("abc\nd\n\nxy", spans) == [3 / 4, 0.0, 0.0, 1 / 2]


# Places. The prompt is ChatML in bytes; the tests know for each token what it is because they put it there.


def message(role: str, *parts: tuple[str, str]) -> list[tuple[str, str]]:
    """A message as its template has it: (text, what it is) for each stretch; "" for control tokens."""
    return [("", "start"), (f"{role}\n", "template"), *parts, ("", "end"), ("\n", "template")]


def tokens_of(stretches: Sequence[tuple[str, str]]) -> tuple[list[int], list[tuple[str, int]]]:
    """The tokens, and for each what it is and where in its stretch, in characters."""
    tokens: list[int] = []
    known: list[tuple[str, int]] = []
    for text, what in stretches:
        if not text:
            tokens.append(START if what == "start" else END)
            known.append(("template", 0))
        for at, character in enumerate(text):
            tokens += character.encode()
            known += [(what, at)] * len(character.encode())
    return tokens, known


GENERATE = [("", "start"), ("assistant\n", "template")]
CACHE = "def get(key):\n    return store[key]  # 日本\n\nuser\nassistant\n"
QUESTION = "What does this do?\nBriefly."
REPLY = "It looks up a key.\nNothing else."


def talk() -> tuple[Chat, dict[str, tuple[Author, str, Turn | None, str]]]:
    """Three turns with files; a question and a file stand twice, a question is a word of the template."""
    chat = Chat("Be brief.\nuser")
    first = chat.add(Role.USER, QUESTION, attachments=[Attachment("cache.py", CACHE), Attachment("notes", "a\nb")])
    reply = chat.add(Role.ASSISTANT, REPLY)
    again = chat.add(Role.USER, QUESTION)
    said = chat.add(Role.ASSISTANT, REPLY)
    short = chat.add(Role.USER, "assistant")
    word = chat.add(Role.ASSISTANT, "user")
    last = chat.add(Role.USER, "user", attachments=[Attachment("cache.py", CACHE)])
    return chat, {
        "system": (Author.PROMPT, "the system prompt", None, chat.system),
        "first": (Author.TURN, "an earlier question", first, QUESTION),
        "first cache": (Author.FILE, "cache.py", first, CACHE),
        "first notes": (Author.FILE, "notes", first, "a\nb"),
        "reply": (Author.TURN, "an earlier reply", reply, REPLY),
        "again": (Author.TURN, "an earlier question", again, QUESTION),
        "said": (Author.TURN, "an earlier reply", said, REPLY),
        "short": (Author.TURN, "an earlier question", short, "assistant"),
        "word": (Author.TURN, "an earlier reply", word, "user"),
        "last": (Author.PROMPT, "your question", last, "user"),
        "last cache": (Author.FILE, "cache.py", last, CACHE),
    }


def stretches_of_talk() -> list[tuple[str, str]]:
    return [
        *message("system", ("Be brief.\nuser", "system")),
        *message(
            "user",
            ("[cache.py]\n", "template"),
            (CACHE, "first cache"),
            ("\n\n[notes]\n", "template"),
            ("a\nb", "first notes"),
            ("\n\n", "template"),
            (QUESTION, "first"),
        ),
        *message("assistant", (REPLY, "reply")),
        *message("user", (QUESTION, "again")),
        *message("assistant", (REPLY, "said")),
        *message("user", ("assistant", "short")),
        *message("assistant", ("user", "word")),
        *message("user", ("[cache.py]\n", "template"), (CACHE, "last cache"), ("\n\n", "template"), ("user", "last")),
        *GENERATE,
    ]


def test_every_token_of_a_prompt_knows_its_message_file_line_and_character() -> None:
    chat, names = talk()
    tokens, known = tokens_of(stretches_of_talk())

    places = Places(tokens, piece, chat.path(), chat.system)

    assert places.prompt_tokens == len(tokens)
    for index, (what, at) in enumerate(known):
        found = places.find(index)
        if what == "template":
            assert found == Origin(Author.PROMPT, "the prompt", 1, None, 0)
        else:
            author, title, turn, text = names[what]
            line = text[:at].count("\n") + 1
            assert found == Origin(author, title, line, None if turn is None else turn.id, at)
        assert places.author(index) is found.author


def test_a_default_system_prompt_of_the_template_is_not_taken_for_what_was_asked() -> None:
    chat = Chat()
    turn = chat.add(Role.USER, "You are a helpful assistant.")
    asked = (turn.text, "asked")
    tokens, known = tokens_of(
        [*message("system", ("You are a helpful assistant.", "template")), *message("user", asked), *GENERATE]
    )

    places = Places(tokens, piece, chat.path())

    assert [i for i in range(len(tokens)) if places.find(i).turn == turn.id] == [
        i for i, (what, _) in enumerate(known) if what == "asked"
    ]


@pytest.mark.parametrize(
    ("text", "shown", "skipped"),
    [
        ("  hi\nthere \n", "hi\nthere", 2),
        ("<think>\nhm\n</think>\n\nhi\nthere", "hi\nthere", 21),
    ],
)
def test_what_a_template_leaves_out_moves_nothing(text: str, shown: str, skipped: int) -> None:
    chat = Chat()
    chat.add(Role.USER, "go")
    reply = chat.add(Role.ASSISTANT, text)
    chat.add(Role.USER, "on")
    tokens, known = tokens_of(
        [
            *message("user", ("go", "go")),
            *message("assistant", (shown, "reply")),
            *message("user", ("on", "on")),
            *GENERATE,
        ]
    )

    places = Places(tokens, piece, chat.path())

    offsets = {at: places.find(i) for i, (what, at) in enumerate(known) if what == "reply"}
    assert {at: (found.turn, found.offset) for at, found in offsets.items()} == {
        at: (reply.id, skipped + at) for at in range(len(shown))
    }
    assert offsets[len(shown) - 1].line == text[:skipped].count("\n") + 2


def test_questions_without_a_reply_between_them_are_told_apart() -> None:
    chat = Chat()
    one, two = chat.add(Role.USER, "yes"), chat.add(Role.USER, "yes")
    tokens, known = tokens_of([*message("user", ("yes", "one"), ("\n\n", "template"), ("yes", "two")), *GENERATE])

    places = Places(tokens, piece, chat.path())

    assert {(what, places.find(i).turn) for i, (what, _) in enumerate(known)} == {
        ("one", one.id),
        ("two", two.id),
        ("template", None),
    }


def test_a_text_that_the_template_dropped_has_no_place_and_takes_none() -> None:
    chat = Chat("never shown")
    chat.add(Role.USER, "dropped")
    chat.add(Role.ASSISTANT, "also dropped")
    last = chat.add(Role.USER, "kept")
    tokens, _ = tokens_of([*message("user", ("kept", "kept")), *GENERATE])

    places = Places(tokens, piece, chat.path(), chat.system)

    assert {places.find(i).turn for i in range(len(tokens))} == {None, last.id}


def test_a_token_that_begins_in_front_of_a_message_and_reaches_into_it_is_the_message() -> None:
    chat = Chat()
    turn = chat.add(Role.USER, "hello")
    pieces = [b"", b"user:", b" hel", b"lo", b"", b"\n"]

    places = Places(range(len(pieces)), pieces.__getitem__, chat.path())

    assert [(places.find(i).turn, places.find(i).offset) for i in range(len(pieces))] == [
        (None, 0),
        (None, 0),
        (turn.id, 0),
        (turn.id, 3),
        (None, 0),
        (None, 0),
    ]


def test_copies_say_where_they_come_from() -> None:
    chat, names = talk()
    tokens, known = tokens_of(stretches_of_talk())
    places = Places(tokens, piece, chat.path(), chat.system)
    written = Authorship(places, reply=99)
    second_line = known.index(("last cache", CACHE.index("    return")))

    copied = [piece(token) for token in tokens[second_line : second_line + 10]]
    written.feed(step(11, 10, guesser="lookup", source=second_line), [*copied, b"\n"])
    written.feed(step(4, 3, guesser="lookup", source=known.index(("reply", 0))), [b"I", b"t", b" ", b"x"])
    written.feed(step(3, 2, guesser="lookup", source=len(tokens) + 10), [b"\n", b"I", b"t"])

    turn = names["last cache"][2]
    reply = names["reply"][2]
    assert turn is not None
    assert reply is not None
    assert [(span.start, span.end, span.author, span.origin) for span in written.spans] == [
        (0, 10, Author.FILE, Origin(Author.FILE, "cache.py", 2, turn.id, CACHE.index("    return"))),
        (10, 11, Author.MODEL, None),
        (11, 14, Author.TURN, Origin(Author.TURN, "an earlier reply", 1, reply.id, 0)),
        (14, 15, Author.MODEL, None),
        (15, 17, Author.REPLY, Origin(Author.REPLY, "this reply", 1, 99, 10)),
        (17, 18, Author.MODEL, None),
    ]
    assert written.who == {Author.FILE: 10, Author.MODEL: 3, Author.TURN: 3, Author.REPLY: 2}


def test_a_branch_of_another_place_has_the_origin_of_that_place() -> None:
    chat, _ = talk()
    tokens, known = tokens_of(stretches_of_talk())
    written = Authorship(Places(tokens, piece, chat.path(), chat.system), reply=99)
    file, reply = known.index(("last cache", CACHE.index("    return"))), known.index(("reply", 0))

    forked = replace(step(3, 3, guesser="lookup", source=file), sources=(file, file + 1, reply))
    written.feed(forked, [b" ", b" ", b"I"])

    assert [(span.start, span.end, span.author) for span in written.spans] == [(0, 2, Author.FILE), (2, 3, Author.TURN)]


def test_a_copy_that_leaves_a_file_is_no_longer_the_file() -> None:
    chat = Chat()
    chat.add(Role.USER, "copy", attachments=[Attachment("a", "xy"), Attachment("b", "z")])
    tokens, known = tokens_of(
        [
            *message(
                "user",
                ("[a]\n", "template"),
                ("xy", "a"),
                ("\n\n[b]\n", "template"),
                ("z", "b"),
                ("\n\n", "template"),
                ("copy", "copy"),
            ),
            *GENERATE,
        ]
    )
    written = Authorship(Places(tokens, piece, chat.path()))
    source = known.index(("a", 1))

    copied = [piece(token) for token in tokens[source : source + 8]]
    written.feed(step(8, 8, guesser="lookup", source=source), copied)

    assert [(span.end, span.author, span.origin and span.origin.title) for span in written.spans] == [
        (1, Author.FILE, "a"),
        (7, Author.PROMPT, "the prompt"),
        (8, Author.FILE, "b"),
    ]
    assert written.who == {Author.FILE: 2, Author.PROMPT: 6}


def test_a_copy_that_overtakes_itself_is_from_this_reply() -> None:
    written = Authorship(Places([START, 97], piece, []), reply=5)

    written.feed(step(1), [b"x"])
    written.feed(step(5, 4, guesser="lookup", source=2), [b"x", b"x", b"x", b"x", b"."])

    assert [(span.start, span.end, span.author) for span in written.spans[1:]] == [
        (1, 5, Author.REPLY),
        (5, 6, Author.MODEL),
    ]
    assert written.spans[1].origin == Origin(Author.REPLY, "this reply", 1, 5, 0)


def test_a_continued_reply_is_copied_from_as_one_text() -> None:
    chat = Chat()
    chat.add(Role.USER, "go")
    begun = chat.add(Role.ASSISTANT, "one\ntwo\na")
    tokens, known = tokens_of([*message("user", ("go", "go")), *GENERATE, (begun.text, "begun")])
    places = Places(tokens, piece, chat.path())
    written = Authorship(places, begun.id, begun.text)

    written.feed(step(2, 1, guesser="lookup", source=known.index(("begun", 4))), [b"t", b"\n"])
    written.feed(step(2, 1, guesser="lookup", source=len(tokens) + 1), [b"\n", b"."])

    origins = [span.origin for span in written.spans if span.author is Author.REPLY]
    assert origins == [
        Origin(Author.REPLY, "this reply", 2, begun.id, 4),
        Origin(Author.REPLY, "this reply", 3, begun.id, len(begun.text) + 1),
    ]


def test_a_begun_reply_that_repeats_the_question_is_not_taken_for_it() -> None:
    chat = Chat()
    question, begun = chat.add(Role.USER, "go"), chat.add(Role.ASSISTANT, "go")
    tokens, known = tokens_of([*message("user", ("go", "go")), *GENERATE, ("go", "begun")])

    places = Places(tokens, piece, chat.path())

    assert {(what, places.find(i).turn) for i, (what, _) in enumerate(known)} == {
        ("template", None),
        ("go", question.id),
        ("begun", begun.id),
    }
