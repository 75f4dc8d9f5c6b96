"""From stored chats to figures: every step is counted once, under the kind of text that it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.attachments import Attachment
from specchat.history.packing import step_columns, unpack_steps
from specchat.history.records import About, ChatRecord
from specchat.history.store import Store
from specchat.provenance import Author, Span
from specchat.statistics import reading
from specchat.statistics.figures import Cell, Work, grouped, summed
from specchat.statistics.kinds import is_rewriting, works_of_steps
from specchat.statistics.reading import count_replies, read_figures
from tests.specchat.history.making import records
from tests.specchat.statistics.making import chat, part, step

BIG = About("big", "small", "auto", "coupled", 0.7)
OTHER = About("other", None, "off", "coupled", 0.0)
MIXED = "Here:\n```\nx = 1\n```\n- one\n"
WORDS = " ".join(f"word{number}" for number in range(60))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "chats" / "chats.db") as opened:
        yield opened


def cells(store: Store) -> list[Cell]:
    (figures,) = read_figures(store)
    return list(figures.cells)


def test_who_wrote_a_reply_and_how_comes_with_its_figures(store: Store) -> None:
    store.put(chat("why?", "so", part([step(), step("draft", 2, 4, 0.25)], BIG, ended=5e8)))

    (figures,) = read_figures(store)

    assert (figures.model, figures.draft, figures.guess, figures.temperature) == ("big", "small", "auto", 0.7)
    assert (figures.ended, figures.plain_step_s) == (5e8, 0.1)
    assert [(each.work, each.guesser, each.counts[:4]) for each in figures.cells] == [
        (Work.PROSE, "plain", (1, 1, 0, 0)),
        (Work.PROSE, "draft", (1, 3, 3, 2)),
    ]
    assert [each.counts.seconds for each in figures.cells] == pytest.approx([0.1, 0.25])


def test_steps_are_counted_under_the_line_that_they_begin_in(store: Store) -> None:
    starts = [0, 6, 10, 15, 20]
    spans = [
        Span(start, end, Author.MODEL, number, None)
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(MIXED)], strict=True))
    ]
    store.put(chat("show", MIXED, part([step()] * 5, BIG, spans=spans)))

    assert {each.work: each.counts.steps for each in cells(store)} == {Work.PROSE: 1, Work.CODE: 3, Work.LIST: 1}


def test_without_spans_the_text_is_shared_out_by_tokens(store: Store) -> None:
    store.put(chat("show", MIXED, part([step()] * len(MIXED), BIG)))

    found = {each.work: each.counts.steps for each in cells(store)}

    assert found == {Work.PROSE: 6, Work.CODE: 14, Work.LIST: 6}


def test_a_reply_that_repeats_its_question_is_rewriting(store: Store) -> None:
    edited = WORDS.replace("word30", "changed")
    store.put(chat("shorter, please", edited, part([step()] * 9, BIG), attachments=[Attachment("a.txt", WORDS)]))

    assert [each.work for each in cells(store)] == [Work.REWRITING]


@pytest.mark.parametrize(
    ("question", "reply", "is_one"),
    [
        (WORDS, WORDS, True),
        ("fix this: " + WORDS, WORDS.replace("word7 ", "").replace("word50", "w50"), True),
        (WORDS, " ".join(f"other{number}" for number in range(60)), False),
        ("what is two and two", "two and two is four, since two and two is what four is", False),  # short
        (" ".join(WORDS.split()[:10]), WORDS, False),
        ("", WORDS, False),
        (WORDS, "", False),
    ],
)
def test_rewriting_is_told_by_runs_of_words(question: str, reply: str, is_one: bool) -> None:
    assert is_rewriting(question, reply) == is_one


@given(st.text("a`\n- 1.", max_size=30), st.lists(st.integers(1, 5), max_size=12))
def test_every_step_has_a_kind(text: str, emitted: list[int]) -> None:
    found = works_of_steps(text, np.array(emitted, dtype=np.int32), None)

    assert isinstance(found, Work) or len(found) == len(emitted)


@given(record=records())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_step_of_every_reply_is_counted_once(
    record: ChatRecord, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = [
        each for turn in record.turns for part in turn.parts if part.totals.steps for each in unpack_steps(part.steps)
    ]
    with Store.open(tmp_path_factory.mktemp("any") / "chats" / "chats.db") as store:
        store.put(record)

        total = summed(read_figures(store))

    assert total.steps == len(steps)
    assert total.tokens == sum(len(each.tokens) for each in steps)
    assert (total.examined, total.accepted) == (sum(s.examined for s in steps), sum(s.accepted for s in steps))


def test_only_replies_of_the_time_and_the_model_that_were_asked_for_are_read(store: Store) -> None:
    store.put(chat("a", "b", part([step()], BIG, ended=1e9)))
    store.put(chat("a", "b", part([step()] * 2, OTHER, ended=2e9)))

    assert [each.model for each in read_figures(store, since=1.5e9)] == ["other"]
    assert [each.model for each in read_figures(store, model="big")] == ["big"]
    assert (count_replies(store), count_replies(store, 1.5e9), count_replies(store, 0.0, "big")) == (2, 1, 1)


def test_replies_are_read_page_by_page_and_none_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_AT_ONCE", 3)
    monkeypatch.setattr(reading, "_PAGE", reading._PAGE.replace("LIMIT 256", "LIMIT 3"))
    for number in range(4):
        store.put(chat("a", "b", *(part([step()] * (number + 1), BIG) for _ in range(2))))
    heard: list[int] = []

    found = list(read_figures(store, on_read=heard.append))

    assert [each.cells[0].counts.steps for each in found] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert heard == [3, 3, 2]
    assert summed(found).replies == 4


def test_what_is_being_written_and_what_cannot_be_read_is_left_out(store: Store) -> None:
    good = part([step()], BIG)
    store.put(chat("a", "b", replace(good, ended=None)))
    store.put(chat("a", "b", replace(good, steps=b"\x09" + good.steps[1:])))
    store.put(chat("a", "b", replace(good, steps=b"")))
    store.put(chat("a", "b", good))

    assert len(list(read_figures(store))) == 1


def test_columns_count_what_steps_count() -> None:
    packed = part([step(), step("draft", 2, 4, 0.5), step("lookup", 0, 3, 0.25)], BIG).steps

    columns = step_columns(packed)

    steps = unpack_steps(packed)
    assert [columns.names[i] for i in columns.guesser] == [each.guesser for each in steps]
    assert columns.drafted.tolist() == [each.drafted for each in steps]
    assert columns.emitted.tolist() == [len(each.tokens) for each in steps]
    assert columns.seconds.tolist() == pytest.approx([0.1, 0.5, 0.25])
    with pytest.raises(ValueError, match="no steps"):
        step_columns(b"\x01")


def test_kinds_of_text_are_the_groups_of_the_table(store: Store) -> None:
    store.put(chat("show", MIXED, part([step()] * len(MIXED), BIG)))

    groups = grouped(read_figures(store), lambda _, each: str(each.work))

    assert list(groups) == ["code", "list", "prose"]
