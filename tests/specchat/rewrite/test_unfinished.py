"""Rewrites that were cut off: one for each file, kept when it is time, forgotten when they are done or old."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.errors import InputRefused
from specchat.rewrite.checks import Kept, rails
from specchat.rewrite.disk import Place, place_of
from specchat.rewrite.endings import Endings
from specchat.rewrite.long import AnyRewriting
from specchat.rewrite.merge import FinalNewline, LineEnds
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.part import Part
from specchat.rewrite.partial import Partial, Piece
from specchat.rewrite.source import SourceFile, read_source
from specchat.rewrite.terms import Terms
from specchat.rewrite.took import Took
from specchat.rewrite.unfinished import EVERY_S, KEEP_S, Keeping, UnfinishedStore
from speculation.stats import Totals

PARTIAL = Partial("0" * 64, "utf-8", "do it", (Part(0, 3),), (Piece(Part(0, 1), ("é",), (0,)),))


@dataclass
class Ended:
    complete: bool


class Running:
    """A rewrite as far as it is kept."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.chunks_done = 0
        self.kept = PARTIAL

    def partial(self) -> Partial:
        return self.kept


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "a.txt").write_text("é\nb\nc\n")
    return place_of(tmp_path / "a.txt")


@pytest.fixture
def store(tmp_path: Path) -> UnfinishedStore:
    return UnfinishedStore(tmp_path / "state" / "unfinished")


def keeping(store: UnfinishedStore, place: Place, now: list[float]) -> tuple[Keeping, Running]:
    running = Running(read_source(place.named))
    return Keeping(store, cast(AnyRewriting, running), clock=lambda: now[0]), running


def test_what_is_kept_comes_back_and_a_file_has_one(store: UnfinishedStore, place: Place) -> None:
    other = replace(PARTIAL, instruction="do it better")

    assert store.get(place) is None
    assert store.put(place, PARTIAL)
    assert store.get(place) == PARTIAL
    assert store.put(place, other)
    assert store.get(place) == other
    assert len(os.listdir(store.folder)) == 1


def test_a_file_that_is_named_in_another_way_is_the_same(store: UnfinishedStore, place: Place, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("a.txt")
    store.put(place, PARTIAL)

    assert store.get(place_of(tmp_path / "link")) == PARTIAL


def test_dropping_forgets_it(store: UnfinishedStore, place: Place) -> None:
    store.drop(place)  # nothing is there, and no folder is made for that
    assert not store.folder.exists()
    store.put(place, PARTIAL)
    store.drop(place)

    assert store.get(place) is None


@pytest.mark.parametrize(("age", "left"), [(KEEP_S - 60, 1), (KEEP_S + 60, 0)])
def test_what_is_old_is_forgotten(store: UnfinishedStore, place: Place, age: float, left: int) -> None:
    store.prune()
    store.put(place, PARTIAL)
    written = next(store.folder.iterdir()).stat().st_mtime

    UnfinishedStore(store.folder, lambda: written + age).prune()

    assert len(os.listdir(store.folder)) == left


def test_a_folder_that_cannot_be_made_is_no_failure(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = UnfinishedStore(tmp_path / "file" / "unfinished")

    assert store.put(place, PARTIAL) is False
    assert store.get(place) is None
    store.prune()
    store.drop(place)


def test_it_is_kept_at_each_chunk_and_now_and_then(store: UnfinishedStore, place: Place) -> None:
    now = [0.0]
    kept, running = keeping(store, place, now)

    kept.look()
    assert store.get(place) is None
    now[0] = EVERY_S
    kept.look()
    assert store.get(place) == PARTIAL
    running.kept, running.chunks_done = replace(PARTIAL, instruction="more"), 1
    kept.look()
    assert store.get(place) == running.kept


def test_the_end_says_whether_one_can_go_on(store: UnfinishedStore, place: Place) -> None:
    kept, running = keeping(store, place, [0.0])

    assert kept.end(cast(Outcome, Ended(complete=False))) is True
    assert store.get(place) == PARTIAL
    assert kept.end(cast(Outcome, Ended(complete=True))) is False
    assert store.get(place) is None
    running.kept = replace(PARTIAL, pieces=())
    assert kept.end(cast(Outcome, Ended(complete=False))) is False
    assert store.get(place) is None


TERMS = st.builds(
    Terms,
    guard=st.builds(
        rails,
        st.none() | st.floats(0, 100),
        st.sets(st.sampled_from(Kept)),
        st.lists(st.sampled_from(["a", "^b$", "\\d+", "é\n"]), unique=True, max_size=2),
    ),
    strict=st.booleans(),
    endings=st.builds(Endings, st.sampled_from(LineEnds), st.sampled_from(FinalNewline)),
    backup_suffix=st.none() | st.sampled_from([".orig", "~"]),
    keeps_backup=st.booleans(),
)


@given(TERMS, st.integers(0, 10**9), st.floats(0, 1e6), st.dictionaries(st.text(max_size=3), st.integers(0, 9)))
def test_terms_and_figures_come_back_as_they_were(terms: Terms, count: int, seconds: float, by: dict[str, int]) -> None:
    took = Took(Totals(steps=count, emitted=count, verify_s=seconds, accepted_by=by), seconds)
    partial = replace(PARTIAL, terms=terms, took=took)

    assert Partial.from_json(json.loads(json.dumps(partial.as_json()))) == partial


@given(TERMS, TERMS)
def test_what_was_ruled_out_before_stays_ruled_out_and_saying_it_twice_adds_nothing(now: Terms, before: Terms) -> None:
    both = now.over(before)

    assert both.over(before) == both
    assert now.over(Terms()) == now
    assert Terms().over(before) == before
    for each in (now, before):
        assert both.guard.keep >= each.guard.keep
        assert set(both.guard.protect) >= set(each.guard.protect)
        assert both.strict >= each.strict
        assert both.keeps_backup <= each.keeps_backup


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("terms", "keep", ["words"]),
        ("terms", "keep", 1),
        ("terms", "protect", ["("]),
        ("terms", "protect", [1]),
        ("terms", "max_change", "many"),
        ("terms", "line_ends", "cr"),
        ("terms", "backup_suffix", "/../x"),
        ("terms", "backup_suffix", 1),
        ("took", "steps", -1),
        ("took", "steps", 1.5),
        ("took", "steps", "1"),
        ("took", "verify_s", float("nan")),
        ("took", "verify_s", float("inf")),
        ("took", "accepted_by", []),
        ("took", "accepted_by", {"lookup": -1}),
        ("took", "more", 1),
    ],
)
def test_what_is_kept_and_no_terms_or_figures_is_refused(part: str, name: str, value: object) -> None:
    found = PARTIAL.as_json()
    found[part] = {**found[part], name: value}

    with pytest.raises(InputRefused):
        Partial.from_json(found)
