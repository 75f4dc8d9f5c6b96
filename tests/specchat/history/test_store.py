"""The store: what is put in is found, whatever state its file is in, and by nobody else."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from specchat.conversation import Role
from specchat.folders import history_path
from specchat.history import database, schema, search
from specchat.history.errors import NoSuchChat, StoreRefused
from specchat.history.forgetting import forget_chats
from specchat.history.records import ChatRecord, PartRecord, TurnRecord
from specchat.history.restore import to_chat
from specchat.history.schema import MIGRATIONS, migrate, version_of
from specchat.history.store import Store
from specchat.states import Owner, StateFiles
from speculation.stats import Totals
from tests.specchat.history import making
from tests.specchat.history.making import said


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats" / "chats.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# What is kept.


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(making.records())
def test_a_chat_comes_back_as_it_was_put(store: Store, record: ChatRecord) -> None:
    chat_id = store.put(record)

    assert store.load(chat_id) == replace(record, id=chat_id)
    store.delete([chat_id])


def test_a_loaded_chat_goes_on_where_it_was(store: Store) -> None:
    chat = to_chat(store.load(store.put(said("one", "two", "three"))))

    assert [turn.text for turn in chat.path()] == ["one", "two", "three"]
    assert chat.title == "a chat"
    assert chat.add(Role.ASSISTANT, "four").id == 4
    assert chat.path()[1].reply is not None


def test_halves_of_surrogate_pairs_become_marks(store: Store) -> None:
    chat_id = store.put(said("a\ud800b"))

    assert store.load(chat_id).turns[0].text == "a\ufffdb"


def test_a_chat_that_is_not_there_is_refused_by_name(store: Store) -> None:
    with pytest.raises(NoSuchChat, match="5 is no chat"):
        store.load(5)


def test_an_id_is_never_given_again(store: Store) -> None:
    first = store.put(said("one"))
    store.delete([first])

    assert store.put(said("two")) != first


def test_a_turn_whose_answer_was_removed_leads_where_the_path_went(store: Store) -> None:
    record = replace(said("one", "two", "three"), tip=9)

    assert store.load(store.put(record)).tip == 3


# Lists.


def test_chats_are_listed_newest_first_and_pinned_ones_on_top(store: Store) -> None:
    ids = [store.put(said("x", title=str(n), changed=float(n))) for n in range(4)]
    store.pin(ids[1], is_pinned=True)

    assert [chat.title for chat in store.chats()] == ["1", "3", "2", "0"]
    assert [chat.title for chat in store.chats(limit=2, offset=1)] == ["3", "2"]
    assert store.count() == 4


def test_a_list_says_how_much_was_said_and_how_well_it_was_guessed(store: Store) -> None:
    store.put(said("one", "two", "three", "four"))
    store.put(said("one", changed=-1.0))

    assert [(chat.messages, chat.tokens_per_step) for chat in store.chats()] == [(4, 2.5), (1, None)]


def test_a_list_takes_words_of_the_title(store: Store) -> None:
    for title in ("Sky and sea", "the sky", "100 % sea"):
        store.put(said("x", title=title))

    assert {chat.title for chat in store.chats(query="SKY")} == {"Sky and sea", "the sky"}
    assert [chat.title for chat in store.chats(query="sea sky")] == ["Sky and sea"]
    assert [chat.title for chat in store.chats(query="%")] == ["100 % sea"]


def test_a_new_title_is_the_users(store: Store) -> None:
    chat_id = store.put(replace(said("one"), is_named=False))

    store.rename(chat_id, "another")

    assert store.summary(chat_id).title == "another"
    assert to_chat(store.load(chat_id)).named == "another"
    with pytest.raises(NoSuchChat):
        store.rename(99, "x")


# Deleting.


def test_deleted_words_are_no_longer_in_the_files(store: Store, path: Path) -> None:
    kept = store.put(said("harmless"))
    gone = store.put(said("unmistakable " * 400, "reply"))
    assert b"unmistakable" in b"".join(file.read_bytes() for file in path.parent.iterdir())

    assert store.delete([gone, 77]) == 1

    assert b"unmistakable" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert store.load(kept).turns[0].text == "harmless"
    assert store.search("unmistakable") == []


def test_a_deleted_chat_can_be_put_back(store: Store) -> None:
    chat_id = store.put(said("one", "two"))
    record = store.load(chat_id)
    store.delete([chat_id])

    assert replace(store.load(store.put(record)), id=chat_id) == record


def test_old_chats_are_those_that_nobody_changed_or_pinned(store: Store) -> None:
    old, pinned, _ = (store.put(said("x", changed=changed)) for changed in (5.0, 6.0, 50.0))
    store.pin(pinned, is_pinned=True)

    assert [chat.id for chat in store.older_than(10.0)] == [old]


# Search.


@pytest.fixture(params=["index", "no index"])
def searched(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param == "no index":
        monkeypatch.setattr(search, "has_index", lambda _: False)
    with Store.open(path) as opened:
        yield opened


def test_words_are_found_where_they_stand(searched: Store) -> None:
    chat = searched.put(said("Why is the sky blue?", "Because light is scattered, says Rayleigh."))

    [hit] = searched.search("rayleigh")

    assert (hit.chat, hit.turn, hit.role, hit.title) == (chat, 2, Role.ASSISTANT, "a chat")
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Rayleigh"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("sky", {1, 2}),
        ("sky blue", {1}),
        ("blue sky", {1}),
        ('"is blue"', {1}),
        ('"blue is"', set()),
        ("unfin", {2}),
        ("50%", {2}),
        ("%", {2}),
        ("天空", {3}),
        ('"', set()),
        ("", set()),
        ("sky AND", set()),
        ("sky OR", {2}),
        ("nothing*", set()),
    ],
)
def test_all_words_must_be_there(searched: Store, query: str, found: set[int]) -> None:
    searched.put(said("the sky is blue"))
    searched.put(said("this sky, or 50% of it, is unfinished"))
    searched.put(said("今天的天空很蓝"))

    assert {hit.chat for hit in searched.search(query)} == found


def test_titles_are_found_too(searched: Store) -> None:
    searched.put(said("x", title="About herons"))

    [hit] = searched.search("heron")

    assert (hit.turn, hit.snippet, hit.marks) == (None, "About herons", ((6, 11),))


def test_the_newest_message_is_found_first(searched: Store) -> None:
    for n in range(5):
        searched.put(said(f"word {n}", title="x"))

    assert [hit.snippet for hit in searched.search("word", limit=2)] == ["word 4", "word 3"]


def test_an_index_is_made_for_what_was_written_without_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(path) as store:
        store.put(said("with"))
    with monkeypatch.context() as without, Store.open(path) as store:
        without.setattr(search, "has_index", lambda _: False)
    with monkeypatch.context() as without:
        without.setattr(search, "has_index", lambda _: False)
        with Store.open(path) as store:
            store.put(said("without"))

    with Store.open(path) as store:
        assert [hit.snippet for hit in store.search("with")] == ["without", "with"]
        store.delete([1, 2])
        assert store.search("with") == []


def break_index(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE words_data SET block = x'000000008f5201c818' WHERE id = 10")
        connection.commit()


def test_an_index_that_is_damaged_is_made_anew_and_nothing_else(path: Path) -> None:
    with Store.open(path) as store:
        store.put(said("herons"))
    break_index(path)

    with Store.open(path) as store:
        with pytest.raises(StoreRefused, match="is damaged"):
            store.search("herons")
        assert store.load(1).turns[0].text == "herons"

    with Store.open(path) as store:
        assert store.notices == []
        assert [hit.chat for hit in store.search("heron")] == [1]


def test_tidying_does_not_wear_the_index_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_TIDIED", 3)
    levels = []
    for number in range(12):
        store.delete([store.put(said(f"word {number}"))])
        with closing(sqlite3.connect(store.path)) as connection:
            levels.append(connection.execute("SELECT times FROM tidied").fetchone()[0])

    assert levels == [1, 2, 3, 0] * 3
    assert store.search("word") == []


# Files.


@pytest.mark.skipif(os.name == "nt", reason="modes mean nothing there")
def test_the_files_are_the_users_alone(path: Path) -> None:
    path.parent.mkdir(parents=True, mode=0o755)
    path.touch(0o644)

    with Store.open(path) as store:
        store.put(said("one"))

        assert {file.name for file in path.parent.iterdir()} >= {"chats.db", "chats.db-wal", "chats.db-shm"}
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
    assert mode(path.parent) == 0o700


def test_a_damaged_store_is_set_aside_and_the_next_one_is_empty(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database" * 1000)

    with Store.open(path) as store:
        [notice] = store.notices
        assert store.chats() == []

    [aside] = [file for file in path.parent.iterdir() if "damaged" in file.name]
    assert aside.read_bytes().startswith(b"this is no database")
    assert str(aside) in notice
    with Store.open(path) as store:
        assert store.notices == []


def test_damage_that_is_found_later_is_set_aside_by_the_next_start(path: Path) -> None:
    with Store.open(path) as store:
        for n in range(50):
            store.put(said(f"message {n} " * 100))
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'turns'").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    with path.open("rb+") as file:
        file.seek((root - 1) * size)
        file.write(b"\xa5" * size)

    with pytest.raises(StoreRefused, match="is damaged"), Store.open(path) as store:
        store.load(30)

    with Store.open(path) as store:
        assert "moved to" in store.notices[0]
        assert store.chats() == []


def test_two_damaged_stores_in_a_second_are_both_kept(path: Path) -> None:
    for content in (b"first" * 999, b"second" * 999):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        Store.open(path).close()

    assert len([file for file in path.parent.iterdir() if "damaged" in file.name]) == 2


def test_a_newer_store_is_refused_and_left_as_it_is(path: Path) -> None:
    with Store.open(path) as store:
        store.put(said("one"))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreRefused, match="newer specchat") as refused:
        Store.open(path)

    assert refused.value.exit_code == 3
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()

    with pytest.raises(StoreRefused, match="no store of chats"):
        Store.open(path)


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreRefused, match="cannot be used") as refused:
        Store.open(tmp_path / "file" / "chats" / "chats.db")

    assert "\n" not in str(refused.value)


def test_the_store_lies_where_the_variable_says(tmp_path: Path) -> None:
    assert history_path({"SPECCHAT_DATA_DIR": str(tmp_path)}) == tmp_path / "chats" / "chats.db"
    assert history_path({}).parts[-3:] == ("specchat", "chats", "chats.db")


# Versions.

LATER: tuple[schema.Migration, ...] = (
    *MIGRATIONS,
    ("ALTER TABLE chats ADD COLUMN colour TEXT", "UPDATE chats SET colour = 'of ' || title"),
    ("CREATE TABLE copied AS SELECT row, upper(text) AS text FROM turns", "CREATE INDEX copies ON copied (text)"),
)


@pytest.mark.parametrize("begin", range(len(LATER)))
def test_every_older_version_is_brought_up_to_date(path: Path, begin: int) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, LATER[:begin])
    if begin:
        values = "1, 'key', 0, 0, 'blue', 0, '', '', '', '{}', 0, NULL, NULL"
        columns = "id, key, created, changed, title, named, system, model, unsent, settings, pinned, latest, tip"
        connection.execute(f"INSERT INTO chats ({columns}) VALUES ({values})")

    migrate(connection, LATER)

    assert version_of(connection) == len(LATER)
    assert connection.execute("SELECT title FROM chats").fetchall() == [("blue",)] * bool(begin)
    assert connection.execute("SELECT count(*) FROM copied").fetchone() == (0,)
    connection.close()


def test_a_step_that_fails_leaves_the_version_before_it(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path, isolation_level=None)
    wrong = (*MIGRATIONS, ("CREATE TABLE half (x)", "CREATE TABLE half (x)"))

    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, wrong)

    assert version_of(connection) == len(MIGRATIONS)
    assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchone() is None
    connection.close()


def test_a_store_is_opened_by_the_version_it_is_brought_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(path) as store:
        store.put(said("one"))

    monkeypatch.setattr(database, "MIGRATIONS", LATER)
    monkeypatch.setattr(database, "migrate", lambda connection: migrate(connection, LATER))
    with Store.open(path) as store:
        assert store.load(1).turns[0].text == "one"


# Replies in several goes.


def test_the_spans_of_a_reply_that_went_on_are_those_of_all_its_parts() -> None:
    from specchat.provenance import Author, Span

    first, second, third = (Span(n, n + 5, Author.MODEL, 0, None) for n in (0, 5, 10))
    turn = TurnRecord(
        1, None, Role.ASSISTANT, "x" * 15, parts=(PartRecord(spans=(first, second)), PartRecord(spans=(third,)))
    )

    assert turn.spans == (first, second, third)


def test_totals_are_kept_by_their_names(store: Store) -> None:
    counted = Totals(1, 2, 3, 4, 5, 6.0, 7.0, 8.0, 9, 10.0, {"draft_model": 5})
    record = said("one", "two")
    turn = replace(record.turns[1], parts=(PartRecord(totals=counted),))

    chat_id = store.put(replace(record, turns=(record.turns[0], turn)))

    assert store.load(chat_id).turns[1].parts[0].totals == counted


def test_a_deleted_chat_leaves_no_state_of_the_cache_and_the_others_keep_theirs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCHAT_CACHE_DIR", str(tmp_path / "cache"))
    chats = {store.put(said("one")): b"words of one", store.put(said("two")): b"words of two"}
    states, owner = StateFiles(tmp_path / "states"), Owner("m.gguf", "weights", "engine", "kind")
    paths = {}
    for chat_id, payload in chats.items():
        [key] = store.keys([chat_id])
        paths[chat_id] = states.put(
            key, owner, np.array([1, 2], dtype=np.int32), np.frombuffer(payload, dtype=np.uint8)
        )
    first, second = chats

    assert forget_chats(store, states, [first, 99]) == 1

    assert not paths[first].exists()
    assert paths[second].exists()
