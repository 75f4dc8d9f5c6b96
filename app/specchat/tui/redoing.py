"""One hunk of a review, written anew by the model while the review goes on."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on

from specchat.tui.hunk_job import HunkJob
from specchat.tui.rewrite_messages import HunkEnded
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.undoing import UndoActions


class RedoActions(UndoActions):
    """What the app does for the key r of a review."""

    _redos: Sequence[HunkJob] = ()

    def stop_redos(self) -> None:
        """Nobody waits for them any more."""
        for job in self._redos:
            job.stop()
        self._redos = ()

    @on(ReviewScreen.Redo)
    def _redo_hunk(self, message: ReviewScreen.Redo) -> None:
        screen, file, hunk_id = message.screen, message.file, message.hunk
        review = screen.state.files[file].review
        hunk = next((each for each in review.hunks if each.id == hunk_id), None)
        if hunk is None or hunk.start == hunk.end:
            screen.refused("there is no old line to write anew here; e edits it", file, hunk_id)
            return
        instruction = f"{screen.instruction}\n{message.note}" if message.note else screen.instruction
        job = HunkJob(message, review.source, hunk.start, hunk.end, instruction)
        self._redos = (*self._redos, job)
        self.engine.rewrite(job)

    @on(HunkEnded)
    def _hunk_ended(self, message: HunkEnded) -> None:
        asked, outcome = message.asked, message.outcome
        if outcome is None or not outcome.complete:
            text = message.text or "it did not come to an end; e edits it"
            asked.screen.refused(text, asked.file, asked.hunk)
        else:
            asked.screen.redone(asked.file, asked.hunk, outcome.lines, outcome.flags)
