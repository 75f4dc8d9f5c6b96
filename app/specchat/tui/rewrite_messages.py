"""What rewrites on the engine's thread tell the screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.tui.rewrite_words import Target

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.rewrite.follow import Progress
    from specchat.rewrite.outcome import Outcome
    from specchat.rewrite.partial import Partial
    from specchat.session import Reading
    from specchat.tui.screens.review import ReviewScreen


@dataclass
class RewriteBegun(Message):
    """A file is read."""

    number: int  # of the file, from 0
    forecast: str = ""


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
    request: int = 1  # of the requests that a long file takes ...
    requests: int = 1  # ... so many

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RewriteMoved)


@dataclass
class RewriteStopped(Message):
    """The user stopped a file; the job waits for `go_on`, `skip` or `end`."""

    number: int
    outcome: Outcome
    usable: Outcome | None  # what is written with the rest of the file as it is, where that is possible
    left: int  # files behind it


@dataclass
class RewriteEnded(Message):
    """A file came to its end, or to that of the context."""

    number: int
    outcome: Outcome
    usable: Outcome | None = None
    is_kept: bool = False  # whether another run can go on with it
    refused: Path | None = None  # where one can look at what cannot be written


@dataclass
class RewriteFailed(Message):
    """A file could not be begun or went wrong."""

    number: int
    text: str


@dataclass
class RewritesDone(Message):
    """No file is left to do."""


@dataclass
class HunkEnded(Message):
    """One hunk was written anew, or could not be."""

    asked: ReviewScreen.Redo
    outcome: Outcome | None
    text: str = ""


@dataclass
class ForecastMade(Message):
    """What a rewrite would take."""

    targets: tuple[Target, ...]
    text: str
    is_problem: bool = False
    unfinished: Partial | None = None  # what there is to go on with
