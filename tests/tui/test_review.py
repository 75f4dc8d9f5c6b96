"""The review of rewritten files, driven by its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from specchat.rewrite.checks import Finding, Problem
from specchat.rewrite.flags import Flag, Kind
from specchat.rewrite.hunks import Decision
from specchat.tui import review_words
from specchat.tui.diff_rows import CONTEXT, cut, rows_around
from specchat.tui.hunk_text import lines_of, text_of
from specchat.tui.reviewed import ReviewedFile
from specchat.tui.reviewing import Order, Reviewing
from specchat.tui.screens.hunk_editor import HunkEditor
from specchat.tui.screens.question import Question
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.review_help import ReviewHelp
from specchat.tui.widgets.diff import DiffView
from specchat.tui.widgets.pick_list import PickList
from tests.tui.reviews import NEW, NEW_README, OLD, README, Host, both, cache, drive, press, rewritten

HOSTILE = "[red]\x1b[31m]0;title\x07 [/] \u202eevil\u202c \x9b2J\ud800"


def decisions(state: Reviewing) -> list[str]:
    return [str(hunk.decision)[0] for file in state.files for hunk in file.review.hunks]


# Deciding.


def test_y_accepts_n_rejects_and_w_hands_on_what_was_accepted_only() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "ynyw")

    host = drive([cache()], steps)
    (written,) = host.writes
    (selected,) = written.files
    assert (selected.number, selected.hunks, written.screen) == (0, ("1", "3"), host.review)
    expected = OLD.replace("= 3000", "= 30000").replace("next(iter(self._items))", "next(iter(self._items), None)")
    assert selected.result() == expected.replace("\n", "\r\n").encode()


def test_nothing_is_handed_on_before_w_and_nothing_without_a_yes() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert any("no hunk is accepted" in said for said in host.said())
        await press(pilot, "yyy")

    assert drive([cache()], steps).writes == []


def test_a_decision_goes_on_to_the_next_open_hunk_also_in_the_next_file_and_round_to_the_first() -> None:
    state = Reviewing(both())
    state.move(1)
    seen = []
    while state.decide(Decision.ACCEPTED):
        assert state.hunk is not None
        seen.append((state.number, state.hunk.id))
    assert seen == [(0, "3"), (0, "1"), (1, "1")]


def test_a_takes_the_rest_of_the_file_and_leaves_what_was_decided_and_what_stands_before() -> None:
    state = Reviewing(both())
    state.move(2)
    state.decide(Decision.REJECTED)
    state.go_file(0)
    state.go(1)
    assert state.decide_rest(Decision.ACCEPTED)
    assert decisions(state) == ["o", "a", "r", "o"]


@pytest.mark.parametrize(("key", "expected"), [("a", "aaao"), ("d", "rrro"), ("A", "aaaa"), ("D", "rrrr")])
def test_the_four_keys_that_decide_on_many(key: str, expected: str) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, key)
        assert decisions(host.review.state) == list(expected)

    drive(both(), steps)


def test_s_splits_and_every_part_keeps_the_flags() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "s")
        state = host.review.state
        assert [hunk.id for hunk in state.file.review.hunks] == ["1", "2.1", "2.2"]
        assert state.hunk is not None
        assert state.hunk.id == "2.1"
        assert all("SHAKY" in line for line in host.hunks if line[4:].startswith(" 2."))
        await press(pilot, "ny")
        assert [each.hunks for each in state.selection] == [("2.2",)]
        await press(pilot, "uuu")
        assert [hunk.id for hunk in state.file.review.hunks] == ["1", "2"]

    old = "a\nb\nc\nd\ne\nf\ng\nh\n"
    file = rewritten(old, "a\nB\nc\nd\ne\nF\ng\nH\n")
    flags = (Flag(Kind.SHAKY, "2", 6, "model 0.5, old text 0.4", 0.4, 0.5),)

    async def from_the_second(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "]")
        await steps(host, pilot)

    drive([ReviewedFile(file.review, flags)], from_the_second)


def test_s_on_a_single_line_says_that_it_cannot_be_split() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "s")
        assert any("cannot be split" in said for said in host.said())
        assert len(host.review.state.file.review.hunks) == 3

    drive([cache()], steps)


def test_u_takes_back_one_decision_after_the_other_and_goes_back_to_its_hunk() -> None:
    state = Reviewing(both())
    state.decide(Decision.ACCEPTED)
    state.decide_all(Decision.REJECTED)
    assert state.undo()
    assert decisions(state) == ["a", "o", "o", "o"]
    assert state.undo()
    assert decisions(state) == ["o", "o", "o", "o"]
    assert (state.number, state.position) == (0, 0)
    assert not state.undo()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["y", "n", "a", "d", "A", "D", "s", "e", "]", "[", "}", "{", "o"]), max_size=25))
def test_undoing_everything_is_the_beginning_whatever_was_done(keys: list[str]) -> None:
    state = Reviewing([*both(), rewritten(README, README, "same.md")])
    begun = state.files
    acts: dict[str, Callable[[], object]] = {
        "y": lambda: state.decide(Decision.ACCEPTED),
        "n": lambda: state.decide(Decision.REJECTED),
        "a": lambda: state.decide_rest(Decision.ACCEPTED),
        "d": lambda: state.decide_rest(Decision.REJECTED),
        "A": lambda: state.decide_all(Decision.ACCEPTED),
        "D": lambda: state.decide_all(Decision.REJECTED),
        "s": state.split,
        "e": lambda: state.edit(["typed"]),
        "]": lambda: state.move(1),
        "[": lambda: state.move(-1),
        "}": lambda: state.move_file(1),
        "{": lambda: state.move_file(-1),
        "o": state.toggle_order,
    }
    for key in keys:
        if state.hunk is not None or key in "][}{oAD":
            acts[key]()
        for selected in state.selection:
            selected.result()
    while state.undo():
        pass
    assert state.files == begun


# Going about.


def test_hunks_and_files_are_gone_through_in_both_directions() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        state = host.review.state
        await press(pilot, "]]]")
        assert (state.number, state.position) == (1, 0)
        assert "README.md" in host.text("file")
        await press(pilot, "[")
        assert (state.number, state.position) == (0, 2)
        await press(pilot, "}")
        assert state.number == 1
        await press(pilot, "}{")
        assert (state.number, state.position) == (0, 2)

    drive(both(), steps)


def test_o_lists_the_doubtful_hunks_first_and_keeps_the_present_one() -> None:
    last = cache()
    file = ReviewedFile(last.review, (Flag(Kind.SHAKY, "3", 27, "model 0.5, old text 0.4", 0.4, 0.5),))

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "o")
        assert host.review.state.order is Order.RISK
        assert [line.split("]")[1].split()[0] for line in host.hunks] == ["3", "1", "2"]
        assert host.hunks[1].startswith(">")
        await press(pilot, "[")
        assert host.hunks[0].startswith(">")

    drive([file], steps)


def test_a_click_on_a_hunk_or_a_file_goes_there() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.click("#review-hunks", offset=(4, 2))
        assert host.review.state.position == 2
        await pilot.click("#review-files", offset=(4, 1))
        assert host.review.state.number == 1

    drive(both(), steps, (120, 40))


def test_the_place_in_each_file_is_kept() -> None:
    state = Reviewing(both())
    state.move(1)
    state.move_file(1)
    state.move_file(-1)
    assert state.position == 1


# Looking.


def test_signs_and_underlines_tell_old_from_new_without_colours() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        lines = [line for line in host.diff if "TIMEOUT" in line]
        assert [line[1] for line in lines] == ["-", "+"]
        diff = host.review.query_one(DiffView)
        at = host.diff.index(lines[1])
        words = [s.text for s in diff.render_line(at - diff.scroll_offset.y) if s.style and s.style.underline]
        assert words == ["30000"]

    drive([cache()], steps)


def test_v_shows_both_sides_from_110_columns_on_and_says_what_is_missing_below() -> None:
    async def wide(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "v")
        (line,) = [line for line in host.diff if "TIMEOUT" in line]
        assert [part.split()[0] for part in line.lstrip("\u258c").split("\u2502")] == ["-", "+"]
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert len([line for line in host.diff if "TIMEOUT" in line]) == 2
        await pilot.resize_terminal(110, 30)
        await pilot.pause()
        assert len([line for line in host.diff if "TIMEOUT" in line]) == 1

    async def narrow(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "v")
        assert any("110 columns" in said for said in host.said())
        assert len([line for line in host.diff if "TIMEOUT" in line]) == 2

    drive([cache()], wide, (120, 40))
    drive([cache()], narrow, (109, 40))


def test_the_reasons_of_the_present_hunk_stand_below_and_leave_where_there_are_none() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert "QUIET   a number changed that the request does not name" in host.text("why")
        assert "p 0.46 old text, 0.53 new text" in host.text("why")
        await press(pilot, "]")
        assert host.text("why") == ""
        assert not host.review.query_one("#review-why").display

    drive([cache()], steps)


def test_a_tail_that_the_model_did_not_write_is_marked_where_it_begins() -> None:
    file = cache()
    rows = rows_around(ReviewedFile(file.review, unread_from=22), file.review.hunks[1], side_by_side=False)
    (at,) = [i for i, row in enumerate(rows) if row.remark]
    assert "not read by the model" in rows[at].remark
    following = rows[at + 1].cells[0]
    assert following is not None
    assert following.number == 23


def test_blanks_that_differ_are_drawn_and_tabs_take_their_columns() -> None:
    file = rewritten("\tx = 1\n", "    x = 1\n")
    old, new = (row.cells[0] for row in rows_around(file, file.review.hunks[0], side_by_side=False))
    assert old is not None
    assert new is not None
    assert (old.text, new.text) == ("\u2192   x = 1", "\u00b7\u00b7\u00b7\u00b7x = 1")
    assert old.marks == ((0, 4),)


def test_every_line_of_the_file_can_be_read_around_the_hunks_of_a_small_file() -> None:
    file = cache()
    for hunk in file.review.hunks:
        for side_by_side in (False, True):
            rows = rows_around(file, hunk, side_by_side=side_by_side)
            cells = [cell for row in rows for cell in row.cells if cell is not None]
            olds = [cell.text for row in rows if (cell := row.cells[0]) is not None and cell.sign != "+"]
            assert olds == OLD.splitlines()
            news = [cell.text for row in rows if (cell := row.cells[-1]) is not None and cell.sign != "-"]
            assert news == NEW.splitlines()
            numbers = [row.cells[0].number for row in rows if row.cells[0] is not None and row.cells[0].sign == "-"]
            assert numbers == [8, 22, 27]
            assert {cell.sign for cell in cells} == {" ", "-", "+"}


@given(st.text(st.sampled_from("ab \u4e2d\u0301\u200d"), max_size=80), st.integers(1, 20))
def test_a_line_that_is_broken_loses_nothing(text: str, width: int) -> None:
    pieces = cut(text, width)
    assert "".join(text[start:end] for start, end in pieces) == text


# Editing.


def test_e_takes_over_what_was_typed_and_accepts_it_and_only_those_lines_change() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "e")
        area = host.screen.query_one(TextArea)
        assert area.text == "TIMEOUT_MS = 30000\n"
        area.text = "TIMEOUT_MS = 4000\n# four seconds\n"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "[+] hunk 1" in host.text("file")
        assert host.text("why") == ""
        await press(pilot, "w")

    (written,) = drive([cache()], steps).writes
    expected = OLD.replace("TIMEOUT_MS = 3000\n", "TIMEOUT_MS = 4000\n# four seconds\n").replace("\n", "\r\n")
    assert written.files[0].result() == expected.encode()


def test_typed_text_is_not_dropped_without_a_question() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "e")
        await pilot.press("x", "escape")
        await pilot.pause()
        assert isinstance(host.screen, Question)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(host.screen, HunkEditor)
        await pilot.press("escape", "right", "enter")
        await pilot.pause()
        assert host.shows_review
        await press(pilot, "e")
        await pilot.press("escape")
        await pilot.pause()
        assert host.shows_review
        assert decisions(host.review.state) == ["o", "o", "o"]

    drive([cache()], steps)


def test_what_is_pasted_into_the_editor_does_not_steer_the_terminal() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "e")
        host.post_message(Paste("\x1b[31m\r\n\x07"))
        await pilot.pause()
        assert host.screen.query_one(TextArea).text == "\u241b[31m\n\u2407TIMEOUT_MS = 30000\n"
        assert "\x1b" not in host.export_screenshot()

    drive([cache()], steps)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r"), max_size=8), max_size=6))
def test_lines_that_nobody_touched_come_back_as_they_were_whatever_they_hold(lines: list[str]) -> None:
    assert lines_of(text_of(lines), lines) == [
        next(known for known in lines if text_of([known]) == text_of([line])) for line in lines
    ]


def test_marks_become_their_characters_again_and_lost_ones_must_stay_or_go() -> None:
    known = ["a\x0cb", "c\u202ed"]
    assert lines_of("x\u240cb\nc\ufffdd\n", known) == ["x\x0cb", "c\u202ed"]
    assert lines_of("x\u240cb\ncd\n", known) == ["x\x0cb", "cd"]
    with pytest.raises(ValueError, match=r"line 1 .* cannot be typed"):
        lines_of("y\ufffdd\n", known)


def test_an_empty_line_is_none_and_no_line_is_empty() -> None:
    assert lines_of("\n", []) == [""]
    assert lines_of("", []) == []
    assert lines_of("a", []) == ["a"]


# The model again.


def test_r_asks_for_a_note_and_the_hunk_waits_until_the_model_has_answered() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "r")
        host.screen.query_one(Input).value = "keep 3000"
        await pilot.press("enter")
        await pilot.pause()
        (redo,) = host.redos
        assert (redo.file, redo.hunk, redo.note, redo.screen) == (0, "1", "keep 3000", host.review)
        assert host.hunks[0].startswith(">[~]")
        await press(pilot, "y")
        assert decisions(host.review.state) == ["o", "o", "o"]
        host.review.redone(0, "1", ["TIMEOUT_MS = 3_000"])
        await press(pilot, "yw")
        assert b"TIMEOUT_MS = 3_000\r\n" in host.writes[0].files[0].result()

    drive([cache()], steps)


def test_a_hunk_that_the_model_could_not_write_anew_stays_as_it_was() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "r")
        await pilot.press("enter")
        await pilot.pause()
        host.review.refused("the context is full [/red]\x1b", 0, "1")
        await press(pilot, "yw")
        assert any("the context is full [/red]\u241b" in said for said in host.said())
        assert b"TIMEOUT_MS = 30000" in host.writes[0].files[0].result()

    drive([cache()], steps)


def test_an_answer_for_a_hunk_that_is_no_more_changes_nothing() -> None:
    state = Reviewing([cache()])
    before = state.files
    assert not state.redone(0, "7", ["x"])
    assert state.files == before


# Writing and leaving.


def test_what_is_cut_off_is_not_written_whatever_is_accepted() -> None:
    file = cache()
    reason = "the rewrite is not complete: the limit of tokens was reached at line 28 of 28"
    cut_off = ReviewedFile(file.review, findings=(Finding(Problem.TRUNCATED, 28, reason),))

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert f"STOP    this file: {reason}" in host.text("why").replace("\n", " ")
        await press(pilot, "Aw")
        assert any("src/cache.py cannot be written" in said for said in host.said())

    (written,) = drive([cut_off, both()[1]], steps).writes
    assert [each.number for each in written.files] == [1]


def test_a_lost_tail_is_written_after_a_yes_only_and_not_asked_about_when_it_is_rejected() -> None:
    old = "".join(f"line {number}\n" for number in range(40))
    new = old.replace("line 3\n", "line three\n").split("line 30\n")[0]

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "yyw")
        assert isinstance(host.screen, Question)
        await pilot.press("enter")
        await pilot.pause()
        assert host.writes == []
        await press(pilot, "w")
        await pilot.press("right", "enter")
        await pilot.pause()
        assert len(host.writes) == 1
        await press(pilot, "unw")
        assert len(host.writes) == 2

    first, second = drive([rewritten(old, new)], steps).writes
    assert first.files[0].result() == new.encode()
    assert second.files[0].result() == old.replace("line 3\n", "line three\n").encode()


def test_q_leaves_at_once_where_nothing_is_accepted_and_asks_once_otherwise() -> None:
    async def leaves(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "nq")
        assert host.left == 1

    async def asks(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "y")
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(host.screen, Question)
        await pilot.press("enter")
        await pilot.pause()
        assert host.shows_review
        await press(pilot, "q")
        await pilot.press("right", "right", "enter")
        await pilot.pause()
        assert (host.left, host.writes) == (1, [])

    drive([cache()], leaves)
    drive([cache()], asks)


def test_a_written_file_is_closed_and_the_review_leaves_when_all_is_done() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "ynnw")
        host.review.wrote(0, "7f3a")
        await press(pilot, "{")
        assert "written, /undo 7f3a" in host.text("file")
        await press(pilot, "nu")
        assert decisions(host.review.state)[:3] == ["a", "r", "r"]
        assert host.left == 0
        await press(pilot, "}yw")
        assert [each.number for each in host.writes[-1].files] == [1]
        host.review.wrote(1, "7f3b")
        await pilot.pause()
        assert host.left == 1

    drive(both(), steps)


def test_lines_that_were_typed_while_their_file_was_written_change_nothing() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "ye")
        host.screen.query_one(TextArea).text = "typed"
        host.review.wrote(0, "7f3a")
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert host.shows_review
        assert decisions(host.review.state) == ["a", "o", "o"]

    drive([cache()], steps)


def test_a_file_that_could_not_be_written_can_be_tried_again() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "yyyw")
        host.review.refused("src/cache.py changed since it was read; nothing was written", 0)
        await press(pilot, "w")
        assert len(host.writes) == 2

    drive([cache()], steps)


# What must never happen.


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12), (20, 5), (5, 2), (1, 1)])
def test_every_key_works_at_every_size(size: tuple[int, int]) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        for keys in ("]", "o", "v", "s", "u", "y", "n", "[", "}", "{", "a", "u", "d", "u", "A", "u", "D", "u", "?"):
            await press(pilot, keys)
        assert isinstance(host.screen, ReviewHelp)
        for key in ("escape", "e", "escape", "r", "escape"):
            await pilot.press(key)
        await pilot.pause()
        assert host.shows_review
        await pilot.resize_terminal(*size[::-1])
        await pilot.resize_terminal(*size)
        await press(pilot, "yyyw")

    assert len(drive(both(), steps, size).writes) == 1


def test_the_hunk_is_on_the_screen_at_20_by_5() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        drawn = "".join(segment.text for y in range(5) for segment in host.review.query_one(DiffView).render_line(y))
        assert "3000" in drawn.replace(" ", "")

    drive([cache()], steps, (20, 5))


def test_hostile_text_is_shown_literally_and_never_reaches_the_terminal() -> None:
    file = rewritten(f"a {HOSTILE[:-1]}\nb\n", f"a {HOSTILE[:-1]} new\nb\n", HOSTILE)
    flagged = ReviewedFile(
        file.review,
        (Flag(Kind.QUIET, "1", 1, HOSTILE, 0.4, 0.5),),
        (Finding(Problem.KEEP, 1, HOSTILE),),
        HOSTILE,
        HOSTILE,
        check=lambda source, changes: [Finding(Problem.KEEP, 1, HOSTILE)],
    )

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        for keys in ("", "v", "yw"):
            await press(pilot, keys)
            svg = host.export_screenshot()
            assert not set("\x1b\x07\x9b\u202e") & set(svg)
        assert isinstance(host.screen, Question)
        await pilot.press("escape")
        assert "[red]\u241b[31m]0;title\u2407 [/]" in host.text("why")
        assert any("[red]\u241b[31m" in line for line in host.diff)
        host.review.refused(HOSTILE, 0)
        await press(pilot, "e")
        assert not set("\x1b\x07\x9b\u202e") & set(host.export_screenshot())
        host.review.wrote(0, HOSTILE)
        await pilot.press("escape")
        await pilot.pause()
        assert not set("\x1b\x07\x9b\u202e") & set(host.export_screenshot())

    drive([flagged], steps, (120, 40))


def test_of_two_thousand_hunks_only_what_is_on_the_screen_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    old = [f"line {number}" for number in range(40_000)]
    new = [f"Line {number}" if number % 20 == 0 else f"line {number}" for number in range(40_000)]
    file = rewritten("\n".join(old) + "\n", "\n".join(new) + "\n")
    assert len(file.review.hunks) == 2000
    drawn: list[int] = []
    hunk_item = review_words.hunk_item

    def counted(state: Reviewing, item: int, width: int) -> object:
        drawn.append(item)
        return hunk_item(state, item, width)

    monkeypatch.setattr(review_words, "hunk_item", counted)

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        host.review.state.go(1000)
        await press(pilot, "y")
        assert len(host.diff) <= 2 * CONTEXT + 2
        drawn.clear()
        await press(pilot, "]")
        assert 1002 in drawn
        assert len(drawn) <= 40
        await press(pilot, "Aw")
        assert len(host.writes[0].files[0].hunks) == 2000

    drive([file], steps, (120, 40))


def test_a_review_of_no_files_is_refused_and_one_without_changes_only_leaves() -> None:
    with pytest.raises(ValueError, match="nothing to review"):
        ReviewScreen([], "x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert "nothing changed" in host.text("file")
        await press(pilot, "ynadADseruw[]{}oq")
        assert host.left == 1

    assert drive([rewritten(README, README)], steps).writes == []


def test_the_list_of_files_says_what_is_decided_and_what_is_flagged() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "y")
        first, second = host.review.query_one("#review-files", PickList).shown
        assert first.startswith("> src/cache.py")
        assert first.endswith("! 1/3")
        assert "!" not in second
        assert second.endswith("0/1")

    drive([cache(), rewritten(README, NEW_README, "README.md")], steps, (120, 40))


# Going about.


def test_j_and_k_go_to_hunks_that_are_not_decided_and_capitals_to_all() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "]y")  # the second is decided, the third is looked at
        await press(pilot, "k")
        assert host.review.state.position == 0
        await press(pilot, "j")
        assert host.review.state.position == 2
        await press(pilot, "K")
        assert host.review.state.position == 1
        await press(pilot, "JJ")
        assert (host.review.state.number, host.review.state.position) == (1, 0)
        await press(pilot, "yj")  # back to an open one; behind it there is none
        at = (host.review.state.number, host.review.state.position)
        await press(pilot, "DJKjk")
        assert host.review.state.n_open == 0
        assert at[0] == 0

    drive(both(), steps)


def test_a_text_is_found_in_old_and_new_lines_of_all_files_and_again_without_typing_it() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        state = host.review.state
        await press(pilot, "/")
        await pilot.press(*"JUMPED", "enter")
        await pilot.pause()
        assert state.number == 1
        await press(pilot, "/")
        await pilot.press(*"items", "enter")
        await pilot.pause()
        assert (state.number, state.position) == (0, 2)
        await press(pilot, "/")
        await pilot.press(*"[b]gone", "enter")
        await pilot.pause()
        assert (state.number, state.position) == (0, 2)
        assert host.said()[-1] == "no hunk holds [b]gone"
        await press(pilot, "/")
        await pilot.press("escape")
        assert host.shows_review

    drive(both(), steps)


def test_one_file_is_written_alone() -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await press(pilot, "A{W")
        assert [each.number for each in host.writes[0].files] == [0]
        await press(pilot, "}W")
        assert [each.number for each in host.writes[1].files] == [1]

    drive(both(), steps)


def test_the_part_and_what_is_to_be_known_of_a_file_are_shown() -> None:
    file = replace(cache(), part="lines 5-30", remarks=("it stands outside the folder: /srv/[b]x[/b]",))

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert "lines 5-30" in host.text("file")
        assert "NOTE    it stands outside the folder: /srv/[b]x[/b]" in host.text("why")

    drive([file], steps, (120, 40))


def test_a_short_name_leaves_the_facts_of_its_file_on_the_line() -> None:
    for name in ("a", "m.py", "src/cache.py", "a/long/way/to/a/file/that/has/a/name/of/its/own.py"):
        state = Reviewing([replace(rewritten(OLD, NEW, name), facts="utf-8  LF  0644")])
        for width in (60, 80, 120):
            line = review_words.file_line(state, width, side_by_side=False)
            assert "hunk 1 of 3" in line.plain
            assert line.cell_length == width
