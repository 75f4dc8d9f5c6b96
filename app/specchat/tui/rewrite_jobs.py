"""Rewrites on the engine's thread, of files one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from specchat.errors import in_one_line
from specchat.folders import refused_folder
from specchat.tui.rewrite_messages import (
    RewriteBegun,
    RewriteEnded,
    RewriteFailed,
    RewriteMoved,
    RewriteRead,
    RewritesDone,
    RewriteStopped,
)
from specchat.tui.rewrite_plans import Post, begun, forecast_of
from specchat.tui.rewrite_words import RewriteWanted

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.dialogue import Dialogue
    from specchat.rewrite.generate import RewriteEvent
    from specchat.rewrite.long import AnyRewriting
    from specchat.rewrite.outcome import Outcome
    from specchat.rewrite.unfinished import Keeping, UnfinishedStore

POST_S = 0.2  # between two messages of progress


class RewriteJob:
    """Rewrites one file after the other. `stop` and `take_rest` are called by the screen while it runs; `go_on`, `skip`
    and `drop` while it does not. What is not done is kept in `unfinished`, so that another run can go on with it."""

    def __init__(self, wanted: RewriteWanted, unfinished: UnfinishedStore) -> None:
        self.wanted = wanted
        self._unfinished = unfinished
        self._todo = deque(range(len(wanted.targets)))
        self._at = 0
        self._rewriting: AnyRewriting | None = None
        self._cut: dict[int, AnyRewriting] = {}  # that reached a limit
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._rewriting is not None:
            self._rewriting.stop()

    def take_rest(self) -> None:
        if self._rewriting is not None:
            self._rewriting.take_rest()

    def go_on(self, number: int) -> None:
        """With a file that was stopped or cut off."""
        self._stopped = False
        self._rewriting = self._cut.pop(number, self._rewriting)
        self._at = number

    def skip(self) -> None:
        """The file that was stopped."""
        self._stopped = False
        self._rewriting = None

    def drop(self, number: int) -> None:
        """What is kept of a file that was stopped or cut off."""
        rewriting = self._cut.pop(number, self._rewriting)
        if rewriting is not None and rewriting.source.place is not None:
            self._unfinished.drop(rewriting.source.place)

    def refuse(self, post: Post, text: str) -> None:
        """It cannot be begun."""
        while self._todo:
            post(RewriteFailed(self._todo.popleft(), text))
        post(RewritesDone())

    def run(self, session: Dialogue, post: Post, between_steps: Callable[[], None]) -> None:
        """Read each file, let the model write it again, and post what comes of it. A stop ends it for now."""
        from specchat.rewrite.unfinished import Keeping

        while self._rewriting is not None or self._todo:
            try:
                if self._rewriting is None:
                    self._at = self._todo.popleft()
                    self._rewriting = begun(session, self.wanted, self.wanted.targets[self._at])
                    post(RewriteBegun(self._at, forecast_of(session, [self._rewriting])))
                    events = self._rewriting.run()
                else:
                    events = self._rewriting.go_on()
                keeping = Keeping(self._unfinished, self._rewriting)
                outcome = self._drain(self._rewriting, events, keeping, post, between_steps)
            except Exception as error:
                self._rewriting = None
                post(RewriteFailed(self._at, in_one_line(error)))
                continue
            is_kept = keeping.end(outcome)
            usable = None if outcome.complete else _usable(self._rewriting)
            if outcome.interrupted:
                post(RewriteStopped(self._at, outcome, usable, len(self._todo)))
                return
            if not outcome.complete:
                self._cut[self._at] = self._rewriting
            self._rewriting = None
            post(RewriteEnded(self._at, outcome, usable, is_kept, _kept(outcome)))
        post(RewritesDone())

    def _drain(
        self,
        rewriting: AnyRewriting,
        events: Iterator[RewriteEvent],
        keeping: Keeping,
        post: Post,
        between_steps: Callable[[], None],
    ) -> Outcome:
        from specchat.rewrite.follow import Progress
        from specchat.session import Reading

        posted = 0.0
        outcome: Outcome | None = None
        for event in events:
            if isinstance(event, Reading):
                post(RewriteRead(event))
            elif not isinstance(event, Progress):
                outcome = event
            elif perf_counter() - posted >= POST_S:
                posted = perf_counter()
                post(RewriteMoved(event, rewriting.chunks_done + 1, rewriting.chunks))
            keeping.look()
            between_steps()
            if self._stopped:  # also a stop that came before the run began
                rewriting.stop()
        assert outcome is not None
        return outcome


def _kept(outcome: Outcome) -> Path | None:
    """Where that is kept which the review cannot write, whatever is decided there."""
    from specchat.rewrite.refused import RefusedStore, unused

    if not outcome.complete or outcome.data is not None:
        return None
    return RefusedStore(refused_folder()).put(outcome.record.source.place, unused(outcome))


def _usable(rewriting: AnyRewriting) -> Outcome | None:
    """What was written and the rest as it is; None in the middle of an edit, where nobody can know what is left."""
    try:
        outcome = rewriting.rest_unchanged()
    except ValueError:
        return None
    return outcome if outcome.review.hunks else None
