"""What is said below a message: what it took, where its copies are from, whether plain decoding writes the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specchat.console import printable
from specchat.provenance import Author, Origin, Span

if TYPE_CHECKING:  # these load the engine
    from specchat.session import Checked, Reply

_NEAR = 12  # characters of the model's own between two pieces of one copy
_TIE = 0.05  # difference of two probabilities under which a choice is a near tie


def copy_line(piece: tuple[int, int, Origin], at: int, pieces: int) -> str:
    """Where a copied piece of a reply is from."""
    start, end, origin = piece
    where = f"{origin.title}:{origin.line}" if origin.author is Author.FILE else f"{origin.title}, line {origin.line}"
    return f"{end - start} characters copied from {where} (piece {at + 1} of {pieces}; p next, Enter goes there)"


def verdict(checked: Checked) -> str:
    """How a reply compares with what plain decoding writes."""
    if checked.differs is None:
        return f"checked: identical to plain decoding, {checked.tokens} tokens"
    ours, plain = (printable(one).replace("\n", "\u23ce") for one in checked.differs)
    chances = checked.chances or (0.0, 0.0)
    close = "a near tie" if abs(chances[0] - chances[1]) < _TIE else "not a near tie"
    return (
        f"checked: {checked.tokens} tokens identical, then {ours!r} (p {chances[0]:.4f}) where plain decoding "
        f"has {plain!r} (p {chances[1]:.4f}): {close}"
    )


def copied_pieces(spans: Sequence[Span]) -> list[tuple[int, int, Origin]]:
    """The copies of a reply: spans of one source that are next to each other, but for a token of the model's own."""
    pieces: list[tuple[int, int, Origin]] = []
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


def figures_line(reply: Reply) -> str:
    """What a reply took, in the order that the eye learns."""
    counted = reply.totals
    parts = [f"{counted.emitted} tok"]
    parts += [] if counted.tokens_per_s is None else [f"{counted.tokens_per_s:.1f} tok/s"]
    parts += [] if counted.tokens_per_step is None else [f"{counted.tokens_per_step:.2f} tok/step"]
    parts += [] if counted.alpha is None else [f"accepted {counted.alpha:.0%}"]
    parts += [] if reply.speed_up is None else [f"x{reply.speed_up:.2f} est"]
    return "  ".join([*parts, f"seed {reply.seed}"])
