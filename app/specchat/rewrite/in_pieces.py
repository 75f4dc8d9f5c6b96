"""A rewrite in pieces: of a file that does not fit the context, of several parts of one, or of what was left of one.

To callers it is one rewrite with one outcome. Each piece is asked for on its own; the model is shown some of the
lines in front of it, as they are now, so that what it has begun to do goes on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import cast

from specchat.dialogue import Dialogue
from specchat.rewrite.align import Replaced
from specchat.rewrite.checks import Rails
from specchat.rewrite.follow import Progress
from specchat.rewrite.generate import RewriteEvent, Rewriting
from specchat.rewrite.outcome import Outcome, Record, joined_up
from specchat.rewrite.part import Part, changes_in
from specchat.rewrite.partial import Partial, Piece, sha256_of
from specchat.rewrite.pieces import Cutter, left_of
from specchat.rewrite.prompt import Asked
from specchat.rewrite.source import SourceFile
from specchat.rewrite.terms import Terms
from specchat.rewrite.took import Took, plain_step_s_of
from specchat.session import Reading
from speculation.context import common_prefix
from speculation.stats import Totals
from speculation.types import Finish

_WORTH_MORE = 0.25  # share of a piece that must be done for its rest to be asked for anew when the context is full


class LongRewriting:
    """One rewrite in pieces, with the ways of `Rewriting`."""

    def __init__(
        self,
        session: Dialogue,
        source: SourceFile,
        instruction: str,
        parts: Sequence[Part],
        guard: Rails | None = None,
        partial: Partial | None = None,
    ) -> None:
        """Plan it. The parts are in order and apart.

        Raises InputRefused where a single line does not fit the context, and as `Partial.refuse_other` does.
        """
        self.source = source
        self.parts = tuple(parts)
        self.part = Part(self.parts[0].start, self.parts[-1].end)
        self.instruction = instruction
        self.guard = (guard or Rails()).on(source)
        if partial is not None:
            partial.refuse_other(source, instruction, self.parts)
        self._session = session
        self._cutter = Cutter(session, source, instruction, self.guard)
        self._done: list[Piece] = []
        self._edits: list[Replaced] = []  # of these
        for piece in () if partial is None else partial.pieces:
            self._keep(piece)
        self._left = [piece for part in left_of(source, self.parts, self._done) for piece in self._cutter.cut(part)]
        self.file_tokens = sum(map(self._cutter.tokens, self._left))
        self._now: Rewriting | None = None
        self._records: list[Record] = []  # of pieces that ended
        self._totals = Totals()
        self._before = Took() if partial is None else partial.took
        self._terms = Terms() if partial is None else partial.terms
        self._unread_from: int | None = None
        self._wants_stop = self._wants_rest = False

    @property
    def asked(self) -> Asked:
        """The message, but for the lines of a piece."""
        return self._cutter.bare.asked

    @cached_property
    def planned(self) -> Sequence[Rewriting]:
        """The requests as they would be, if each copied its piece."""
        return [self._cutter.begin(part, self._done) for part in self._left]

    @cached_property
    def prompt_tokens(self) -> int:
        """Tokens that are read; what all requests begin with is read once."""
        if not self.planned:
            return 0
        prompts = self.planned[0].prompt, self.planned[-1].prompt
        shared = 0 if prompts[0] is None or prompts[1] is None else common_prefix(prompts[0], prompts[1])
        first, *others = (each.prompt_tokens for each in self.planned)
        return first + sum(each - shared for each in others)

    @cached_property
    def needed_tokens(self) -> int:
        """Tokens of context that the largest piece takes, without large additions."""
        return max((each.needed_tokens for each in self.planned), default=0)

    @property
    def chunks(self) -> int:
        """Pieces in all."""
        return len(self._done) + len(self._left)

    @property
    def chunks_done(self) -> int:
        """Pieces that are done."""
        return len(self._done)

    def stop(self) -> None:
        """End after the present step, or the reading at once; what was written is kept for `go_on`."""
        self._wants_stop = True
        if (now := self._now) is not None:
            now.stop()

    def take_rest(self) -> None:
        """End as soon as the text is back at an old line, and take the rest of this piece and all others as it is."""
        self._wants_rest = True

    def run(self) -> Iterator[RewriteEvent]:
        """Readings, a `Progress` for each step, then the `Outcome`. A stop ends it with a partial one."""
        self._wants_stop = self._wants_rest = False
        while self._left and not self._wants_rest:
            if self._wants_stop:
                yield self._joined(None, complete=False)
                return
            self._now = rewriting = self._now or self._begun()
            outcome = yield from self._written(rewriting)
            if outcome.complete:
                self._end(outcome)
            elif outcome.record.finish is not Finish.CONTEXT or not self._goes_on_anew(rewriting, outcome):
                yield self._joined(outcome, complete=False)
                return
        yield self._joined(None, complete=True)

    def go_on(self) -> Iterator[RewriteEvent]:
        """Pick up a rewrite that was cut off or stopped, as `run` does."""
        return self.run()

    def rest_unchanged(self) -> Outcome:
        """What was written, and the rest of the file as it is. Raises ValueError where the text is inside an edit."""
        now = self._now
        return self._joined(None if now is None or not now.has_begun else now.rest_unchanged(), complete=True)

    def partial(self) -> Partial:
        """What can be kept to go on with in another process."""
        piece = None if self._now is None else self._now.piece()
        pieces = (*self._done, *(() if piece is None else (piece,)))
        took = self._before.and_then(self._totals, [reply for each in self._records for reply in each.replies])
        took = replace(took, read_s=took.read_s + (0.0 if self._now is None else self._now.took.read_s))
        source, terms = self.source, self._terms.guarded_by(self.guard)
        return Partial(sha256_of(source), source.encoding, self.instruction, self.parts, pieces, terms, took)

    def _begun(self) -> Rewriting:
        part = self._left[0]
        rewriting = self._cutter.begin(part, self._done)
        if rewriting.part != part:
            self._left[:1] = [rewriting.part, Part(rewriting.part.end, part.end)]
        return rewriting

    def _written(self, rewriting: Rewriting) -> Generator[Reading | Progress, None, Outcome]:
        with closing(cast("Generator[RewriteEvent, None, None]", rewriting.run())) as events:
            for event in events:
                if isinstance(event, Outcome):
                    return event
                yield self._moved(event) if isinstance(event, Progress) else event
                if self._wants_stop:
                    rewriting.stop()
                if self._wants_rest:
                    rewriting.take_rest()
        raise AssertionError("a rewrite ends with an outcome")

    def _moved(self, progress: Progress) -> Progress:
        """How far a piece is as how far the file is."""
        if progress.step is not None:
            self._totals.add(progress.step)
        part, totals = self._left[0], self._before.totals + self._totals
        left = self._cutter.tokens(Part(part.start + progress.line, part.end))
        left += sum(map(self._cutter.tokens, self._left[1:]))
        reading_s, plain_step_s = self._reading_left_s(), plain_step_s_of(self._session, self._totals)
        return replace(
            progress,
            line=_lines(Part(each.start, min(each.end, part.start)) for each in self.parts) + progress.line,
            lines=_lines(self.parts),
            edits=(*self._edits, *progress.edits),
            tokens=totals.emitted,
            tokens_per_step=totals.tokens_per_step,
            seconds=totals.seconds,
            seconds_left=reading_s + left / totals.tokens_per_s if totals.tokens_per_s else None,
            plain_seconds_left=None if plain_step_s is None else reading_s + left * plain_step_s,
        )

    def _reading_left_s(self) -> float:
        """Seconds to read the pieces that are not begun, as long as those took that are done."""
        known = [reply for record in self._records for reply in record.replies]
        return (len(self._left) - 1) * sum(reply.read_s for reply in known) / max(1, len(self._records))

    def _end(self, outcome: Outcome) -> None:
        """A piece is done."""
        self._records.append(outcome.record)
        self._keep(outcome.piece)
        self._unread_from = outcome.unread_from
        self._now = None
        del self._left[0]

    def _keep(self, piece: Piece) -> None:
        self._done.append(piece)
        self._edits += [
            Replaced(each.start, each.end, each.written or 0, (each.written or 0) + len(each.lines))
            for each in changes_in(self.source, piece.part, piece.lines)
        ]

    def _goes_on_anew(self, rewriting: Rewriting, outcome: Outcome) -> bool:
        """Whether a piece for which the context was too small has come far enough to ask for the rest of it alone."""
        piece, part = rewriting.piece(), rewriting.part
        if piece is None or _lines([piece.part]) < _WORTH_MORE * _lines([part]) or piece.part == part:
            return False
        self._records.append(outcome.record)
        self._keep(piece)
        self._now = None
        self._left[:1] = self._cutter.cut(Part(piece.part.end, part.end))
        return True

    def _joined(self, present: Outcome | None, *, complete: bool) -> Outcome:
        """All pieces as one outcome; `present` is the one that did not come to its end."""
        records = [*self._records, *(() if present is None else (present.record,))]
        pieces = [*self._done, *(() if present is None else (present.piece,))]
        unread_from = self._unread_from if present is None else present.unread_from
        if unread_from is None and self._left:
            unread_from = self._left[0].start
        record = Record(
            source=self.source,
            part=self.part,
            asked=self.asked,
            instruction=self.instruction,
            guard=self.guard,
            text="".join(each.text for each in records),
            rejected=(),  # they are the pieces'
            finish=None if not records or (present is None and not complete) else records[-1].finish,
            steps=tuple(step for each in records for step in each.steps),
            replies=tuple(reply for each in records for reply in each.replies),
            plain_step_s=plain_step_s_of(self._session, self._totals),
            before=self._before,
            parts=tuple(sorted({*(piece.part for piece in pieces), *self._left}, key=lambda part: part.start)),
        )
        return joined_up(record, pieces, unread_from, complete=complete)


def _lines(parts: Iterable[Part]) -> int:
    return sum(max(0, part.end - part.start) for part in parts)
