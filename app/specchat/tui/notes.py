"""What is said below a message: what it took, where its copies are from, whether plain decoding writes the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from specchat.attachments import label
from specchat.chat import Turn
from specchat.console import printable
from specchat.exactness import INEXACT
from specchat.provenance import Author, Origin, Span
from specchat.tui.messages import ReadingShown
from specchat.tui.rendering import Colours
from specchat.tui.widgets.turn import View

if TYPE_CHECKING:  # these load the engine
    from specchat.fitting import FittedTurns
    from specchat.session import Checked, Reply
    from specchat.settings.endpoints import Endpoint

Piece = tuple[int, int, Origin]  # characters from and to, and where they are from

PRIVATE = "private, nothing is kept"
_WIDE = 70  # columns from which the title has room for that
_MARKED = 40  # and from which a server on this machine is called so
_NEAR = 12  # characters of the model's own between two pieces of one copy
_TIE = 0.05  # difference of two probabilities under which a choice is a near tie


@dataclass
class Shown:
    """What the screen keeps of a message besides its text."""

    when: str
    who: str = ""  # the model that wrote it; empty until it has
    spans: tuple[Span, ...] = ()
    note: str = ""
    took: Sequence[tuple[int, str]] = ()  # as `TurnView` has them
    continued: bool = False  # its text is of more than one reply, which cannot be checked in one run


@dataclass(frozen=True, slots=True)
class Look:
    """What messages are shown with; the app changes it."""

    view: View
    colours: Colours
    model: str = "model"


@dataclass
class CopyTour:
    """The copied pieces of one reply, and which of them is looked at."""

    turn: Turn | None = None
    pieces: list[Piece] = field(default_factory=list)
    at: int = -1

    @property
    def piece(self) -> Piece | None:
        """The piece that is looked at."""
        return self.pieces[self.at] if 0 <= self.at < len(self.pieces) else None

    def next(self) -> Piece | None:
        """Go on to the next piece, after the last one to the first; None when nothing was copied."""
        self.at = (self.at + 1) % len(self.pieces) if self.pieces else -1
        return self.piece

    def line(self) -> str:
        """Where the piece is from."""
        if self.piece is None:
            return "nothing in this message was copied"
        start, end, origin = self.piece
        place = (
            f"{origin.title}:{origin.line}" if origin.author is Author.FILE else f"{origin.title}, line {origin.line}"
        )
        tour = f"piece {self.at + 1} of {len(self.pieces)}; p next, Enter goes there"
        return f"{end - start} characters copied from {place} ({tour})"


def title_line(title: str, models: str, width: int, *, kept: bool = True, mark: str = "") -> str:
    """What the chat is about at the left, cut where it must be; the models at the right.

    A `mark`, of where text goes, is seen before anything else.
    """
    name = "specchat" if kept else PRIVATE if width >= _WIDE else "private"
    if mark:
        name = mark if kept else f"{mark}  private"
        if len(name) + cell_len(models) + 4 > width:
            models = ""
    room = max(0, width - cell_len(f"{name}  ") - cell_len(models) - 2)
    if cell_len(title) > room:
        title = set_cell_size(title, max(0, room - 1)).rstrip() + "\u2026"
    left = f"{name}  {title}"
    if mark and cell_len(left) > width:
        left = name if cell_len(name) <= width else set_cell_size(name, max(0, width - 1)) + "\u2026"
    return f"{left}{' ' * (width - cell_len(left) - cell_len(models))}{models}"


def remote_mark(endpoint: Endpoint | None, width: int) -> str:
    """Where what is written goes, in words; empty where a model answers that runs here."""
    if endpoint is None:
        return ""
    if endpoint.is_loopback:
        return "server on this machine" if width >= _MARKED else "local server"
    return f"remote: {label(endpoint.host)}"


def reading_line(message: ReadingShown) -> str:
    """How far a prompt is read, as a bar."""
    full = round(12 * message.read / message.total) if message.total else 12
    left = "" if message.seconds_left is None else f", {message.seconds_left:.0f} s left"
    cached = f", {message.reused} cached" if message.reused else ""
    bar = "█" * full + "░" * (12 - full)
    return f"reading {bar} {message.read}/{message.total} tokens{cached}{left}  Esc stops"


def verdict(checked: Checked, *, exact: bool = True) -> str:
    """How a reply compares with what plain decoding writes; `exact`: whether it should be the same up to near ties."""
    if checked.differs is None:
        return f"checked: identical to plain decoding, {checked.tokens} tokens"
    ours, plain = (printable(one).replace("\n", "\u23ce") for one in checked.differs)
    chances = checked.chances or (0.0, 0.0)
    close = "a near tie" if abs(chances[0] - chances[1]) < _TIE else "not a near tie"
    close = close if exact else INEXACT
    return (
        f"checked: {checked.tokens} tokens identical, then {ours!r} (p {chances[0]:.4f}) where plain decoding "
        f"has {plain!r} (p {chances[1]:.4f}): {close}"
    )


def copied_pieces(spans: Sequence[Span]) -> list[Piece]:
    """The copies of a reply: spans of one source that are next to each other, but for a token of the model's own."""
    pieces: list[Piece] = []
    for span in spans:
        origin = span.origin
        if origin is None:
            continue
        if pieces:
            start, end, first = pieces[-1]
            if span.start - end <= _NEAR and (first.title, first.turn) == (origin.title, origin.turn):
                pieces[-1] = (start, span.end, first)
                continue
        pieces.append((span.start, span.end, origin))
    return pieces


def full_text(fitted: FittedTurns) -> str:
    """What the question about a full context says."""
    rounds, freed = fitted.fitted.rounds, fitted.fitted.freed
    what = "The oldest question and its reply" if rounds == 1 else f"The {rounds} oldest questions and their replies"
    return (
        f"{what} ({freed} tokens) would not be read any more. They stay on the screen and in the stored chat; "
        "/pin keeps a message in the prompt."
    )


def reply_figures(reply: Reply) -> list[tuple[int, str]]:
    """How a reply ended where that is not by itself, and what it took; each part behind its importance."""
    stopped = {None: "stopped", "length": "cut at the limit", "context": "the context is full"}
    how = stopped.get(None if reply.finish is None else str(reply.finish), "")
    begun = [(-2, how), (-1, "" if reply.exact else INEXACT)]
    if reply.server is None:
        return [*begun, *_figures(reply)]
    from specchat.remote.telling import figures_of

    return [*begun, *figures_of(reply)]


def _figures(reply: Reply) -> list[tuple[int, str]]:
    """What a reply took, in the order that the eye learns."""
    counted = reply.totals
    return [
        (3, f"{counted.emitted} tok"),
        (0, "" if counted.tokens_per_s is None else f"{counted.tokens_per_s:.1f} tok/s"),
        (1, "" if counted.tokens_per_step is None else f"{counted.tokens_per_step:.2f} tok/step"),
        (2, "" if counted.alpha is None else f"accepted {counted.alpha:.0%}"),
        (1, "" if reply.speed_up is None else f"x{reply.speed_up:.2f} est"),
        (4, f"seed {reply.seed}"),
    ]
