"""A stored chat as plain values, which rows, files and the chat on the screen are all made from and turned into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specchat.attachments import Attachment
from specchat.conversation import Role
from specchat.exactness import follows_exactly
from specchat.history.packing import NO_STEPS
from specchat.provenance import Span
from speculation.stats import Totals

AT = " at "  # between the name of a model and the host of the server that it is on


@dataclass(frozen=True, slots=True)
class About:
    """Who wrote a reply, and how."""

    model: str = ""  # of one on a server with its host, see `AT`
    draft: str | None = None  # the draft model that was loaded
    guess: str = ""  # what the user chose, a value of `specchat.session.Guess`
    rule: str = ""
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What was written of a reply in one go. A reply that was continued has several."""

    about: About = field(default_factory=About)
    begun: float = 0.0  # seconds since 1970
    ended: float | None = None  # None: it is being written, or the process died while it was
    finish: str | None = None  # a value of `speculation.types.Finish`; None: stopped by the user, or not ended
    seed: int | None = None
    prompt_tokens: int = 0
    reused_tokens: int = 0
    read_tokens: int = 0
    read_s: float = 0.0
    first_token_s: float | None = None
    plain_step_s: float | None = None
    totals: Totals = field(default_factory=Totals)
    steps: bytes = NO_STEPS  # see `specchat.history.packing`
    spans: tuple[Span, ...] = ()  # with places in the whole reply

    @property
    def is_of_server(self) -> bool:
        """Whether a server wrote it, whose figures are not kept: steps and totals say nothing then."""
        return AT in self.about.model and not self.totals.steps

    @property
    def is_exact(self) -> bool:
        """Whether its text followed the model exactly, as far as is known of a server."""
        return AT in self.about.model or follows_exactly(self.about.rule, self.about.temperature)


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What one side said."""

    id: int  # in its chat, larger than its parent's
    parent: int | None
    role: Role
    text: str
    tokens: tuple[int, ...] | None = None
    attachments: tuple[Attachment, ...] = ()
    created: float = 0.0  # seconds since 1970
    latest: int | None = None  # which of its answers was on the path last
    is_pinned: bool = False
    is_dropped: bool = False
    parts: tuple[PartRecord, ...] = ()

    @property
    def is_finished(self) -> bool:
        """Whether nobody is writing it, or died while writing it."""
        return not self.parts or self.parts[-1].ended is not None

    @property
    def spans(self) -> tuple[Span, ...]:
        """Who proposed which characters of the whole reply."""
        found: tuple[Span, ...] = ()
        for part in self.parts:
            begin = min((span.start for span in part.spans), default=len(self.text))
            found = (*(span for span in found if span.end <= begin), *part.spans)
        return found


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat with all its branches."""

    id: int = 0  # in its store; 0: in none yet
    key: str = ""  # the same in every store; empty: given one when it is stored
    created: float = 0.0  # seconds since 1970
    changed: float = 0.0
    title: str = ""
    is_named: bool = False  # whether the title is the user's
    system: str = ""
    model: str = ""
    unsent: str = ""  # what stood in the prompt box
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_pinned: bool = False
    latest: int | None = None  # which of the first turns was on the path last
    tip: int | None = None
    turns: tuple[TurnRecord, ...] = ()

    def mended(self) -> ChatRecord:
        """The same chat without what points to turns that another process has removed."""
        parents = {turn.id: turn.parent for turn in self.turns}

        def answer(parent: int | None, child: int | None) -> int | None:
            return child if child in parents and parents[child] == parent else None

        turns = tuple(
            turn if turn.latest is None or answer(turn.id, turn.latest) else replace(turn, latest=None)
            for turn in self.turns
        )
        first = answer(None, self.latest)
        tip = self.tip if self.tip in parents else None
        if tip is None and self.tip is not None:  # then where the path led last
            following, at = {turn.id: turn.latest for turn in turns}, first
            while at is not None:
                tip, at = at, following[at]
        return replace(self, latest=first, tip=tip, turns=turns)

    def path(self) -> list[TurnRecord]:
        """The turns from the beginning to the tip."""
        turns = {turn.id: turn for turn in self.turns}
        found = []
        at = self.tip
        while at is not None:
            found.append(turns[at])
            at = turns[at].parent
        return found[::-1]


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A chat in a list."""

    id: int
    title: str
    created: float
    changed: float
    messages: int  # on all branches
    model: str
    tokens_per_step: float | None
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that a search found."""

    chat: int
    title: str
    turn: int | None  # None: the title itself
    role: Role | None
    when: float  # seconds since 1970
    snippet: str
    marks: tuple[tuple[int, int], ...]  # where the words stand in the snippet, in characters
