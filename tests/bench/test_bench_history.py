"""What keeping chats costs: a step on its way to the disk, lists, searches and chats of a store that grew for years."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import pytest

from specchat.chat import Chat
from specchat.conversation import Role
from specchat.history.importing import read_chats
from specchat.history.packing import pack_steps, pack_tokens
from specchat.history.recorder import Recorder
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.history.restore import to_chat
from specchat.history.rows import insert_chat
from specchat.history.store import Store
from specchat.provenance import Author, Origin, Span
from speculation.stats import totals
from speculation.types import Step

pytestmark = pytest.mark.bench

CHATS, MESSAGES = 10_000, 20  # 200,000 messages
LONG_MESSAGES, LONG_WORDS = 500, 400
STEPS = 2000
TRIES = 7
IMPORT_MB = 200

_T = TypeVar("_T")

FREQUENT = ["the", "of", "and", "a", "to", "in", "is", "it", "you", "that", "he", "was", "for", "on", "are", "with"]
WORDS = [f"w{n:04d}" for n in range(10_000)] + FREQUENT * 40


def words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(WORDS, k=count))


def steps(chance: random.Random, count: int) -> tuple[Step, ...]:
    return tuple(
        Step(
            guesser=chance.choice(("plain", "prompt_lookup", "draft_model")),
            drafted=8,
            examined=(accepted := chance.randrange(5)) + 1,
            accepted=accepted,
            tokens=tuple(chance.randrange(150_000) for _ in range(accepted + 1)),
            context=500 + 3 * n,
            draft_s=chance.uniform(1e-4, 3e-2),
            verify_s=chance.uniform(3e-2, 5e-2),
            accept_s=chance.uniform(1e-4, 1e-3),
            source=chance.randrange(500),
            match=4,
            p_rejected=chance.random(),
            p_chosen=chance.random(),
        )
        for n in range(count)
    )


def chat_of(chance: random.Random, messages: int, n_words: int, written: tuple[Step, ...], when: float) -> ChatRecord:
    packed, counted = pack_steps(written), totals(written)
    origin = Origin(Author.TURN, "an earlier reply", 3, 1, 40)
    spans = tuple(Span(5 * n, 5 * n + 5, Author.TURN, n, origin) for n in range(len(written)))
    tokens = tuple(token for step in written for token in step.tokens)
    part = PartRecord(About("qwen"), when, when + 9, "stop", 7, 100, 60, 40, 0.5, 0.6, 0.03, counted, packed, spans)
    turns = tuple(
        TurnRecord(
            id=number,
            parent=number - 1 or None,
            role=Role.USER if number % 2 else Role.ASSISTANT,
            text=words(chance, n_words),
            tokens=None if number % 2 else tokens,
            created=when,
            latest=number + 1 if number < messages else None,
            parts=() if number % 2 else (part,),
        )
        for number in range(1, messages + 1)
    )
    return ChatRecord(title=words(chance, 6), changed=when, latest=1, tip=messages, turns=turns)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """10,000 chats of 20 messages and one of 500 long ones."""
    chance = random.Random(7)
    opened = Store.open(tmp_path_factory.mktemp("history") / "chats" / "chats.db")
    short, long = steps(chance, 20), steps(chance, 300)
    started = time.perf_counter()

    def fill(connection: sqlite3.Connection) -> None:
        for number in range(CHATS):
            insert_chat(connection, chat_of(chance, MESSAGES, 60, short, 1e9 + number))
        insert_chat(connection, chat_of(chance, LONG_MESSAGES, LONG_WORDS, long, 2e9))

    opened.write(fill, is_synced=True)
    size = sum(path.stat().st_size for path in opened.path.parent.iterdir()) / 1e6
    print(f"\n{CHATS} chats, {CHATS * MESSAGES} messages: {size:.0f} MB, {time.perf_counter() - started:.0f} s to make")
    return opened


def timed(what: str, action: Callable[[], _T]) -> _T:
    """Do it several times and print the first and the usual time."""
    seconds = []
    for _ in range(TRIES):
        started = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - started)
    print(f"{what:44} {median(seconds) * 1e3:8.1f} ms  (first {seconds[0] * 1e3:.1f}, most {max(seconds) * 1e3:.1f})")
    return result


def test_lists_searches_and_opening(store: Store) -> None:
    print()
    rare, frequent = WORDS[77], "the"
    assert len(timed("list, 100 chats", lambda: store.chats(limit=100))) == 100
    assert len(timed("list, all chats", store.chats)) == CHATS + 1
    timed("list, title filter", lambda: store.chats(limit=100, query=rare))
    for what, query in (
        ("a rare word", rare),
        ("a frequent word", frequent),
        ("two words", f"{rare} {frequent}"),
        ("three frequent words", "the of and"),
        ("a phrase", f'"{frequent} of"'),
        ("a beginning, 1 letter", "t"),
        ("nothing", "zyxwvu"),
        ("without an index", "天空"),
    ):
        found = timed(f"search, {what}", lambda query=query: store.search(query))  # type: ignore[misc]
        assert len(found) <= 50
    record = timed(f"load {LONG_MESSAGES} long messages", lambda: store.load(CHATS + 1))
    chat = timed("    as a chat", lambda: to_chat(record))
    assert len(chat.path()) == LONG_MESSAGES
    timed("open the store", lambda: Store.open(store.path).close())
    timed("delete a chat", lambda: store.delete([store.chats(limit=1)[0].id]))


def test_a_step_on_its_way_to_the_disk(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "chats" / "chats.db", print)
    kept = recorder.keep(Chat())
    kept.chat.add(Role.USER, "why?")
    turn = kept.chat.add(Role.ASSISTANT, "")
    writing = kept.begin_reply(turn, About("qwen"))
    recorder.flush(60)
    written = steps(random.Random(1), STEPS)
    given, kept_s = [], []
    for step in written:
        started = time.perf_counter()
        writing.step("some text ", step)
        given.append(time.perf_counter() - started)
        recorder.flush(60)
        kept_s.append(time.perf_counter() - started)
    burst = time.perf_counter()
    for step in written:
        writing.step("some text ", step)
    recorder.flush(60)
    burst = time.perf_counter() - burst
    started = time.perf_counter()
    writing.end(turn, None)
    recorder.flush(60)
    ended = time.perf_counter() - started
    recorder.close()
    packed = pack_steps(written)
    tokens = [token for step in written for token in step.tokens]
    print(
        f"\na step: {median(given) * 1e6:.0f} us of the engine's thread, kept after {median(kept_s) * 1e6:.0f} us"
        f" ({max(kept_s) * 1e3:.0f} ms at most); in a burst {burst / STEPS * 1e6:.0f} us each;"
        f" the end of a reply {ended * 1e3:.0f} ms"
        f"\n{len(packed) / STEPS:.1f} bytes a step, {len(pack_tokens(tokens)) / len(tokens):.2f} a token beside"
    )


def test_saving_a_long_chat(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "chats" / "chats.db", print)
    kept = recorder.keep(Chat())
    for number in range(LONG_MESSAGES):
        kept.chat.add(Role.ASSISTANT if number % 2 else Role.USER, "word " * LONG_WORDS)
    kept.save()
    print()
    timed(f"compare a chat of {LONG_MESSAGES} messages", kept.save)
    recorder.close(60)


def test_a_large_import_is_linear(tmp_path: Path) -> None:
    text = '{"title": "t", "mapping": {"a": {"parent": null, "message": {"author": {"role": "user"}, "content": '
    one = text + '{"content_type": "text", "parts": ["' + "word " * 4000 + '"]}}}}}'
    print()
    for megabytes in (IMPORT_MB // 4, IMPORT_MB):
        path = tmp_path / f"{megabytes}.json"
        count = megabytes * 1_000_000 // len(one)
        with path.open("w") as file:
            file.write("[" + ",\n".join([one] * count) + "]")
        started = time.perf_counter()
        assert sum(1 for _ in read_chats(path)) == count
        print(f"{megabytes} MB of ChatGPT's export read in {time.perf_counter() - started:.1f} s")
        path.unlink()
