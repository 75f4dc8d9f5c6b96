"""A file and a request -> the model's rewrite of it, with its progress; the old file is the guess.

Nothing is written to disk here. The session keeps its own conversation and settings.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import cast

from specchat.conversation import Message, Role
from specchat.dialogue import Dialogue
from specchat.errors import InputRefused
from specchat.rewrite.checks import Rails
from specchat.rewrite.follow import Follower, Progress
from specchat.rewrite.heard import listener
from specchat.rewrite.merge import with_rest
from specchat.rewrite.outcome import Outcome, Record, completed, cut_off, settled
from specchat.rewrite.part import Around, Part, all_around, told_of, whole
from specchat.rewrite.partial import Partial, Piece, sha256_of
from specchat.rewrite.prompt import Asked, ask_for
from specchat.rewrite.source import SourceFile, joined
from specchat.rewrite.terms import Terms
from specchat.rewrite.took import Took, plain_step_s_of
from specchat.session import ChatSession, Event, Reading, Reply, Wrote
from speculation.sampling import GREEDY
from speculation.stats import Totals
from speculation.types import Finish

_SPARE = 32  # tokens that a rewrite needs besides the old file's, for its marks ...
_LONGEST_TIMES, _LONGEST_MORE = 3, 1024  # a run ends by itself at so many times the file's tokens and so many more
GROWTH = 0.05  # ... and their share of the file for what is added


RewriteEvent = Reading | Progress | Outcome


class Rewriting:
    """One rewrite: drain `run`, then perhaps `go_on`. `stop` and `take_rest` may be called from another thread."""

    chunks = 1  # requests that it takes
    chunks_done = 0  # ... of which so many ended before the last one

    def __init__(
        self,
        session: Dialogue,
        source: SourceFile,
        instruction: str,
        part: Part | None = None,
        guard: Rails | None = None,
        around: Around | None = None,
    ) -> None:
        """Plan it; around a part the model is shown all other lines, unless told otherwise.

        Raises InputRefused where file and rewrite do not fit the context together.
        """
        self.source = source
        self.part = part or whole(source)
        self.instruction = instruction
        self.guard = (guard or Rails()).on(source)
        self.around = all_around(source, self.part) if around is None else around
        self._session = session
        self._old = source.texts[self.part.start : self.part.end]
        self._asked = ask_for(self._old, instruction, told_of(source, self.part, self.around), source.text)
        system = [message for message in session.messages if message.role is Role.SYSTEM]
        model = session.model
        asked = [*system, Message(Role.USER, self._asked.message)]
        begun = Message(Role.ASSISTANT, self._asked.opening, model.ids(self._asked.opening))
        self._messages = [*asked, begun] if session.can_begin_replies else asked
        self.prompt = model.prompt_ids(asked)
        self.prompt_tokens = model.prompt_length(asked) + model.count(self._asked.opening)
        self.file_tokens = model.count(joined(self._old))
        self._refuse_what_does_not_fit()
        self._follower = Follower(self._old)
        self._copies = listener(session, self._asked, self._old, system[0].text if system else "")
        self._file_at = None if self.prompt is None else self._copies.file_begins(self.prompt)
        self._totals = Totals()
        self._replies: list[Reply] = []
        self._whole_copies = 0
        self._wants_stop = self._wants_rest = self._takes_rest = False

    @property
    def asked(self) -> Asked:
        """The message, and how its reply is marked."""
        return self._asked

    @property
    def has_begun(self) -> bool:
        """Whether the model has written anything."""
        return self._copies.has_begun

    @property
    def needed_tokens(self) -> int:
        """Tokens of context that a rewrite without large additions takes."""
        return self.prompt_tokens + self.file_tokens + _SPARE + int(GROWTH * self.file_tokens)

    @property
    def longest_tokens(self) -> int:
        """Tokens after which a run ends by itself: a model that repeats itself does not fill the context first."""
        return _LONGEST_TIMES * self.file_tokens + _LONGEST_MORE

    def stop(self) -> None:
        """End after the present step, or the reading at once; what was written is kept for `go_on`."""
        self._wants_stop = True
        self._session.stop()

    def take_rest(self) -> None:
        """End as soon as the text is back at an old line, and take the rest of the file as it is."""
        self._wants_rest = True

    def run(self) -> Iterator[RewriteEvent]:
        """Readings, a `Progress` for each step, then the `Outcome`. A stop ends it with a partial one."""
        self._wants_stop = self._wants_rest = self._takes_rest = False
        yield from self._drive()
        finish = self._finish
        if finish is None and self._takes_rest:
            yield self.rest_unchanged()
        elif finish in (Finish.END, Finish.STOP):
            yield completed(self._record(finish))
        else:
            yield cut_off(self._record(finish), self._follower.line)

    def go_on(self) -> Iterator[RewriteEvent]:
        """Pick up a rewrite that was cut off or stopped, as `run` does."""
        return self.run()

    def rest_unchanged(self) -> Outcome:
        """What was written, and the rest of the file as it is. Raises ValueError where the text is inside an edit."""
        written = with_rest(self._old, self._follower.lines, self._follower.line)
        if written is None:
            raise ValueError("the last line that was written is none of the file's, so it is not clear what is left")
        return completed(self._record(None), unread_from=written[1])

    def piece(self) -> Piece | None:
        """What is done up to the last line that is an old one again, or to the end; None where that is nothing."""
        if self._finish in (Finish.END, Finish.STOP):
            return completed(self._record(self._finish)).piece
        return settled(self._record(None), *self._follower.settled)

    @property
    def took(self) -> Took:
        """What it took so far."""
        return Took().and_then(self._totals, self._replies)

    def partial(self) -> Partial:
        """What can be kept to go on with in another process."""
        piece = self.piece()
        pieces = () if piece is None else (piece,)
        source, terms = self.source, Terms().guarded_by(self.guard)
        return Partial(sha256_of(source), source.encoding, self.instruction, (self.part,), pieces, terms, self.took)

    @property
    def _finish(self) -> Finish | None:
        return self._replies[-1].finish if self._replies else None

    def _refuse_what_does_not_fit(self) -> None:
        room = self._session.model.n_ctx
        if room is not None and self.needed_tokens > room:
            raise InputRefused(
                f"{self.source.name} has {self.file_tokens} tokens, which are read and written again: with the request "
                f"that takes {self.needed_tokens}, and the context holds {room}; make it larger (--ctx), or rewrite a "
                "part (--lines)"
            )

    def _drive(self) -> Iterator[Reading | Progress]:
        """Let the session go on with the reply, and put back what was its own."""
        session, messages, settings = self._session, self._session.messages, self._session.settings
        longest = settings.max_tokens or self.longest_tokens
        ours = replace(settings, sampling=GREEDY, seed=0, stop=(self._asked.closing,), max_tokens=longest)
        session.messages, session.settings = list(self._messages), ours
        if isinstance(session, ChatSession):
            session.copy_only_from(None)
            if not self.has_begun and self._file_at is not None:
                session.expect_copy(self._file_at)
        session.predict(joined(self._old[self._follower.line :]) + self._asked.closing)
        goes_on = self._messages[-1].role is Role.ASSISTANT
        try:
            with closing(
                cast("Generator[Event, None, None]", session.go_on(0) if goes_on else session.redo())
            ) as events:
                for event in events:
                    if isinstance(event, Wrote):
                        yield self._progress(event)
                        if self._wants_rest and self._is_back():
                            self._takes_rest = True
                            session.stop()
                    elif isinstance(event, Reading):
                        yield event
                    else:
                        self._replies.append(event)
                    if self._wants_stop:
                        session.stop()
        finally:
            self._messages, session.messages = session.messages, messages
            self._take_up_held_back()
            if session.settings is ours:  # else somebody changed them meanwhile
                session.settings = settings

    def _take_up_held_back(self) -> None:
        """Go on behind what was written, also where a run was given up in what may have been the closing mark."""
        begun, written = self._messages[-1].text, self._asked.opening + self._copies.text
        if self._finish is not Finish.STOP and written != begun and written.startswith(begun):
            self._messages[-1] = Message(Role.ASSISTANT, written)

    def _progress(self, event: Wrote) -> Progress:
        copied = None
        if (step := event.step) is not None:
            self._totals.add(step)
            copied = self._copies.feed(step)
            self._whole_copies = self._whole_copies + 1 if 0 < step.drafted == step.accepted else 0
        self._follower.feed(self._copies.hear(event.text), copied)
        totals, plain_step_s, at = self._totals, plain_step_s_of(self._session, self._totals), self._follower.line
        left = self.file_tokens * (1 - self._copies.done(at))
        first = self.part.start
        return Progress(
            step=step,
            text=event.text,
            line=at,
            lines=len(self._old),
            edits=tuple(replace(e, start=e.start + first, end=e.end + first) for e in self._follower.edits),
            tokens=totals.emitted,
            tokens_per_step=totals.tokens_per_step,
            seconds=totals.seconds,
            seconds_left=left / totals.tokens_per_s if totals.tokens_per_s else None,
            plain_seconds_left=None if plain_step_s is None else left * plain_step_s,
            whole_copies=self._whole_copies,
        )

    def _is_back(self) -> bool:
        """Whether the text goes on like the old file, so that the rest of it can be taken."""
        found = with_rest(self._old, self._follower.lines, self._follower.line)
        if found is None:
            return False
        begun, following = self._follower.half, self._old[found[1] : found[1] + 1]
        return not begun or any(line.startswith(begun) for line in following)

    def _record(self, finish: Finish | None) -> Record:
        return Record(
            source=self.source,
            part=self.part,
            asked=self._asked,
            instruction=self.instruction,
            guard=self.guard,
            text=self._copies.text,
            rejected=self._copies.rejected(),
            finish=finish,
            steps=tuple(self._copies.steps),
            replies=tuple(self._replies),
            plain_step_s=plain_step_s_of(self._session, self._totals),
            around=self.around,
        )


__all__ = ["Outcome", "Progress", "Reading", "RewriteEvent", "Rewriting"]
