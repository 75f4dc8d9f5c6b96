"""A rewrite between engine and screens: the job that runs it, and what the app does with its messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from textual import on, work
from textual.message import Message

from specchat.errors import Refusal, in_one_line
from specchat.tui.actions import Actions
from specchat.tui.rewritten import reviewed_file
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.rewrite_ask import RewriteAsk, RewriteWanted, words_of
from specchat.tui.screens.rewriting import RewritingScreen

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.rewrite.follow import Progress
    from specchat.rewrite.generate import RewriteEvent, Rewriting
    from specchat.rewrite.outcome import Outcome
    from specchat.rewrite.source import SourceFile
    from specchat.session import ChatSession, Reading

POST_S = 0.2  # between two messages of progress


@dataclass
class RewriteRead(Message):
    """How far file and request are read."""

    reading: Reading

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RewriteRead)


@dataclass
class RewriteMoved(Message):
    """How far the rewrite is."""

    progress: Progress

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RewriteMoved)


@dataclass
class RewriteEnded(Message):
    """A rewrite that ended, or was stopped."""

    outcome: Outcome


@dataclass
class RewriteFailed(Message):
    """A rewrite that could not be begun or went wrong."""

    text: str


@dataclass
class HunkEnded(Message):
    """One hunk was written anew, or could not be."""

    asked: ReviewScreen.Redo
    outcome: Outcome | None
    text: str = ""


class RewriteJob:
    """One rewrite on the engine's thread. `stop` and `take_rest` are called by the screen."""

    def __init__(self, wanted: RewriteWanted) -> None:
        self._wanted = wanted
        self._rewriting: Rewriting | None = None
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._rewriting is not None:
            self._rewriting.stop()

    def take_rest(self) -> None:
        if self._rewriting is not None:
            self._rewriting.take_rest()

    def refuse(self, post: Callable[[Message], object], text: str) -> None:
        """It cannot be begun."""
        post(RewriteFailed(text))

    def run(self, session: ChatSession, post: Callable[[Message], object], between_steps: Callable[[], None]) -> None:
        """Read the file, let the model write it again, and post what comes of it."""
        from specchat.rewrite.generate import Rewriting
        from specchat.rewrite.source import read_source

        try:
            source = read_source(self._wanted.path)
            self._rewriting = Rewriting(session, source, self._wanted.instruction)
            self._drain(self._rewriting.run(), post, between_steps)
        except Exception as error:
            self.refuse(post, in_one_line(error))

    def _drain(
        self, events: Iterator[RewriteEvent], post: Callable[[Message], object], between_steps: Callable[[], None]
    ) -> None:
        from specchat.rewrite.follow import Progress
        from specchat.session import Reading

        posted = 0.0
        for event in events:
            if isinstance(event, Reading):
                post(RewriteRead(event))
            elif not isinstance(event, Progress):
                post(RewriteEnded(event))
            elif perf_counter() - posted >= POST_S:
                posted = perf_counter()
                post(RewriteMoved(event))
            between_steps()
            if self._stopped and self._rewriting is not None:  # also one that came before the run began
                self._rewriting.stop()


class HunkJob:
    """Old lines of one hunk, written anew on the engine's thread with a note of the user's."""

    def __init__(self, asked: ReviewScreen.Redo, source: SourceFile, start: int, end: int, instruction: str) -> None:
        self._asked = asked
        self._source = source
        self._lines = start, end
        self._instruction = instruction

    def refuse(self, post: Callable[[Message], object], text: str) -> None:
        post(HunkEnded(self._asked, None, text))

    def run(self, session: ChatSession, post: Callable[[Message], object], between_steps: Callable[[], None]) -> None:
        from specchat.rewrite.generate import Rewriting
        from specchat.rewrite.outcome import Outcome
        from specchat.rewrite.part import Part

        try:
            outcome = None
            for event in Rewriting(session, self._source, self._instruction, Part(*self._lines)).run():
                outcome = event if isinstance(event, Outcome) else outcome
                between_steps()
            post(HunkEnded(self._asked, outcome))
        except Exception as error:
            self.refuse(post, in_one_line(error))


class RewriteActions(Actions):
    """F4 and `/rewrite`: ask, show the progress, review, write."""

    folder: Path
    is_busy: Callable[[], bool]
    _job: RewriteJob | None = None
    _instruction: str = ""

    def action_rewrite(self, rest: str = "") -> None:
        """Rewrite a file: its path and what to do, asked for where they are not given."""
        if self.is_busy() or self._job is not None:
            return
        path, instruction = words_of(rest)
        self.push_screen(RewriteAsk(self.folder, path, instruction), self._begin_rewrite)

    async def _begin_rewrite(self, wanted: RewriteWanted | None) -> None:
        if wanted is None:
            return
        job = self._job = RewriteJob(wanted)
        self._instruction = wanted.instruction
        screen = RewritingScreen(str(wanted.path), wanted.instruction)
        await self.push_screen(screen)  # the job's messages go to it
        screen.show_guesser(self.settings.guess.mode)
        self.engine.rewrite(job)

    @property
    def _progress_screen(self) -> RewritingScreen | None:
        return next((screen for screen in self.screen_stack if isinstance(screen, RewritingScreen)), None)

    @on(RewriteRead)
    def _rewrite_read(self, message: RewriteRead) -> None:
        if (screen := self._progress_screen) is not None:
            reading = message.reading
            screen.show_reading(reading.read, reading.total, reading.seconds_left)

    @on(RewriteMoved)
    def _rewrite_moved(self, message: RewriteMoved) -> None:
        if (screen := self._progress_screen) is not None:
            screen.show(message.progress)

    @on(RewriteFailed)
    def _rewrite_failed(self, message: RewriteFailed) -> None:
        self._close_progress()
        self.tell(message.text, "error")

    @on(RewriteEnded)
    def _rewrite_ended(self, message: RewriteEnded) -> None:
        self._close_progress()
        outcome = message.outcome
        if outcome.review.hunks:
            self.push_screen(ReviewScreen([reviewed_file(outcome)], self._instruction))
        elif outcome.complete:
            self.tell("nothing to change")
        else:
            self.tell(outcome.findings[0].reason, "warning")

    def _close_progress(self) -> None:
        self._job = None
        if (screen := self._progress_screen) is not None:
            screen.dismiss()

    @on(RewritingScreen.Stop)
    def _stop_rewrite(self) -> None:
        if self._job is not None:
            self._job.stop()

    @on(RewritingScreen.RestUnchanged)
    def _take_rest(self) -> None:
        if self._job is not None:
            self._job.take_rest()

    @on(RewritingScreen.NextGuesser)
    def _other_guesser(self) -> None:
        self.action_guess()
        if (screen := self._progress_screen) is not None:
            screen.show_guesser(self.settings.guess.mode)

    @on(ReviewScreen.Write)
    def _write_rewrite(self, message: ReviewScreen.Write) -> None:
        self._save(message.screen, message)

    @work(thread=True, exclusive=True, group="save", exit_on_error=False)
    def _save(self, screen: ReviewScreen, message: ReviewScreen.Write) -> None:
        """Disks may be slow; the screen hears of each file when it is written."""
        from specchat.rewrite.undo import UndoStore, undo_folder

        store = UndoStore(undo_folder())
        for selected in message.files:
            try:
                entry = store.save(selected.review.source, selected.result(), self._instruction)
            except Refusal as error:
                self._tell_screen(screen.refused, str(error), selected.number)
            else:
                self._tell_screen(screen.wrote, selected.number, "" if entry is None else entry.id)

    def _tell_screen(self, what: Callable[..., None], *about: Any) -> None:
        with suppress(RuntimeError):  # the app has ended meanwhile
            self.call_from_thread(what, *about)

    @on(ReviewScreen.Redo)
    def _redo_hunk(self, message: ReviewScreen.Redo) -> None:
        review = message.screen.state.files[message.file].review
        hunk = next((each for each in review.hunks if each.id == message.hunk), None)
        if hunk is None or hunk.start == hunk.end:
            message.screen.refused("there is no old line to write anew here; e edits it", message.file, message.hunk)
            return
        instruction = f"{self._instruction}\n{message.note}" if message.note else self._instruction
        self.engine.rewrite(HunkJob(message, review.source, hunk.start, hunk.end, instruction))

    @on(HunkEnded)
    def _hunk_ended(self, message: HunkEnded) -> None:
        asked, outcome = message.asked, message.outcome
        if outcome is None or not outcome.complete:
            text = message.text or "it did not come to an end; e edits it"
            asked.screen.refused(text, asked.file, asked.hunk)
        else:
            asked.screen.redone(asked.file, asked.hunk, outcome.lines)
