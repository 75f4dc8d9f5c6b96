"""A file and a request -> the model's rewrite of it, with its progress; the old file is the guess.

Nothing is written to disk here. The session keeps its own conversation and settings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import accumulate
from typing import cast

from specchat.chat import Turn
from specchat.conversation import Message, Role
from specchat.errors import InputRefused
from specchat.places import Places
from specchat.provenance import Authorship
from specchat.rewrite.checks import Rails
from specchat.rewrite.flags import rejections
from specchat.rewrite.follow import Follower, Progress
from specchat.rewrite.merge import with_rest
from specchat.rewrite.outcome import Outcome, Record, completed, cut_off
from specchat.rewrite.part import Part, told_of, whole
from specchat.rewrite.prompt import Asked, ask_for
from specchat.rewrite.source import SourceFile
from specchat.session import ChatSession, Event, Reading, Reply, Wrote
from speculation.sampling import GREEDY
from speculation.stats import Totals
from speculation.types import Finish, Step

_QUESTION, _REPLY = 1, 2  # ids of the two turns
_SPARE = 32  # tokens that a rewrite needs besides the old file's, for its marks ...
_GROWTH = 0.05  # ... and their share of the file for what is added
_PLAIN_STEPS = 8  # plain steps from which on their own time is trusted, as the session has it


RewriteEvent = Reading | Progress | Outcome


class Rewriting:
    """One rewrite: drain `run`, then perhaps `go_on`. `stop` and `take_rest` may be called from another thread."""

    def __init__(
        self,
        session: ChatSession,
        source: SourceFile,
        instruction: str,
        part: Part | None = None,
        guard: Rails | None = None,
    ) -> None:
        """Plan it. Raises InputRefused where file and rewrite do not fit the context together."""
        self.source = source
        self.part = part or whole(source)
        self.instruction = instruction
        self.guard = guard or Rails()
        self._session = session
        self._old = source.texts[self.part.start : self.part.end]
        self._asked = ask_for(self._old, instruction, told_of(source, self.part))
        self._vocabulary = session.engines.target.weights.vocabulary
        self._starts = [0, *accumulate(len(line) + 1 for line in self._old)]
        system = [message for message in session.messages if message.role is Role.SYSTEM]
        opening = tuple(int(token) for token in self._vocabulary.encode(self._asked.opening))
        asked = [*system, Message(Role.USER, self._asked.message)]
        self._messages = [*asked, Message(Role.ASSISTANT, self._asked.opening, opening)]
        self.prompt_tokens = len(session.engines.format.prompt(asked)) + len(opening)
        self.file_tokens = len(self._vocabulary.encode("".join(f"{line}\n" for line in self._old)))
        self._refuse_what_does_not_fit()
        self._system = system[0].text if system else ""
        self._follower = Follower(self._old)
        self._authorship: Authorship | None = None
        self._steps: list[Step] = []
        self._totals = Totals()
        self._replies: list[Reply] = []
        self._whole_copies = 0
        self._wants_stop = self._wants_rest = self._takes_rest = False

    @property
    def asked(self) -> Asked:
        """The message, and how its reply is marked."""
        return self._asked

    @property
    def needed_tokens(self) -> int:
        """Tokens of context that a rewrite without large additions takes."""
        return self.prompt_tokens + self.file_tokens + _SPARE + int(_GROWTH * self.file_tokens)

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

    @property
    def _finish(self) -> Finish | None:
        return self._replies[-1].finish if self._replies else None

    def _refuse_what_does_not_fit(self) -> None:
        room = self._session.engines.target.n_ctx
        if self.needed_tokens > room:
            raise InputRefused(
                f"{self.source.name} has {self.file_tokens} tokens, which are read and written again: with the request "
                f"that takes {self.needed_tokens}, and the context holds {room}; make it larger (--ctx), or rewrite a "
                "part (--lines)"
            )

    def _drive(self) -> Iterator[Reading | Progress]:
        """Let the session go on with the reply, and put back what was its own."""
        session, messages, settings = self._session, self._session.messages, self._session.settings
        ours = replace(settings, sampling=GREEDY, stop=(self._asked.closing,))
        session.messages, session.settings = list(self._messages), ours
        session.copy_only_from(None)
        try:
            with closing(cast("Generator[Event, None, None]", session.go_on(0))) as events:
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
            if session.settings is ours:  # else somebody changed them meanwhile
                session.settings = settings

    def _progress(self, event: Wrote) -> Progress:
        copied = None
        if (step := event.step) is not None:
            self._steps.append(step)
            self._totals.add(step)
            self._attributed(step)
            copied = self._copied_line(step)
            self._whole_copies = self._whole_copies + 1 if 0 < step.drafted == step.accepted else 0
        self._follower.feed(event.text, copied)
        totals, plain_step_s, at = self._totals, self._plain_step_s, self._follower.line
        left = self.file_tokens * (1 - self._starts[at] / max(1, self._starts[-1]))
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

    def _attributed(self, step: Step) -> None:
        if self._authorship is None:
            path = [
                Turn(_QUESTION, None, Role.USER, self._asked.message),
                Turn(_REPLY, _QUESTION, Role.ASSISTANT, self._asked.opening),
            ]
            places = Places(self._session.prompt, self._vocabulary.piece, path, self._system)
            self._authorship = Authorship(places, _REPLY, self._asked.opening)
        self._authorship.feed(step, [self._vocabulary.piece(token) for token in step.tokens])

    def _copied_line(self, step: Step) -> int | None:
        """The old line, counted in the part, of the last guessed token that was accepted."""
        if step.source is None or step.accepted == 0:
            return None
        return self._old_line(step.source + step.accepted - 1)

    def _old_line(self, context_index: int) -> int | None:
        """The old line that a token of the context belongs to; None outside the file."""
        assert self._authorship is not None
        origin = self._authorship.origin(context_index)
        inside = self._asked.start <= origin.offset < self._asked.end
        if origin.turn != _QUESTION or not inside:
            return None
        return bisect_right(self._starts, origin.offset - self._asked.start) - 1

    def _is_back(self) -> bool:
        """Whether the text goes on like the old file, so that the rest of it can be taken."""
        found = with_rest(self._old, self._follower.lines, self._follower.line)
        if found is None:
            return False
        begun, following = self._follower.half, self._old[found[1] : found[1] + 1]
        return not begun or any(line.startswith(begun) for line in following)

    @property
    def _plain_step_s(self) -> float | None:
        """Seconds of a plain step: measured in this rewrite where it had enough of them."""
        counted = self._totals
        if counted.plain_steps >= _PLAIN_STEPS:
            return counted.plain_s / counted.plain_steps
        return self._session.plain_step_s

    def _record(self, finish: Finish | None) -> Record:
        written = self._authorship
        return Record(
            source=self.source,
            part=self.part,
            asked=self._asked,
            instruction=self.instruction,
            guard=self.guard,
            text="" if written is None else written.text,
            rejected=()
            if written is None
            else tuple(rejections(self._steps, written.ends, lambda index: self._old_line(index) is not None)),
            finish=finish,
            steps=tuple(self._steps),
            replies=tuple(self._replies),
            plain_step_s=self._plain_step_s,
        )


__all__ = ["Outcome", "Progress", "Reading", "RewriteEvent", "Rewriting"]
