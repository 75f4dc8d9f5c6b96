"""What the app does for F4 and `/rewrite`: ask, show the progress, ask about what was cut off, review, sum up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from textual import on

from specchat.rewrite.recipes import Recipe, load_recipes
from specchat.tui.pricing import PriceActions
from specchat.tui.rewrite_jobs import RewriteJob
from specchat.tui.rewrite_messages import (
    RewriteBegun,
    RewriteEnded,
    RewriteFailed,
    RewriteMoved,
    RewriteRead,
    RewritesDone,
    RewriteStopped,
)
from specchat.tui.rewrite_results import UNCHANGED, Results, summed_up
from specchat.tui.rewrite_words import RewriteWanted, files_and_instruction
from specchat.tui.screens.question import Question
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.rewrite_ask import RewriteAsk
from specchat.tui.screens.rewriting import RewritingScreen
from specchat.tui.screens.summary import SummaryScreen

_CONTINUE, _REVIEW, _SKIP, _DROP, _DROP_ALL = "Continue", "Review what there is", "Skip it", "Drop it", "Drop all"
_MOST_KEPT = 50  # instructions


class RewriteActions(PriceActions):
    """Rewrites."""

    folder: Path
    is_busy: Callable[[], bool]
    _job: RewriteJob | None = None
    _results: Results | None = None
    _cut: list[RewriteEnded]  # files that reached a limit
    _instructions: Sequence[str] = ()  # of this session

    def action_rewrite(self, rest: str = "") -> None:
        """Rewrite files: which ones and what to do, asked for where they are not given."""
        if self.is_busy() or self._job is not None:
            return
        files, instruction = files_and_instruction(rest, self.folder)
        ask = RewriteAsk(self.folder, files, instruction, self._instructions, self._recipes)
        self.push_screen(ask, self._begin_rewrite)

    def _recipes(self) -> Sequence[Recipe]:
        return load_recipes(lambda problem: self.tell(problem, "warning"))

    async def _begin_rewrite(self, wanted: RewriteWanted | None) -> None:
        self.drop_price()
        if wanted is None:
            return
        earlier = [each for each in self._instructions if each != wanted.instruction]
        self._instructions = (*earlier, wanted.instruction)[-_MOST_KEPT:]
        self._results, self._cut = Results(wanted), []
        job = self._job = RewriteJob(wanted, self.unfinished)
        screen = RewritingScreen(self._results.name(0), wanted.instruction, 1, len(wanted.targets))
        await self.push_screen(screen)  # the job's messages go to it
        screen.show_guesser(self.settings.guess.mode)
        self.engine.rewrite(job)

    # While it runs.

    @property
    def _progress_screen(self) -> RewritingScreen | None:
        return next((screen for screen in self.screen_stack if isinstance(screen, RewritingScreen)), None)

    @on(RewriteBegun)
    def _rewrite_begun(self, message: RewriteBegun) -> None:
        if (screen := self._progress_screen) is not None and (results := self._results) is not None:
            screen.begin(results.name(message.number), message.number + 1, len(results.wanted.targets))
            screen.show_forecast(message.forecast)
            screen.show_results(results.so_far())

    @on(RewriteRead)
    def _rewrite_read(self, message: RewriteRead) -> None:
        if (screen := self._progress_screen) is not None:
            reading = message.reading
            screen.show_reading(reading.read, reading.total, reading.seconds_left)

    @on(RewriteMoved)
    def _rewrite_moved(self, message: RewriteMoved) -> None:
        if (screen := self._progress_screen) is not None:
            screen.show(message.progress, message.request, message.requests)

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

    # When files end.

    @on(RewriteFailed)
    def _rewrite_failed(self, message: RewriteFailed) -> None:
        if self._results is not None:
            self._results.fail(message.number, message.text)

    @on(RewriteEnded)
    def _rewrite_ended(self, message: RewriteEnded) -> None:
        results, outcome = self._results, message.outcome
        if results is None:
            return
        if outcome.complete:
            results.take(message.number, outcome, message.refused)
        else:
            way_out = "; choose it once more to go on" if message.is_kept else ""
            results.fail(message.number, f"{outcome.findings[0].reason}{way_out}")
            if outcome.can_go_on or message.usable is not None:
                self._cut.append(message)

    @on(RewriteStopped)
    def _rewrite_stopped(self, message: RewriteStopped) -> None:
        """Nothing that was written is thrown away without a word."""
        results, number = self._results, message.number
        if results is None:
            return
        ready = message.usable is not None or bool(results.outcomes)
        answers: dict[str, Callable[[], object]] = {_CONTINUE: lambda: self._go_on(number)}
        if ready:
            answers[_REVIEW] = lambda: self._review_now(message)
        if message.left:
            answers[_SKIP] = lambda: self._skip(number)
        answers[_DROP if results.is_one else _DROP_ALL] = lambda: self._drop_all(number)
        text = f"{results.name(number)}: {message.outcome.findings[0].reason}."
        if message.left:
            text += f" {message.left} more file{'s' if message.left > 1 else ''} would follow."
        # Who leaves the question without an answer loses nothing.
        self._ask("Stopped", text, answers, answers[_REVIEW if ready else _CONTINUE])

    @on(RewritesDone)
    def _rewrites_done(self) -> None:
        """Ask about each file that reached a limit, then show what there is."""
        results = self._results
        if results is None:
            return
        if not self._cut:
            self._finish()
            return
        ended = self._cut.pop(0)
        answers: dict[str, Callable[[], object]] = {}
        if ended.outcome.can_go_on:
            answers[_CONTINUE] = lambda: self._go_on(ended.number)
        if ended.usable is not None:
            answers[_REVIEW] = lambda: self._take_cut(ended)
        answers[_DROP] = lambda: self._drop_cut(ended)
        text = f"{results.name(ended.number)}: {ended.outcome.findings[0].reason}."
        self._ask("Cut off", text, answers, next(iter(answers.values())))

    def _ask(self, title: str, text: str, answers: dict[str, Callable[[], object]], left: Callable[[], object]) -> None:
        """Do what belongs to the answer; `left` where there is none."""
        done = list(answers.values())
        question = Question(title, text, list(answers))

        def answered(chosen: int | None) -> None:
            (left if chosen is None else done[chosen])()

        self.push_screen(question, answered)

    def _go_on(self, number: int) -> None:
        job, screen, results = self._job, self._progress_screen, self._results
        if job is not None and screen is not None and results is not None:
            screen.begin(results.name(number), number + 1, len(results.wanted.targets))
            job.go_on(number)
            self.engine.rewrite(job)

    def _skip(self, number: int) -> None:
        if self._job is not None and self._results is not None:
            self._results.drop(number)
            self._job.skip()
            self.engine.rewrite(self._job)

    def _review_now(self, stopped: RewriteStopped) -> None:
        if self._results is not None:
            if stopped.usable is None:
                self._results.drop(stopped.number)
            else:
                self._results.take(stopped.number, stopped.usable)
            self._finish()

    def _take_cut(self, ended: RewriteEnded) -> None:
        if self._results is not None and ended.usable is not None:
            self._results.take(ended.number, ended.usable)
        self._rewrites_done()

    def _drop_cut(self, ended: RewriteEnded) -> None:
        if self._job is not None and self._results is not None:
            self._job.drop(ended.number)
            self._results.fail(ended.number, ended.outcome.findings[0].reason)
        self._rewrites_done()

    def _drop_all(self, number: int) -> None:
        """Also what is kept of the file that was stopped."""
        if self._job is not None:
            self._job.drop(number)
        self._results = None
        self._close_progress()

    def _close_progress(self) -> None:
        self._job = None
        if (screen := self._progress_screen) is not None:
            screen.close()

    def _finish(self) -> None:
        """Review what was changed; say what became of the rest."""
        results, self._results = self._results, None
        self._close_progress()
        if results is None:
            return
        if not results.numbers:
            if results.is_one:
                text = results.others.get(0, "")
                self.tell(text, "information" if text == UNCHANGED else "error")
            else:
                self._sum_up(results.rows())
            return
        review = ReviewScreen(results.reviewed(self.folder), results.wanted.instruction)

        def left(_: None) -> None:
            self.stop_redos()
            if not results.is_one:
                self._sum_up(results.rows(review.state.files, review.state.written))

        self.push_screen(review, left)
        if results.others:
            self.tell(f"{results.so_far()}; the list comes at the end")

    def _sum_up(self, rows: list[tuple[str, str]]) -> None:
        self.push_screen(SummaryScreen(summed_up(rows), rows))
