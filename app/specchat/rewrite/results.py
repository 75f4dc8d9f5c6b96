"""What became of each file of a run: in a line, in JSON, and as an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from specchat.dialogue import Dialogue
from specchat.exit_codes import ExitCode
from specchat.remote.telling import as_json as remote_figures
from specchat.remote.telling import is_remote, rewrite_line
from specchat.rewrite.endings import Converted
from specchat.rewrite.inputs import Job, Mode
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.patch import patch
from specchat.rewrite.shown import Format, flag_as_json, hunks_as_json

SCHEMA = "specchat.rewrite/1"
_NOTHING: dict[str, Any] = {"line_ends": 0, "final_newline": None, "stripped": [], "speculation": None}


class Status(StrEnum):
    """What became of a file."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"  # or would be
    WRITTEN = "written"
    UNDONE = "undone"  # written and taken back, because the command behind it failed
    REFUSED = "refused"  # what the model wrote
    DECLINED = "declined"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    PLANNED = "planned"  # of a dry run


@dataclass(frozen=True, slots=True)
class Result:
    """One file."""

    name: str  # one line that is fit to be shown
    status: Status
    code: int
    said: str = ""  # why, for people
    outcome: Outcome | None = None
    undo_id: str | None = None
    data: bytes | None = None  # the new contents, of what was accepted
    converted: Converted = field(default_factory=Converted)
    path: str = ""  # as it was named, for programs
    kept: Path | None = None  # where one can look at what was not used


def exit_code(results: Sequence[Result]) -> int:
    """The exit code of a run: that of the only file, or what the files come to together."""
    codes = [result.code for result in results]
    if ExitCode.INTERRUPTED in codes:
        return ExitCode.INTERRUPTED
    if len(codes) == 1:
        return codes[0]
    if any(code not in (0, ExitCode.CHECK_FAILED, ExitCode.DECLINED) for code in codes):
        return ExitCode.SOME_FAILED
    if ExitCode.CHECK_FAILED in codes:
        return ExitCode.CHECK_FAILED
    written = any(result.status is Status.WRITTEN for result in results)
    return ExitCode.DECLINED if ExitCode.DECLINED in codes and not written else 0


def summary(results: Iterable[Result]) -> str:
    """How many files became what."""
    counted = Counter(result.status for result in results)
    return ", ".join(f"{count} {status}" for status, count in counted.items())


def as_json(result: Result, job: Job, session: Dialogue | None) -> dict[str, Any]:
    """One file in the shape specchat.rewrite/1."""
    outcome = result.outcome
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "type": "file",
        "path": result.path or result.name,
        "status": str(result.status),
        "exit_code": result.code,
        "message": result.said or None,
        "undo_id": result.undo_id,
        "kept": None if result.kept is None else str(result.kept),
    }
    if outcome is None or session is None:
        return {**found, "hunks": 0, "changed_lines": 0, "flags": [], "findings": [], **_NOTHING}
    source, data = outcome.record.source, result.data
    found |= {
        "hunks": len(outcome.review.hunks),
        "changed_lines": outcome.changed_lines,
        "flags": [flag_as_json(flag) for flag in outcome.flags],
        "findings": [
            {"problem": str(each.problem), "line": each.line, "reason": each.reason} for each in outcome.findings
        ],
        "line_ends": result.converted.line_ends,
        "final_newline": result.converted.final_newline or None,
        "stripped": [{"what": each.what, "text": each.text} for each in outcome.written.stripped],
        "speculation": _speculation(outcome, session),
    }
    if source.place is not None and source.place.real != source.place.named:
        found["real_path"] = str(source.place.real)
    if job.shown is Format.JSON:
        found["changes"] = hunks_as_json(outcome.review, outcome.flags)
    elif job.mode is Mode.DIFF:
        found["diff"] = "" if data is None else patch(source, data).decode("utf-8", "replace")
    elif job.mode is Mode.STDOUT and data is not None:
        found["text"] = data[len(source.mark) :].decode(source.encoding, "replace")
    return found


def summary_json(results: Sequence[Result]) -> dict[str, Any]:
    """The last line of a run."""
    counted = Counter(str(result.status) for result in results)
    code = exit_code(results)
    return {"schema": SCHEMA, "type": "summary", "files": len(results), "exit_code": code, **counted}


def figures(outcome: Outcome) -> str:
    """One line that says what a rewrite took."""
    if is_remote(outcome.record.replies):
        return rewrite_line(outcome.record.replies)
    totals = outcome.totals
    parts = [f"{totals.emitted} tokens in {outcome.seconds:.1f} s"]
    if totals.tokens_per_step is not None:
        parts.append(f"{totals.tokens_per_step:.2f} tokens/step")
    if totals.emitted:
        parts.append(f"{totals.accepted / totals.emitted:.0%} copied")
    speed_up = totals.speed_up(outcome.record.plain_step_s)
    if speed_up is not None:
        parts.append(f"x{speed_up:.2f} est")
    return " · ".join(parts)


def _speculation(outcome: Outcome, session: Dialogue) -> dict[str, Any]:
    if is_remote(outcome.record.replies):
        return remote_figures(outcome.record.replies)
    totals, plain_step_s = outcome.totals, outcome.record.plain_step_s
    speed_up = totals.speed_up(plain_step_s)
    return {
        "guesser": str(session.guess),
        "steps": totals.steps,
        "output_tokens": totals.emitted,
        "drafted": totals.drafted,
        "checked": totals.examined,
        "accepted": totals.accepted,
        "tokens_per_step": _rounded(totals.tokens_per_step),
        "hit_rate": _rounded(totals.alpha),
        "seconds": {"prefill": _rounded(outcome.seconds - totals.seconds), "decode": _rounded(totals.seconds)},
        "speedup": None if speed_up is None else {"value": round(speed_up, 3), "kind": "estimated"},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
