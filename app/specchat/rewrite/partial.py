"""A rewrite that is not done: what is written of it so far, to be kept outside the process and taken up again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from specchat.errors import InputRefused, UsageError
from specchat.rewrite.errors import ChangedOnDisk
from specchat.rewrite.flags import Rejection
from specchat.rewrite.journal import digest_of
from specchat.rewrite.part import Part
from specchat.rewrite.source import SourceFile
from specchat.rewrite.terms import Terms
from specchat.rewrite.took import Took

_VERSION = 2
_OLDER = 1  # which knew neither terms nor figures


@dataclass(frozen=True, slots=True)
class Piece:
    """Old lines that are done, and what they became."""

    part: Part
    lines: tuple[str, ...]
    offsets: tuple[int, ...]  # where each line begins in what the model wrote
    rejected: tuple[Rejection, ...] = ()  # in the same characters

    @property
    def size(self) -> int:
        """Characters that the model wrote, the last line end among them."""
        return self.offsets[-1] + len(self.lines[-1]) + 1 if self.lines else 0


def piece_of(part: Part, lines: Sequence[str], offsets: Sequence[int], rejected: Sequence[Rejection]) -> Piece:
    """What was written of a part; lines that the model did not write itself have no offsets.

    A rejection behind the lines, as where the end came instead of an old line, counts for the last line end.
    """
    known = list(offsets[: len(lines)])
    for i in range(len(known), len(lines)):
        known.append(known[-1] + len(lines[i - 1]) + 1 if known else 0)
    bare = Piece(part, tuple(lines), tuple(known))
    end = max(0, bare.size - 1)
    clamped = (
        Rejection(min(each.start, end), max(min(each.end, bare.size), 1), each.p_old, each.p_new) for each in rejected
    )
    return Piece(bare.part, bare.lines, bare.offsets, tuple(clamped))


@dataclass(frozen=True, slots=True)
class Partial:
    """What a rewrite was asked for, of which file, and the pieces that are done, in the order of the file."""

    sha256: str  # of the file as it was read
    encoding: str
    instruction: str
    parts: tuple[Part, ...]  # that were to be written
    pieces: tuple[Piece, ...]
    terms: Terms = field(default_factory=Terms)
    took: Took = field(default_factory=Took)

    @property
    def lines_done(self) -> int:
        """Old lines that are done."""
        return sum(piece.part.end - piece.part.start for piece in self.pieces)

    def refuse_other(self, source: SourceFile, instruction: str, parts: Sequence[Part]) -> None:
        """Raise ChangedOnDisk for another file than it was, and UsageError where something else is asked for."""
        if self.sha256 != sha256_of(source):
            raise ChangedOnDisk(f"{source.name} has changed since its rewrite was begun; begin anew")
        for what, is_same in (
            ("another encoding", self.encoding == source.encoding),
            ("another request", self.instruction == instruction),
            ("other lines", self.parts == tuple(parts)),
        ):
            if not is_same:
                raise UsageError(f"the rewrite of {source.name} was begun with {what}, so it cannot go on with this")
        at = 0
        for piece in self.pieces:
            inside = any(part.start <= piece.part.start and piece.part.end <= part.end for part in self.parts)
            if not inside or piece.part.start < at or piece.part.end <= piece.part.start:
                raise InputRefused(f"what is kept of the rewrite of {source.name} does not fit the file; begin anew")
            at = piece.part.end

    def as_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "version": _VERSION,
            "sha256": self.sha256,
            "encoding": self.encoding,
            "instruction": self.instruction,
            "parts": [[part.start, part.end] for part in self.parts],
            "pieces": [
                {
                    "part": [piece.part.start, piece.part.end],
                    "lines": list(piece.lines),
                    "offsets": list(piece.offsets),
                    "rejected": [[each.start, each.end, each.p_old, each.p_new] for each in piece.rejected],
                }
                for piece in self.pieces
            ],
            "terms": self.terms.as_json(),
            "took": self.took.as_json(),
        }

    @staticmethod
    def from_json(found: object) -> Partial:
        """What `as_json` gave. Raises InputRefused for anything else."""
        try:
            return _partial(found)
        except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
            raise InputRefused("what is kept of a rewrite cannot be read; begin it anew") from error


def sha256_of(source: SourceFile) -> str:
    """The digest by which a file is known again."""
    return digest_of(source.data)


def _partial(found: Any) -> Partial:
    if found["version"] not in (_VERSION, _OLDER):
        raise ValueError("another version")
    is_older = found["version"] == _OLDER
    return Partial(
        sha256=_text(found["sha256"]),
        encoding=_text(found["encoding"]),
        instruction=_text(found["instruction"]),
        parts=tuple(map(_part, found["parts"])),
        pieces=tuple(map(_piece, found["pieces"])),
        terms=Terms() if is_older else Terms.from_json(found["terms"]),
        took=Took() if is_older else Took.from_json(found["took"]),
    )


def _piece(found: Any) -> Piece:
    lines, offsets = tuple(map(_line, found["lines"])), tuple(map(_number, found["offsets"]))
    if len(lines) != len(offsets) or list(offsets) != sorted(offsets):
        raise ValueError("offsets")
    rejected = tuple(
        Rejection(_number(start), _number(end), _chance(p_old), _chance(p_new))
        for start, end, p_old, p_new in found["rejected"]
    )
    return Piece(_part(found["part"]), lines, offsets, rejected)


def _part(found: Any) -> Part:
    start, end = map(_number, found)
    return Part(start, end)


def _number(found: Any) -> int:
    if type(found) is not int or found < 0:
        raise ValueError("a number")
    return found


def _chance(found: Any) -> float:
    if type(found) not in (int, float) or not math.isfinite(found):
        raise ValueError("a probability")
    return float(found)


def _text(found: Any) -> str:
    if type(found) is not str:
        raise TypeError("text")
    return found


def _line(found: Any) -> str:
    if "\n" in _text(found) or "\r" in found:
        raise ValueError("a line")
    return str(found)
