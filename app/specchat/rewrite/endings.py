"""Line ends and the final newline as the user wants them, apart from what the model changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specchat.rewrite.hunks import Review
from specchat.rewrite.merge import FinalNewline, LineEnds
from specchat.rewrite.source import SourceFile, split_lines


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of line ends, as a change of its own."""

    line_ends: int = 0  # how many are other ones
    ends: LineEnds = LineEnds.KEEP
    final_newline: str = ""  # "added", "removed"

    def __bool__(self) -> bool:
        return bool(self.line_ends or self.final_newline)

    def __str__(self) -> str:
        parts = []
        if self.line_ends:
            one = self.line_ends == 1
            parts.append(
                f"{self.line_ends} line end{'' if one else 's'} become{'s' if one else ''} {self.ends.upper()}"
            )
        if self.final_newline:
            parts.append(f"the final newline is {self.final_newline}")
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Endings:
    """What is asked of line ends."""

    ends: LineEnds = LineEnds.KEEP
    final_newline: FinalNewline = FinalNewline.KEEP

    def result(self, review: Review, hunk_ids: Iterable[str] | None = None) -> tuple[bytes, Converted]:
        """The file with some hunks, as `Review.result` takes them, and what was done to line ends on top of them.

        Raises OutputRefused as that does.
        """
        chosen = None if hunk_ids is None else list(hunk_ids)
        kept = review.result(chosen)
        if self == Endings():
            return kept, Converted()
        wanted = review.result(chosen, self.final_newline, self.ends)
        return wanted, self._converted(review.source, kept, wanted)

    def _converted(self, source: SourceFile, kept: bytes, wanted: bytes) -> Converted:
        before, after = (
            [end for _, end in split_lines(data[len(source.mark) :].decode(source.encoding))] for data in (kept, wanted)
        )
        final = ""
        if before and after and bool(before[-1]) != bool(after[-1]):
            final = "added" if after[-1] else "removed"
        changed = sum(old != new for old, new in zip(before, after, strict=False) if old and new)
        return Converted(changed, self.ends, final)
