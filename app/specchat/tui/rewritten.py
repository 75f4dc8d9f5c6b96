"""What became of a rewrite -> a file to review, with the facts and figures that stand beside it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.attachments import label
from specchat.rewrite.flags import doubts
from specchat.rewrite.part import whole
from specchat.rewrite.source import SourceFile
from specchat.tui.review_words import shortened
from specchat.tui.reviewed import ReviewedFile
from speculation.stats import ENOUGH_STEPS

if TYPE_CHECKING:  # loads the engine, which no screen needs
    from specchat.rewrite.outcome import Outcome

_SHOWN = 60  # characters of what was left out
_ENDS = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}


def reviewed_file(outcome: Outcome, folder: Path | None = None, refused: Path | None = None) -> ReviewedFile:
    """A rewrite as the review screen takes it; of a file that is not below `folder` the real place is said.

    `refused` is where that is kept which cannot be written.
    """
    record, source = outcome.record, outcome.review.source
    sure = {
        hunk.id: min(each.p_new for each in found)
        for hunk in outcome.review.hunks
        if (found := doubts(hunk, outcome.written, record.rejected))
    }
    return ReviewedFile(
        review=outcome.review,
        flags=outcome.flags,
        findings=outcome.findings,
        facts=facts_of(source, _mode(source)),
        part="" if record.part == whole(source) else f"lines {record.part.start + 1}-{record.part.end}",
        remarks=(*_kept(refused), *_place(source, folder), *_left_out(outcome)),
        figures=figures_of(outcome),
        unread_from=outcome.unread_from,
        least_sure=sure,
        check=lambda _, changes: outcome.against(changes),
    )


def facts_of(source: SourceFile, mode: int | None = None) -> str:
    """How a file is stored, in a few words: "utf-8  CRLF  0644"."""
    counted = Counter(_ENDS[line.end] for line in source.lines if line.end)
    ends = " + ".join(f"{name} {counted[name]}" for name in sorted(counted)) if len(counted) > 1 else "".join(counted)
    parts = [source.encoding + (" BOM" if source.mark else ""), ends]
    parts.append("" if source.ends_with_newline or not source.lines else "no final newline")
    parts.append("" if mode is None else f"{mode & 0o7777:04o}")
    return "  ".join(part for part in parts if part)


def figures_of(outcome: Outcome) -> str:
    """What a rewrite took, in one line; a speed-up only from enough steps."""
    from specchat.remote.telling import is_remote, rewrite_line

    if is_remote(outcome.record.replies):
        return rewrite_line(outcome.record.replies)
    totals, seconds, plain_s = outcome.totals, outcome.seconds, outcome.plain_seconds
    parts = [f"{totals.emitted} tokens in {seconds:.0f} s"]
    if plain_s is not None and seconds > 0 and totals.steps >= ENOUGH_STEPS:
        parts.append(f"plain about {plain_s:.0f} s, x{plain_s / seconds:.1f} est")
    if totals.tokens_per_step is not None:
        parts.append(f"{totals.tokens_per_step:.2f} tokens/step")
    return "  ".join(parts)


def _place(source: SourceFile, folder: Path | None) -> list[str]:
    """Where a file really stands that is reached through a link or outside the folder."""
    if source.place is None or folder is None or not source.outside(folder):
        return []
    return [f"it stands outside the folder: {label(str(source.place.real))}"]


def _kept(refused: Path | None) -> list[str]:
    return [] if refused is None else [f"what the model wrote is in {label(str(refused))}"]


def _left_out(outcome: Outcome) -> list[str]:
    """What of the reply was not taken for a part of the file."""
    return [
        f"left out of the reply: {label(each.what)}, {shortened(label(' '.join(each.text.split())), _SHOWN)}"
        for each in outcome.written.stripped
    ]


def _mode(source: SourceFile) -> int | None:
    if source.place is not None:
        with suppress(OSError):
            return os.stat(source.place.real).st_mode
    return None
