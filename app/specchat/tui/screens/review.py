"""Hunk by hunk through what a rewrite changed. Nothing is written here: what is accepted is handed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from specchat.attachments import label
from specchat.rewrite.flags import Flag
from specchat.rewrite.hunks import Decision
from specchat.tui.reviewed import ReviewedFile, Selected
from specchat.tui.screens.hunk_editor import HunkEditor, Note
from specchat.tui.screens.question import Question
from specchat.tui.screens.review_help import ReviewHelp
from specchat.tui.screens.review_moves import ReviewMoves
from specchat.tui.widgets.diff import DiffView


class ReviewScreen(ReviewMoves):
    """The review; posts Write and Redo, and is told of their ends by `wrote`, `redone` and `refused`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "decide('accepted')", "Accept", id="review.accept"),
        Binding("n", "decide('rejected')", "Reject", id="review.reject"),
        Binding("a", "rest('accepted')", "Accept the rest of the file", id="review.accept_rest"),
        Binding("d", "rest('rejected')", "Reject the rest of the file", id="review.reject_rest"),
        Binding("A", "all('accepted')", "Accept all", id="review.accept_all"),
        Binding("D", "all('rejected')", "Reject all", id="review.reject_all"),
        Binding("s", "split", "Split", id="review.split"),
        Binding("e", "edit", "Edit", id="review.edit"),
        Binding("r", "redo", "Redo with a note", id="review.redo"),
        Binding("u", "undo", "Undo", id="review.undo"),
        Binding("left_square_bracket,K", "hunk(-1)", "Previous hunk", id="review.previous"),
        Binding("right_square_bracket,J", "hunk(1)", "Next hunk", id="review.next"),
        Binding("k", "open_hunk(-1)", "Previous open hunk", id="review.previous_open"),
        Binding("j", "open_hunk(1)", "Next open hunk", id="review.next_open"),
        Binding("slash", "find", "Find", id="review.find"),
        Binding("left_curly_bracket", "file(-1)", "Previous file", id="review.previous_file"),
        Binding("right_curly_bracket", "file(1)", "Next file", id="review.next_file"),
        Binding("o", "order", "Order", id="review.order"),
        Binding("v", "side_by_side", "Side by side", id="review.side_by_side"),
        Binding("w", "write", "Write accepted", id="review.write"),
        Binding("W", "write_file", "Write this file", id="review.write_file"),
        Binding("q,escape", "leave", "Leave", id="review.leave"),
        Binding("question_mark", "keys", "Help", id="review.help"),
    ]

    @dataclass
    class Write(Message):
        """Write these hunks. `ReviewScreen.wrote` or `refused` is to be called for each file."""

        screen: ReviewScreen
        files: tuple[Selected, ...]

    @dataclass
    class Redo(Message):
        """Write a hunk anew. `ReviewScreen.redone` or `refused` is to be called."""

        screen: ReviewScreen
        file: int  # in the order in which the files were given; from 0
        hunk: str
        note: str

    def __init__(self, files: Sequence[ReviewedFile], instruction: str) -> None:
        """Raises ValueError for no files."""
        super().__init__(files, instruction)

    def compose(self) -> ComposeResult:
        """One page."""
        yield self._page

    def on_mount(self) -> None:
        """Arrows scroll at once."""
        self.query_one(DiffView).focus()

    @property
    def selection(self) -> list[Selected]:
        """The accepted hunks of each file that is not written."""
        return self.state.selection

    def wrote(self, number: int, undo: str) -> None:
        """A file is written; `undo` is the id to take that back with. Leaves where nothing else is to be done."""
        self.state.written[number] = undo
        self.tell_user(f"{self.state.files[number].name} is written; /undo {undo} takes it back")
        if self.state.n_open == 0 and self.state.unwritten == 0 and self.app.screen is self:
            self.dismiss()
        else:
            self._page.draw()

    def redone(self, number: int, hunk: str, lines: Sequence[str], flags: Iterable[Flag] = ()) -> None:
        """The model wrote a hunk anew; `lines` are all that stand between its first and its last line."""
        if self.state.redone(number, hunk, lines, flags):
            self.tell_user(f"hunk {hunk} of {self.state.files[number].name} was written anew")
        self._page.draw()

    def refused(self, text: str, number: int, hunk: str = "") -> None:
        """A file could not be written, or, where `hunk` is given, this hunk could not be written anew."""
        self.state.redoing.discard((number, hunk))
        self.tell_user(f"{self.state.files[number].name}: {text}", "error")
        self._page.draw()

    # Keys.

    def action_decide(self, decision: str) -> None:
        """Decide on this hunk."""
        if self._may_change():
            self._decided(self.state.decide(Decision(decision)))

    def action_rest(self, decision: str) -> None:
        """Decide on this hunk and the open ones behind it."""
        if self._may_change():
            self._decided(self.state.decide_rest(Decision(decision)))

    def action_all(self, decision: str) -> None:
        """Decide on all open hunks of all files."""
        self._decided(self.state.decide_all(Decision(decision)))

    def action_split(self) -> None:
        """Cut this hunk into smaller ones."""
        if self._may_change():
            if not self.state.split():
                self.tell_user("this hunk cannot be split further; e edits it")
            self._page.draw()

    def action_edit(self) -> None:
        """Type over the new lines of this hunk."""
        hunk, file = self.state.hunk, self.state.file
        if hunk is None or not self._may_change():
            return

        def typed(lines: list[str] | None) -> None:
            if lines is not None and self._may_change():
                self.state.edit(lines)
                self._page.draw()

        old = file.review.source.texts[hunk.start : hunk.end]
        self.app.push_screen(HunkEditor(file.name, file.review.new_lines(hunk.id), old, hunk.start + 1), typed)

    def action_redo(self) -> None:
        """Ask for a note, and the model for this hunk again."""
        hunk, number = self.state.hunk, self.state.number
        if hunk is None or not self._may_change():
            return

        def noted(note: str | None) -> None:
            if note is not None:
                self.state.redoing.add((number, hunk.id))
                self.post_message(self.Redo(self, number, hunk.id, note))
                self._page.draw()

        self.app.push_screen(Note(), noted)

    def action_undo(self) -> None:
        """Take back the last change."""
        if not self.state.undo():
            self.tell_user("nothing is left to take back here")
        self._page.draw()

    def action_write(self) -> None:
        """Hand on what is accepted, after a question where something stands against it."""
        self._write(self.selection)

    def action_write_file(self) -> None:
        """The same with this file only."""
        self._write(self.state.selected([self.state.number]))

    def _write(self, selected: Sequence[Selected]) -> None:
        if not selected:
            self.tell_user("no hunk is accepted yet: y accepts one, a the rest of the file")
            return
        for each in selected:
            if never := [finding.reason for finding in each.findings if finding.never]:
                self.tell_user(f"{self.state.files[each.number].name} cannot be written: {'; '.join(never)}", "error")
        ready = tuple(each for each in selected if not any(finding.never for finding in each.findings))
        doubts = [
            f"{self.state.files[each.number].name}, line {finding.line}: {finding.reason}"
            for each in ready
            for finding in each.findings
        ]

        def answered(number: int | None) -> None:
            if number == 1:
                self.post_message(self.Write(self, ready))

        if ready and doubts:
            text = "\n".join(label(doubt) for doubt in doubts[:8]) + ("\n..." if len(doubts) > 8 else "")
            self.app.push_screen(Question("Write this?", text, ["Do not write", "Write it"]), answered)
        elif ready:
            self.post_message(self.Write(self, ready))

    def action_leave(self) -> None:
        """Leave; ask once where accepted hunks are not written."""
        n = self.state.unwritten

        def answered(number: int | None) -> None:
            if number == 1:
                self.action_write()
            elif number == 2:
                self.dismiss()

        if n:
            text = f"{n} accepted hunk{'s are' if n > 1 else ' is'} not written."
            self.app.push_screen(Question("Leave the review?", text, ["Stay", "Write", "Leave without"]), answered)
        else:
            self.dismiss()

    def action_keys(self) -> None:
        """What the keys and signs mean."""
        self.app.push_screen(ReviewHelp())

    # Inside.

    def _may_change(self) -> bool:
        """Whether this hunk can be decided; says why not."""
        state = self.state
        if state.number in state.written:
            self.tell_user(f"this file is written; /undo {state.written[state.number]} takes it back")
        elif state.hunk is None:
            self.tell_user("nothing changed in this file")
        elif state.is_settled:
            self.tell_user("this hunk is being written anew")
        return not state.is_settled

    def _decided(self, goes_on: bool, /) -> None:
        if not goes_on and not self.state.n_open:
            n = self.state.unwritten
            self.tell_user(
                f"all is decided: w writes {n} hunk{'s' if n > 1 else ''}" if n else "all is decided: q leaves"
            )
        self._page.draw()
