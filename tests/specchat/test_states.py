"""Files of saved states: private, bounded, and never handed out when anything about them is wrong."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.resume import fingerprint, is_faster, keep_state, owner_of, resume_state
from specchat.session import ChatSession, Reply
from specchat.states import NoState, Owner, StateFiles
from speculation.types import EngineFailure, State, Tokens
from tests.specchat.fake_target import FakeTarget, model_on, session_on

OWNER = Owner("model", "0123", "engine 1", "f16, CPU")
TOKENS: Tokens = np.arange(5, dtype=np.int32)
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and owners of files are another matter there")


def some_state(n: int = 1000) -> State:
    return np.random.default_rng(n).integers(0, 256, size=n, dtype=np.uint8)


def fetched(states: StateFiles, key: str = "7", owner: Owner = OWNER) -> State:
    return states.load(states.find(key, owner))


def test_a_state_comes_back_with_its_tokens(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    states.put("7", OWNER, TOKENS, some_state())

    found = states.find("7", OWNER)

    assert found.tokens.tolist() == TOKENS.tolist()
    assert states.load(found).tolist() == some_state().tolist()


@posix
def test_states_are_the_users_own(tmp_path: Path) -> None:
    os.umask(before := os.umask(0))
    os.umask(0)
    try:
        path = StateFiles(tmp_path / "a" / "states").put("7", OWNER, TOKENS, some_state())
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(OWNER, model="other"), "of another model: model"),
        (replace(OWNER, weights="4567"), "the file of the model is another one since"),
        (replace(OWNER, engine="engine 2"), "of another engine: engine 1, not engine 2"),
        (replace(OWNER, cache="q8_0, CPU"), "of another kind of cache: f16, CPU, not q8_0, CPU"),
    ],
)
def test_a_state_of_something_else_is_refused_with_the_reason(tmp_path: Path, other: Owner, reason: str) -> None:
    states = StateFiles(tmp_path)
    states.put("7", OWNER, TOKENS, some_state())

    with pytest.raises(NoState, match=reason):
        states.find("7", other)

    assert len(fetched(states)) == 1000  # it stays for whom it belongs to


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path_factory: pytest.TempPathFactory, at: int, flip: int) -> None:
    states = StateFiles(tmp_path_factory.mktemp("flipped"))
    path = states.put("7", OWNER, TOKENS, some_state())
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= flip
    path.write_bytes(data)

    with pytest.raises(NoState):
        fetched(states)


@given(st.integers(0, 10_000))
def test_a_file_cut_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    states = StateFiles(tmp_path_factory.mktemp("cut"))
    path = states.put("7", OWNER, TOKENS, some_state())
    os.truncate(path, length % path.stat().st_size)

    with pytest.raises(NoState):
        fetched(states)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, marked: bool) -> None:
    states = StateFiles(tmp_path_factory.mktemp("any"))
    path = states.put("7", OWNER, TOKENS, some_state())
    path.write_bytes((b"specchat state 1\n" if marked else b"") + data)

    with pytest.raises(NoState):
        fetched(states)


@pytest.mark.parametrize("numbers", [(-1, 10), ("5", 10), (5, 1e9), (None, []), (10**30, 10**30)])
def test_a_header_that_promises_nonsense_is_refused(tmp_path: Path, numbers: tuple[object, object]) -> None:
    states = StateFiles(tmp_path)
    path = states.put("7", OWNER, TOKENS, some_state())
    magic, header, rest = path.read_bytes().split(b"\n", 2)
    known = {**json.loads(header), "tokens": numbers[0], "bytes": numbers[1]}
    path.write_bytes(b"\n".join([magic, json.dumps(known).encode(), rest]))

    with pytest.raises(NoState):
        fetched(states)


def test_a_state_that_was_replaced_between_finding_and_loading_is_not_mixed_up(tmp_path: Path) -> None:
    states = StateFiles(tmp_path)
    states.put("7", OWNER, TOKENS, some_state())
    found = states.find("7", OWNER)
    states.put("7", OWNER, TOKENS + 1, some_state())

    with pytest.raises(NoState, match="damaged"):
        states.load(found)


@posix
def test_what_others_can_write_to_is_not_trusted(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    path = states.put("7", OWNER, TOKENS, some_state())
    for place, mode in ((path, 0o660), (path, 0o606), (path.parent, 0o770)):
        before = stat.S_IMODE(place.stat().st_mode)
        place.chmod(mode)
        with pytest.raises(NoState, match="others can write"):
            fetched(states)
        place.chmod(before)
    real = path.rename(tmp_path / "elsewhere")
    path.symlink_to(real)
    with pytest.raises(NoState):
        fetched(states)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 3000)), max_size=20))
def test_all_states_together_stay_within_their_bound_and_the_newest_is_there(
    tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[str, int]]
) -> None:
    states = StateFiles(tmp_path_factory.mktemp("bound"), most_bytes=6000)
    for key, n in puts:
        states.put(key, OWNER, TOKENS, some_state(n))
        assert states.n_bytes <= 6000
        assert len(fetched(states, key)) == n


def test_the_state_that_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    states = StateFiles(tmp_path, most_bytes=4000)
    for age, key in enumerate("cab"):
        os.utime(states.put(key, OWNER, TOKENS, some_state()), (1000 + age, 1000 + age))
    fetched(states, "c")  # which is used, as of now
    states.put("d", OWNER, TOKENS, some_state())

    assert [key for key in "abcd" if _is_there(states, key)] == ["b", "c", "d"]


def _is_there(states: StateFiles, key: str) -> bool:
    try:
        states.find(key, OWNER)
    except NoState:
        return False
    return True


def test_what_cannot_be_kept_says_why_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoState, match="together may take 100 B"):
        StateFiles(tmp_path, most_bytes=100).put("7", OWNER, TOKENS, some_state())
    (tmp_path / "file").touch()
    with pytest.raises(NoState, match="cannot be written"):
        StateFiles(tmp_path / "file").put("7", OWNER, TOKENS, some_state())
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 30))
    states = StateFiles(tmp_path / "states")
    with pytest.raises(NoState, match="nearly full"):
        states.put("7", OWNER, TOKENS, some_state())
    assert list(states.folder.iterdir()) == []


def test_a_half_written_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    states = StateFiles(tmp_path)
    old, present = tmp_path / "a.1.part", tmp_path / "b.2.part"
    for path in (old, present):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    states.put("7", OWNER, TOKENS, some_state())

    assert not old.exists()
    assert present.exists()


def test_states_can_be_forgotten(tmp_path: Path) -> None:
    states = StateFiles(tmp_path)
    for key in "ab":
        states.put(key, OWNER, TOKENS, some_state())
    states.drop("a")
    states.drop("never there")
    assert [key for key in "ab" if _is_there(states, key)] == ["b"]
    states.clear()
    assert states.n_bytes == 0


def test_a_short_prompt_is_read_and_a_long_one_restored() -> None:
    assert not is_faster(1_000_000, 1, 1000.0, 400e6)
    assert is_faster(110_000_000, 4000, 90.0, 400e6)
    assert not is_faster(110_000_000, 4000, 50_000.0, 400e6)  # a fast card and a slow disk
    assert is_faster(110_000_000, 4000, None, 400e6)


def test_a_model_file_is_known_by_all_of_its_parts_and_what_is_in_them(tmp_path: Path) -> None:
    names = [f"m-0000{i}-of-00002.gguf" for i in (1, 2)]
    for name in names:
        (tmp_path / name).write_bytes(bytes(2_000_000))
    before = fingerprint(tmp_path / names[0])
    assert fingerprint(tmp_path / names[0]) == before
    known = (tmp_path / names[1]).stat()
    with (tmp_path / names[1]).open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    os.utime(tmp_path / names[1], ns=(known.st_atime_ns, known.st_mtime_ns))

    assert fingerprint(tmp_path / names[0]) != before
    (tmp_path / names[1]).unlink()
    with pytest.raises(NoState, match="cannot be read"):
        fingerprint(tmp_path / names[0])


# A session that leaves a chat and comes back.

LONG = "why is the sky blue. " * 20


def answer(session: ChatSession, question: str) -> Reply:
    *_, last = session.reply(question)
    assert isinstance(last, Reply)
    return last


@pytest.mark.parametrize("can_rewind", [True, False])
def test_a_resumed_chat_reads_nothing_again(tmp_path: Path, can_rewind: bool) -> None:
    states = StateFiles(tmp_path / "states")
    first = session_on(model_on(tmp_path, can_rewind=can_rewind), seed=1, max_tokens=20)
    list(first.reply(LONG))
    kept = keep_state(first, states, "7")
    assert kept.tokens == len(first.cached)
    again = session_on(model_on(tmp_path, can_rewind=can_rewind), seed=1, max_tokens=20)
    again.messages = list(first.messages)

    outcome = resume_state(again, states, "7")
    resumed = answer(again, "go on.")
    expected = answer(first, "go on.")

    assert outcome.reason == ""
    assert outcome.tokens == kept.tokens
    assert resumed.text == expected.text
    assert resumed.reused_tokens == outcome.tokens


def test_a_state_of_a_longer_chat_or_another_branch_serves_as_far_as_it_is_the_same(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    first = session_on(model_on(tmp_path), seed=1, max_tokens=20)
    list(first.reply(LONG))
    branching = list(first.messages)
    list(first.reply("and the sea?" * 5))
    keep_state(first, states, "7")
    again = session_on(model_on(tmp_path), seed=1, max_tokens=20)
    again.messages = branching

    outcome = resume_state(again, states, "7")
    resumed = answer(again, "quite another question.")

    assert outcome.tokens > len(LONG)
    assert resumed.reused_tokens == outcome.tokens
    first.messages = list(branching)
    expected = answer(first, "quite another question.")
    assert resumed.text == expected.text


def test_a_state_that_cannot_go_back_is_used_whole_or_not_at_all(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    first = session_on(model_on(tmp_path, can_rewind=False), seed=1, max_tokens=20)
    list(first.reply(LONG))
    branching = list(first.messages)
    list(first.reply("and the sea?"))
    keep_state(first, states, "7")
    again = session_on(model_on(tmp_path, can_rewind=False))
    again.messages = branching

    assert "cannot go back" in resume_state(again, states, "7").reason
    assert again.cached.size == 0


def test_what_is_soon_read_again_is_not_saved_and_nor_is_what_is_saved_already(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    session = session_on(model_on(tmp_path), seed=1, max_tokens=5)
    assert keep_state(session, states, "7").tokens == 0
    session._pace = 1e6  # tokens a second
    list(session.reply(LONG))
    session._pace = 1e6
    assert "soon read again" in keep_state(session, states, "7").reason
    session._pace = 10.0
    assert keep_state(session, states, "7").reason == ""
    assert keep_state(session, states, "7").reason == "it is saved already"


def test_the_cache_of_something_else_does_not_take_the_place_of_a_chats_state(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    session = session_on(model_on(tmp_path), seed=1, max_tokens=5)
    list(session.reply(LONG))
    keep_state(session, states, "7")
    said = list(session.messages)
    session.new()
    list(session.reply("a file to rewrite. " * 30))
    session.messages = said

    assert keep_state(session, states, "7").tokens == 0
    assert len(states.find("7", owner_of(session.engines)).tokens) > len(LONG)


def test_a_state_of_another_file_under_the_same_name_is_refused_and_the_chat_answer(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    target = model_on(tmp_path)
    first = session_on(target, seed=1, max_tokens=20)
    list(first.reply(LONG))
    keep_state(first, states, "7")
    target.weights.path.write_bytes(b"quite another model" * 100)
    again = session_on(model_on(tmp_path), seed=1, max_tokens=20)
    again.messages = list(first.messages)

    outcome = resume_state(again, states, "7")
    resumed = answer(again, "go on.")
    expected = answer(first, "go on.")

    assert outcome.tokens == 0
    assert "another one since" in outcome.reason
    assert resumed.reused_tokens == 0
    assert resumed.text == expected.text


def test_a_state_that_the_engine_refuses_leaves_a_session_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = StateFiles(tmp_path / "states")
    first = session_on(model_on(tmp_path), seed=1, max_tokens=20)
    list(first.reply(LONG))
    keep_state(first, states, "7")
    again = session_on(model_on(tmp_path), seed=1, max_tokens=20)
    again.messages = list(first.messages)

    def refuse(self: FakeTarget, state: State, n_past: int) -> None:
        self.rewind(0)
        raise EngineFailure("no")

    monkeypatch.setattr(FakeTarget, "restore_state", refuse)
    outcome = resume_state(again, states, "7")
    resumed = answer(again, "go on.")
    expected = answer(first, "go on.")

    assert (outcome.tokens, outcome.reason) == (0, "the saved state of this chat is not used: no")
    assert resumed.text == expected.text


def test_a_context_that_is_too_small_for_the_state_reads(tmp_path: Path) -> None:
    states = StateFiles(tmp_path / "states")
    first = session_on(model_on(tmp_path), seed=1, max_tokens=200)
    list(first.reply(LONG))
    keep_state(first, states, "7")
    again = session_on(model_on(tmp_path, n_ctx=len(LONG)))
    again.messages = list(first.messages)

    assert f"the context holds {len(LONG)}" in resume_state(again, states, "7").reason
