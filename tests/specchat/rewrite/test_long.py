"""Files that are longer than the context: one rewrite and one outcome, piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specchat.errors import InputRefused, UsageError
from specchat.rewrite.checks import Problem, rails
from specchat.rewrite.errors import ChangedOnDisk
from specchat.rewrite.expressions import Expression
from specchat.rewrite.flags import Kind, doubts
from specchat.rewrite.follow import Progress
from specchat.rewrite.forecast import forecast
from specchat.rewrite.generate import RewriteEvent, Rewriting
from specchat.rewrite.long import AnyRewriting, Chunks, LongRewriting, rewriting_of
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.part import Part, parts_matching, whole
from specchat.rewrite.partial import Partial
from specchat.rewrite.source import SourceFile, joined, source_of
from specchat.session import ChatSession, Reply
from speculation.types import Finish
from tests.specchat.rewrite.files import encoded
from tests.specchat.rewrite.scripted import COPY, Script, ScriptedModel, TimedModel, edited, session_on

PARAGRAPHS = 30
LINES = [
    line
    for i in range(PARAGRAPHS)
    for line in (
        f"Paragraph {i} begins with this line",
        f"and goes on with number {i * 7}",
        f"until it ends here, {i}",
        "",
    )
][:-1]
FILE = source_of(joined(LINES).encode(), "a.txt")
SMALL = 1900  # tokens of context: the request takes about 1000 of them


def last(events: Iterator[RewriteEvent]) -> Outcome:
    *_, outcome = events
    assert isinstance(outcome, Outcome)
    return outcome


def long_on(model: ScriptedModel, source: SourceFile = FILE, **settings: object) -> LongRewriting:
    rewriting = rewriting_of(session_on(model, **settings), source, "do it")
    assert isinstance(rewriting, LongRewriting)
    return rewriting


def in_pieces(change: Callable[[int, str], str]) -> Script:
    """A model that makes a change of the text of each piece, which are numbered from 0 in the order of their coming."""
    seen: list[str] = []

    def script(text: str, closing: str) -> str:
        if text not in seen:
            seen.append(text)
        return change(seen.index(text), text) + closing

    return script


def changed(text: str) -> str:
    text = text.replace("number 14\n", "NUMBER 14\n").replace("Paragraph 20 begins", "inserted\nParagraph 20 begins")
    return text.replace("and goes on with number 175\n", "")


class TestWhole:
    def test_a_file_three_times_the_context_is_copied_bit_by_bit(self) -> None:
        source = source_of(joined(LINES * 3).replace("\n", "\r\n").encode()[:-2], "a.txt")
        assert len(source.data) > 3 * SMALL

        outcome = last(long_on(ScriptedModel(COPY, SMALL), source).run())

        assert outcome.complete
        assert outcome.data == source.data
        assert (outcome.review.hunks, outcome.findings, outcome.unread_from) == ((), (), None)

    @given(encoded(), st.integers(1300, 2400), st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_any_file_comes_back_whatever_the_pieces(self, data: bytes, n_ctx: int, repeated: bool) -> None:
        try:
            source = source_of(data * 8 if repeated else data, "a.txt")
            rewriting = LongRewriting(session_on(ScriptedModel(COPY, n_ctx)), source, "do it", [whole(source)])
        except InputRefused:
            assume(False)

        outcome = last(rewriting.run())

        assert outcome.data == source.data
        assert outcome.findings == ()

    def test_given_edits_change_only_their_lines_and_have_the_numbers_of_the_file(self) -> None:
        outcome = last(long_on(ScriptedModel(edited(changed), SMALL)).run())

        assert outcome.data == changed(joined(LINES)).encode()
        assert [(hunk.start, hunk.end) for hunk in outcome.review.hunks] == [(9, 10), (80, 80), (101, 102)]
        assert outcome.lines == tuple(changed(joined(LINES)).splitlines())
        assert outcome.findings == ()
        assert [(flag.kind, flag.line) for flag in outcome.flags] == [(Kind.QUIET, 10)]

    def test_doubts_stay_with_their_hunks(self) -> None:
        model = ScriptedModel(edited(lambda text: text.replace("number 175", "number 179")), SMALL)
        model.doubts = ""
        rewriting = long_on(model)
        for _ in rewriting.run():
            # Each piece is asked for with its own text, which the model nearly writes.
            model.doubts = _text_of(model.prompts[-1]) if model.prompts else ""
        outcome = last(rewriting.go_on())

        (hunk,) = outcome.review.hunks
        assert {flag.kind for flag in outcome.flags} == {Kind.QUIET, Kind.SHAKY}
        assert doubts(hunk, outcome.written, outcome.record.rejected)[0].p_new == pytest.approx(0.525, abs=0.01)
        assert outcome.flags[0].line == LINES.index("and goes on with number 175") + 1

    def test_progress_counts_over_the_whole_file(self) -> None:
        rewriting = long_on(ScriptedModel(edited(changed), SMALL))

        events = [event for event in rewriting.run() if isinstance(event, Progress)]

        assert {event.lines for event in events} == {len(LINES)}
        assert [event.line for event in events] == sorted(event.line for event in events)
        assert events[-1].line == len(LINES)
        assert [(edit.start, edit.end) for edit in events[-1].edits] == [(9, 10), (80, 80), (101, 102)]
        assert events[-1].tokens == sum(len(event.step.tokens) for event in events if event.step is not None)
        left = [event.plain_seconds_left for event in events if event.plain_seconds_left is not None]
        assert left[0] > left[len(left) // 2] > left[-1]
        assert rewriting.chunks == rewriting.chunks_done > 2

    def test_guard_rails_hold_for_the_file_and_are_said_once(self) -> None:
        guard = rails(max_change=1, keep=["numbers"], protect=["Paragraph 20"])
        session = session_on(ScriptedModel(edited(lambda text: text.replace("number 14\n", "number 15\n")), SMALL))

        outcome = last(rewriting_of(session, FILE, "do it", None, guard).run())

        assert [(each.problem, each.line) for each in outcome.findings] == [(Problem.KEEP, 10), (Problem.KEEP, 10)]

    def test_a_piece_that_is_cut_short_is_found_where_it_is(self) -> None:
        halved = in_pieces(lambda number, text: text[: len(text) // 2] if number == 1 else text)
        rewriting = long_on(ScriptedModel(halved, SMALL))
        second = rewriting.planned[1].part

        outcome = last(rewriting.run())

        assert Problem.LOST_TAIL in {each.problem for each in outcome.findings}
        assert all(second.start < each.line <= second.end for each in outcome.findings)
        assert Problem.LOST_TAIL in {each.problem for each in outcome.against(outcome.review.hunks[0].changes)}
        assert outcome.against([]) == []

    def test_a_file_that_fits_is_asked_for_at_once(self) -> None:
        assert isinstance(rewriting_of(session_on(ScriptedModel(COPY)), FILE, "do it"), Rewriting)

    def test_a_request_without_room_is_refused(self) -> None:
        with pytest.raises(InputRefused, match="the request alone takes more than the 300 tokens"):
            long_on(ScriptedModel(COPY, 300))

    def test_a_line_longer_than_the_context_is_refused_before_the_model_runs(self) -> None:
        model = ScriptedModel(COPY, SMALL)
        source = source_of(b"{\n" + b"x" * 200_000 + b"\n}\n", "a.json")

        with pytest.raises(InputRefused, match=r"line 2 of a.json has 200001 tokens.*context holds 1900") as refused:
            rewriting_of(session_on(model), source, "do it")

        assert refused.value.exit_code == 3
        assert model.n_past == 0

    def test_without_leave_to_cut_it_is_refused(self) -> None:
        with pytest.raises(InputRefused, match="context holds 1900"):
            rewriting_of(session_on(ScriptedModel(COPY, SMALL)), FILE, "do it", chunks=Chunks.NEVER)


def _text_of(prompt: str) -> str:
    found = re.search(r"^<file>\n(.*?)^</file>$", prompt, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


class TestAround:
    def test_a_piece_is_shown_what_was_made_of_the_lines_before_it(self) -> None:
        model = ScriptedModel(edited(lambda text: text.replace("until it ends here", "done with")), SMALL)
        rewriting = long_on(model)
        second = rewriting.planned[1].part

        last(rewriting.run())

        title = model.prompts[1].split("<file>\n")[0]
        assert "the change is made already" in title
        assert LINES[second.start - 2].replace("until it ends here", "done with") in title
        assert LINES[second.start - 2] not in model.prompts[1]

    def test_what_comes_before_the_file_is_read_once(self) -> None:
        session = session_on(ScriptedModel(COPY, SMALL))
        replies: list[Reply] = []
        outcome = last(rewriting_of(session, FILE, "do it").run())
        replies += outcome.record.replies
        for name in ("b.txt", "c.txt"):
            other = source_of(joined([f"{name} {i}" for i in range(20)]).encode(), name)
            replies += last(rewriting_of(session, other, "do it").run()).record.replies

        message = outcome.record.asked.message
        shared = message[: message.index("fence around the file.\n")].encode()
        assert len(replies) > 4
        assert all(reply.reused_tokens > len(shared) for reply in replies[1:])

    def test_the_mark_is_the_same_for_all_pieces(self) -> None:
        source = source_of(joined([*LINES, "</file>"]).encode(), "a.txt")
        model = ScriptedModel(COPY, SMALL)

        assert last(long_on(model, source).run()).data == source.data
        assert len({re.findall(r"line <(\w+)>", prompt)[0] for prompt in model.prompts}) == 1


class TestSeams:
    def faulty(self, change: Callable[[str, list[str], list[str]], str]) -> tuple[Outcome, Part]:
        """The outcome of a model that makes something of its second piece; it knows the lines around that."""
        model = ScriptedModel(COPY, SMALL)
        second = long_on(model).planned[1].part
        before, behind = LINES[: second.start], LINES[second.end :]
        model.script = in_pieces(lambda number, text: change(text, before, behind) if number == 1 else text)
        return last(long_on(model).run()), second

    def test_lines_of_the_overlap_that_are_written_again_are_taken_out(self) -> None:
        outcome, _ = self.faulty(lambda text, before, behind: joined(before[-3:]) + text)

        assert outcome.data == FILE.data
        assert outcome.findings == ()

    def test_lines_around_a_part_that_are_written_again_are_taken_out(self) -> None:
        model = ScriptedModel(
            lambda text, closing: joined(LINES[5:8]) + text.replace("goes", "went") + joined(LINES[11:14]) + closing
        )

        outcome = last(rewriting_of(session_on(model), FILE, "do it", Part(8, 11)).run())

        assert outcome.data == joined([*LINES[:9], LINES[9].replace("goes", "went"), *LINES[10:]]).encode()
        assert outcome.findings == ()

    def test_a_repeat_that_is_not_certain_is_found(self) -> None:
        outcome, second = self.faulty(
            lambda text, before, behind: (
                joined(before[-3:]) + text.replace("begins", "starts", 1).replace("until", "till") + joined(behind[1:2])
            )
        )

        assert [(each.problem, each.line) for each in outcome.findings] == [
            (Problem.SEAM, second.start + 1),
            (Problem.SEAM, second.end),
        ]
        assert not outcome.findings[0].never

    @pytest.mark.parametrize("at", [0, -1])
    def test_a_line_that_is_lost_at_a_seam_is_found(self, at: int) -> None:
        def dropped(text: str, before: list[str], behind: list[str]) -> str:
            lines = text.splitlines()
            del lines[at]
            return joined(lines)

        outcome, second = self.faulty(dropped)

        expected = second.start + 1 if at == 0 else second.end
        assert [(each.problem, each.line) for each in outcome.findings] == [(Problem.SEAM, expected)]
        assert not outcome.findings[0].never  # it may have been meant: a yes is enough
        assert outcome.data is not None

    @pytest.mark.parametrize("where", ["first", "last"])
    def test_a_line_that_is_put_in_exactly_at_a_seam_is_no_fault(self, where: str) -> None:
        new = "something that stands nowhere else\n"
        outcome, second = self.faulty(lambda text, before, behind: new + text if where == "first" else text + new)

        at = second.start if where == "first" else second.end
        assert outcome.data == joined([*LINES[:at], new[:-1], *LINES[at:]]).encode()
        assert outcome.findings == ()

    def test_a_line_that_is_merged_with_one_behind_the_seam_is_found(self) -> None:
        outcome, second = self.faulty(lambda text, before, behind: f"{text[:-1]} {behind[1]}\n")

        assert [(each.problem, each.line) for each in outcome.findings] == [(Problem.SEAM, second.end)]

    def test_what_was_changed_at_a_seam_on_purpose_is_no_fault(self) -> None:
        outcome, _ = self.faulty(lambda text, before, behind: text.replace("it ends", "they end").upper() + "added\n")

        assert outcome.findings == ()

    def test_the_same_line_in_front_of_every_paragraph_is_no_repeat(self) -> None:
        marked = edited(lambda text: text.replace("Paragraph", "a line of its own\nParagraph"))

        outcome = last(long_on(ScriptedModel(marked, SMALL)).run())

        assert len(outcome.review.hunks) == PARAGRAPHS
        assert outcome.findings == ()

    def test_a_rewrite_that_takes_lines_out_everywhere_may_do_so_at_seams(self) -> None:
        shorter = edited(lambda text: re.sub("until it ends.*\n", "", text))

        outcome = last(long_on(ScriptedModel(shorter, SMALL)).run())

        assert len(outcome.review.hunks) == PARAGRAPHS
        assert outcome.findings == ()


class TestStopping:
    def stopped(self, rewriting: AnyRewriting, line: int, act: Callable[[], None]) -> Outcome:
        outcome = None
        for event in rewriting.run():
            if isinstance(event, Progress) and event.line >= line:
                act()
            outcome = event
        assert isinstance(outcome, Outcome)
        return outcome

    @pytest.mark.parametrize("line", [3, 28, 30, 60, 100])
    def test_a_stop_keeps_the_pieces_that_are_done_and_going_on_ends_it(self, line: int) -> None:
        rewriting = long_on(ScriptedModel(edited(changed), SMALL))

        outcome = self.stopped(rewriting, line, rewriting.stop)

        assert outcome.interrupted
        assert outcome.data is None
        assert outcome.findings[0].problem is Problem.TRUNCATED
        assert outcome.unread_from is not None
        assert line <= outcome.unread_from
        assert outcome.lines[-10:] == tuple(LINES[-10:])
        assert [hunk.start for hunk in outcome.review.hunks] == [n for n in (9, 80, 101) if n < outcome.unread_from]
        assert last(rewriting.go_on()).data == changed(joined(LINES)).encode()

    def test_a_limit_of_tokens_is_picked_up(self) -> None:
        rewriting = long_on(ScriptedModel(edited(changed), SMALL), max_tokens=100)

        outcome = last(rewriting.run())

        assert outcome.record.finish is Finish.LENGTH
        assert outcome.can_go_on
        while not outcome.complete:
            outcome = last(rewriting.go_on())
        assert outcome.data == changed(joined(LINES)).encode()
        assert len(outcome.record.replies) > rewriting.chunks

    def test_the_rest_is_that_of_all_later_pieces(self) -> None:
        model = ScriptedModel(edited(changed), SMALL)
        rewriting = long_on(model)

        outcome = self.stopped(rewriting, 20, rewriting.take_rest)

        assert outcome.complete
        assert outcome.data == joined(LINES).replace("number 14\n", "NUMBER 14\n").encode()
        assert outcome.unread_from is not None
        assert 20 <= outcome.unread_from < 40
        assert len(model.prompts) < rewriting.chunks

    def test_the_rest_can_be_taken_after_a_stop(self) -> None:
        rewriting = long_on(ScriptedModel(edited(changed), SMALL))
        self.stopped(rewriting, 85, rewriting.stop)

        outcome = rewriting.rest_unchanged()

        assert outcome.complete
        assert outcome.data == changed(joined(LINES[:100])).encode() + joined(LINES[100:]).encode()

    def test_a_look_at_what_there_is_ends_no_piece(self) -> None:
        rewriting = long_on(ScriptedModel(edited(changed), SMALL))
        self.stopped(rewriting, 85, rewriting.stop)
        kept = rewriting.partial()

        rewriting.rest_unchanged()

        assert rewriting.partial() == kept
        assert last(rewriting.go_on()).data == changed(joined(LINES)).encode()

    def test_a_context_that_becomes_full_goes_on_with_a_new_piece(self) -> None:
        rows = "".join(f"a line that is new, {i}\n" for i in range(20))
        model = ScriptedModel(COPY, SMALL)
        rewriting = long_on(model)
        pieces, place = rewriting.chunks, LINES[rewriting.planned[2].part.end - 3]
        model.script = edited(lambda text: text.replace(place, rows + place))

        outcome = last(rewriting.run())

        assert outcome.data == joined(LINES).replace(place, rows + place).encode()
        assert rewriting.chunks > pieces

    def test_a_model_that_runs_away_fills_the_context_once(self) -> None:
        model = ScriptedModel(in_pieces(lambda number, text: text if number == 0 else "more and more\n" * 400), SMALL)

        outcome = last(long_on(model).run())

        assert outcome.record.finish is Finish.CONTEXT
        assert not outcome.can_go_on
        assert len(model.prompts) == 2


class TestPartial:
    def kept(self, session: ChatSession, line: int, source: SourceFile = FILE) -> Partial:
        rewriting = rewriting_of(session, source, "do it")
        for event in rewriting.run():
            if isinstance(event, Progress) and event.line >= line:
                break
        return Partial.from_json(rewriting.partial().as_json())

    @pytest.mark.parametrize("n_ctx", [SMALL, 20_000])
    @pytest.mark.parametrize("line", [0, 5, 31, 60, 90, 110])
    def test_another_process_goes_on_where_one_died(self, line: int, n_ctx: int) -> None:
        partial = self.kept(session_on(ScriptedModel(edited(changed), n_ctx)), line)

        model = ScriptedModel(edited(changed), n_ctx)
        rewriting = rewriting_of(session_on(model), FILE, "do it", partial=partial)
        outcome = last(rewriting.run())

        assert partial.lines_done >= line - 8
        assert outcome.data == changed(joined(LINES)).encode()
        assert outcome.findings == ()
        again = outcome.totals.emitted - partial.took.totals.emitted
        assert 0 < again < len(FILE.text) * (1 - partial.lines_done / len(LINES)) + 200
        assert outcome.record.before == partial.took

    def test_all_of_it_may_be_done(self) -> None:
        rewriting = long_on(ScriptedModel(edited(changed), SMALL))
        last(rewriting.run())

        model = ScriptedModel(COPY, SMALL)
        outcome = last(rewriting_of(session_on(model), FILE, "do it", partial=rewriting.partial()).run())

        assert outcome.data == changed(joined(LINES)).encode()
        assert model.n_past == 0

    def test_another_file_another_request_and_other_lines_are_refused(self) -> None:
        session = session_on(ScriptedModel(COPY, SMALL))
        partial = self.kept(session, 40)
        other = source_of(FILE.data + b"x", "a.txt")

        with pytest.raises(ChangedOnDisk, match=r"a\.txt has changed"):
            rewriting_of(session, other, "do it", partial=partial)
        with pytest.raises(UsageError, match="another request"):
            rewriting_of(session, FILE, "do that", partial=partial)
        with pytest.raises(UsageError, match="other lines"):
            rewriting_of(session, FILE, "do it", Part(0, 10), partial=partial)

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda found: found.pop("pieces"),
            lambda found: found.update(version=3),
            lambda found: found["pieces"][0].update(lines=["a\nb"]),
            lambda found: found["pieces"][0].update(offsets=[5]),
            lambda found: found["pieces"][0].update(part=[-1, 3]),
            lambda found: found["pieces"][0].update(rejected=[[0, 1, "x", 0.5]]),
            lambda found: found.update(sha256=None),
        ],
    )
    def test_what_is_no_partial_rewrite_is_refused(self, spoil: Callable[[dict[str, object]], object]) -> None:
        found = self.kept(session_on(ScriptedModel(COPY, SMALL)), 40).as_json()
        spoil(found)

        with pytest.raises(InputRefused, match="begin it anew"):
            Partial.from_json(found)

    def test_pieces_that_do_not_fit_the_file_are_refused(self) -> None:
        session = session_on(ScriptedModel(COPY, SMALL))
        found = self.kept(session, 40).as_json()
        found["pieces"][0]["part"] = [0, 5000]

        with pytest.raises(InputRefused, match="does not fit the file"):
            rewriting_of(session, FILE, "do it", partial=Partial.from_json(found))


class TestParts:
    def test_each_part_is_written_on_its_own_and_all_else_stays(self) -> None:
        model = ScriptedModel(edited(lambda text: text.upper()))
        parts = parts_matching(FILE, Expression("Paragraph 1[0-2] ", "--match"))

        outcome = last(rewriting_of(session_on(model), FILE, "do it", parts).run())

        wanted = {line for part in parts for line in range(part.start, part.end)}
        assert len(parts) == len(model.prompts) == 3
        assert outcome.data == joined(t.upper() if i in wanted else t for i, t in enumerate(LINES)).encode()
        assert [hunk.id for hunk in outcome.review.hunks] == ["1"]
        assert outcome.record.part == Part(parts[0].start, parts[-1].end)

    def test_a_part_of_a_long_file_is_shown_only_what_is_near(self) -> None:
        model = ScriptedModel(edited(lambda text: text.upper()), SMALL)

        outcome = last(rewriting_of(session_on(model), FILE, "do it", Part(60, 63)).run())

        assert outcome.data == joined(t.upper() if 60 <= i < 63 else t for i, t in enumerate(LINES)).encode()
        assert LINES[58] in model.prompts[0]
        assert LINES[0] not in model.prompts[0]


def test_the_forecast_is_that_of_all_pieces() -> None:
    session = session_on(TimedModel(COPY, SMALL))
    rewriting = rewriting_of(session, FILE, "do it")

    expected = forecast(session, rewriting)
    outcome = last(rewriting.run())

    assert expected is not None
    cost = session.engines.cost
    assert cost is not None
    took = sum(cost.forward_s(step.drafted + 1) for step in outcome.record.steps)
    assert expected.unchanged_s - expected.read_s == pytest.approx(took, rel=0.3)
    assert expected.changed_s - expected.read_s == pytest.approx(outcome.totals.emitted, rel=0.05)
    assert expected.prompt_tokens == pytest.approx(sum(each.read_tokens for each in outcome.record.replies), rel=0.05)
