"""The rewrite of a file, whether or not it fits the context, and of one part of it or several."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from specchat.dialogue import Dialogue
from specchat.errors import InputRefused
from specchat.rewrite.checks import Rails
from specchat.rewrite.generate import Rewriting
from specchat.rewrite.in_pieces import LongRewriting
from specchat.rewrite.part import Part, whole
from specchat.rewrite.partial import Partial
from specchat.rewrite.source import SourceFile


class Chunks(StrEnum):
    """Whether a file may be rewritten in pieces."""

    AUTO = "auto"  # where it does not fit the context
    NEVER = "never"


AnyRewriting = Rewriting | LongRewriting


def rewriting_of(
    session: Dialogue,
    source: SourceFile,
    instruction: str,
    part: Part | Sequence[Part] | None = None,
    guard: Rails | None = None,
    *,
    chunks: Chunks = Chunks.AUTO,
    partial: Partial | None = None,
) -> AnyRewriting:
    """The rewrite of a file, of a part or of several: in one piece where it fits the context.

    Raises InputRefused where it does not fit and may or can not be cut, and as `Partial.refuse_other` does.
    """
    if partial is not None:
        guard = (guard or Rails()).beside(partial.terms.guard)
    parts = [whole(source)] if part is None else [part] if isinstance(part, Part) else list(part)
    if partial is None and len(parts) == 1:
        try:
            return Rewriting(session, source, instruction, parts[0], guard)
        except InputRefused:
            if chunks is Chunks.NEVER:
                raise
    long = LongRewriting(session, source, instruction, parts, guard, partial)
    if chunks is Chunks.NEVER and partial is None and long.chunks > len(parts):
        raise InputRefused(f"a part of {source.name} does not fit the context, and it may not be cut (--chunk)")
    return long


__all__ = ["AnyRewriting", "Chunks", "LongRewriting", "rewriting_of"]
