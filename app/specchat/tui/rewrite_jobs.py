"""Rewrites on the engine's thread: of files one after the other, of one hunk, and what they would take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.errors import in_one_line
from specchat.rewrite.errors import ChangedOnDisk
from specchat.tui.rewrite_messages import (
    ForecastMade,
    HunkEnded,
    RewriteBegun,
    RewriteEnded,
    RewriteFailed,
    RewriteMoved,
    RewriteRead,
    RewritesDone,
    RewriteStopped,
)
from specchat.tui.rewrite_words import RewriteWanted, Target

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.rewrite.forecast import Forecast
    from specchat.rewrite.generate import RewriteEvent
    from specchat.rewrite.long import AnyRewriting
    from specchat.rewrite.outcome import Outcome
    from specchat.rewrite.source import SourceFile
    from specchat.session import ChatSession
    from specchat.tui.screens.review import ReviewScreen

POST_S = 0.2  # between two messages of progress

Post = Callable[[Message], object]


class RewriteJob:
    """Rewrites one file after the other. `stop` and `take_rest` are called by the screen while it runs; `go_on`, `skip`
    and `end` while it does not, before it is run again."""

    def __init__(self, wanted: RewriteWanted) -> None:
        self.wanted = wanted
        self._todo = deque(range(len(wanted.targets)))
        self._at = 0
        self._rewriting: AnyRewriting | None = None
        self._cut: dict[int, AnyRewriting] = {}  # that reached a limit and could go on
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

    def end(self) -> None:
        """Do no other file."""
        self.skip()
        self._todo.clear()

    def refuse(self, post: Post, text: str) -> None:
        """It cannot be begun."""
        while self._todo:
            post(RewriteFailed(self._todo.popleft(), text))
        post(RewritesDone())

    def run(self, session: ChatSession, post: Post, between_steps: Callable[[], None]) -> None:
        """Read each file, let the model write it again, and post what comes of it. A stop ends it for now."""
        while self._rewriting is not None or self._todo:
            try:
                if self._rewriting is None:
                    self._at = self._todo.popleft()
                    self._rewriting = begun(session, self.wanted, self.wanted.targets[self._at])
                    post(RewriteBegun(self._at, _forecast(session, [self._rewriting])))
                    events = self._rewriting.run()
                else:
                    events = self._rewriting.go_on()
                outcome = self._drain(self._rewriting, events, post, between_steps)
            except Exception as error:
                self._rewriting = None
                post(RewriteFailed(self._at, in_one_line(error)))
                continue
            usable = None if outcome.complete else _usable(self._rewriting)
            if outcome.interrupted:
                post(RewriteStopped(self._at, outcome, usable, len(self._todo)))
                return
            if outcome.can_go_on:
                self._cut[self._at] = self._rewriting
            self._rewriting = None
            post(RewriteEnded(self._at, outcome, usable))
        post(RewritesDone())

    def _drain(
        self,
        rewriting: AnyRewriting,
        events: Iterator[RewriteEvent],
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
            between_steps()
            if self._stopped:  # also a stop that came before the run began
                rewriting.stop()
        assert outcome is not None
        return outcome


class HunkJob:
    """Old lines of one hunk, written anew on the engine's thread with a note of the user's."""

    def __init__(self, asked: ReviewScreen.Redo, source: SourceFile, start: int, end: int, instruction: str) -> None:
        self._asked = asked
        self._source = source
        self._lines = start, end
        self._instruction = instruction
        self._stopped = False

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self._stopped = True

    def refuse(self, post: Post, text: str) -> None:
        """It cannot be begun."""
        post(HunkEnded(self._asked, None, text))

    def run(self, session: ChatSession, post: Post, between_steps: Callable[[], None]) -> None:
        """Let the model write the lines again."""
        from specchat.rewrite.long import rewriting_of
        from specchat.rewrite.outcome import Outcome
        from specchat.rewrite.part import Part

        if self._stopped:
            return
        try:
            outcome = None
            rewriting = rewriting_of(session, self._source, self._instruction, Part(*self._lines))
            for event in rewriting.run():
                outcome = event if isinstance(event, Outcome) else outcome
                between_steps()
                if self._stopped:
                    rewriting.stop()
            post(HunkEnded(self._asked, outcome))
        except Exception as error:
            self.refuse(post, in_one_line(error))


class ForecastJob:
    """What a rewrite would take, by the prices of the loaded model. Nothing is evaluated."""

    def __init__(self, wanted: RewriteWanted) -> None:
        self._wanted = wanted
        self._dropped = False

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self._dropped = True

    def refuse(self, post: Post, text: str) -> None:
        """It cannot be made."""
        post(ForecastMade(self._wanted.targets, text))

    def run(self, session: ChatSession, post: Post, between_steps: Callable[[], None]) -> None:
        """Plan each file and add up what it will take."""
        planned: list[AnyRewriting] = []
        problems: list[str] = []
        for target in self._wanted.targets:
            between_steps()
            if self._dropped:
                return
            try:
                planned.append(begun(session, self._wanted, target))
            except Exception as error:
                problems.append(in_one_line(error))
        if len(problems) > 2:
            problems = [problems[0], f"and {len(problems) - 1} more files cannot be rewritten"]
        said = _forecast(session, planned)
        post(ForecastMade(self._wanted.targets, "\n".join(filter(None, [said, *problems])), bool(problems)))


def begun(session: ChatSession, wanted: RewriteWanted, target: Target) -> AnyRewriting:
    """Read a file and plan its rewrite. Raises what both do, and ChangedOnDisk where its path leads elsewhere now."""
    from specchat.rewrite.long import rewriting_of
    from specchat.rewrite.part import part_of
    from specchat.rewrite.source import read_source

    source = replace(read_source(target.path), name=target.name)
    if source.place is None or source.place.real != target.real:
        raise ChangedOnDisk(f"{target.name} leads to another file than when it was named")
    part = part_of(source, target.lines) if target.lines else None
    return rewriting_of(session, source, wanted.instruction or "do it", part, wanted.guard)


def _forecast(session: ChatSession, planned: list[AnyRewriting]) -> str:
    """What some rewrites will take, in one line; "" where nothing is known."""
    from specchat.rewrite.forecast import Forecast, forecast

    found: list[Forecast] = [each for each in (forecast(session, one) for one in planned) if each is not None]
    if not found:
        return ""
    total = Forecast(
        prompt_tokens=sum(each.prompt_tokens for each in found),
        file_tokens=sum(each.file_tokens for each in found),
        read_s=sum(each.read_s for each in found),
        unchanged_s=sum(each.unchanged_s for each in found),
        changed_s=sum(each.changed_s for each in found),
    )
    return str(total)


def _usable(rewriting: AnyRewriting) -> Outcome | None:
    """What was written and the rest as it is; None in the middle of an edit, where nobody can know what is left."""
    try:
        outcome = rewriting.rest_unchanged()
    except ValueError:
        return None
    return outcome if outcome.review.hunks else None
