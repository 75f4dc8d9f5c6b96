"""What a run puts on stdout and stderr: progress while it goes on, then results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from specchat.console import Bar, ReadingBar, on_interrupt, printable, say
from specchat.dialogue import Dialogue
from specchat.rewrite.extract import Stripped
from specchat.rewrite.forecast import told
from specchat.rewrite.generate import Progress, RewriteEvent
from specchat.rewrite.inputs import Job, Mode
from specchat.rewrite.long import AnyRewriting
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.patch import patch
from specchat.rewrite.results import SCHEMA, Result, Status, as_json, figures, summary, summary_json
from specchat.rewrite.shown import Format, drawing, hunks_as_json
from specchat.rewrite.unfinished import Keeping
from specchat.session import Reading

_MOST_STRIPPED = 60  # characters of what was left out that are shown


def drained(rewriting: AnyRewriting, events: Iterator[RewriteEvent], keeping: Keeping) -> Outcome:
    """Run a rewrite to its end, with bars on the terminal; Ctrl-C stops it."""
    outcome: Outcome | None = None
    started = False
    bar = Bar(f"rewriting {rewriting.source.name}", "parts")
    with ReadingBar() as reading, bar, on_interrupt(rewriting.stop):
        for event in events:
            if isinstance(event, Reading):
                reading.show(event)
            elif isinstance(event, Outcome):
                outcome = event
            else:
                reading.stop()
                if not started:
                    bar.start(max(1, event.lines))
                    started = True
                bar.move_to(event.line)
                bar.note(_progress(event, rewriting))
                keeping.look()
    assert outcome is not None  # a rewrite ends with one
    return outcome


def tell(result: Result, job: Job, session: Dialogue | None) -> None:
    """Print what became of a file."""
    if job.as_json:
        _print_json(as_json(result, job, session))
        return
    if result.data is not None and result.outcome is not None:
        if job.mode is Mode.STDOUT:
            _print_bytes(result.data, result.outcome)
        elif job.shown is Format.JSON:
            _print_json(_changes(result, result.outcome))
        elif job.mode is Mode.DIFF and result.status is Status.CHANGED:
            _print_patch(result.data, result.outcome, job.shown)
            _say_doubts(result.name, result.outcome)
    for stripped in () if result.outcome is None else result.outcome.written.stripped:
        say(f"{result.name}: left out of the reply: {_told(stripped)}")
    if result.said:
        say(result.said)
    if result.outcome is not None and job.mode is not Mode.CHECK:
        say(figures(result.outcome))


def _say_doubts(name: str, outcome: Outcome) -> None:
    """What deserves a second look in a patch, beside it and in the way of compilers."""
    found = [(flag.line, str(flag)) for flag in outcome.flags] + [(each.line, each.reason) for each in outcome.findings]
    for line, said in sorted(found):
        say(f"{name}:{line}: {said}")


def tell_end(results: Sequence[Result], job: Job) -> None:
    """Print what became of all files together."""
    if job.as_json:
        _print_json(summary_json(results))
    elif len(job.names) != 1:
        say(f"{len(results)} of {len(job.names)} files: {summary(results)}" if results else "no files")


def _progress(event: Progress, rewriting: AnyRewriting) -> str:
    parts = [f"line {event.line}/{event.lines}"]
    if rewriting.chunks > 1:
        parts.append(f"part {min(rewriting.chunks, rewriting.chunks_done + 1)}/{rewriting.chunks}")
    if event.tokens_per_step is not None:
        parts.append(f"{event.tokens_per_step:.1f} tokens/step")
    if event.edits:
        parts.append(f"{len(event.edits)} edit{'s' if len(event.edits) > 1 else ''}")
    if event.plain_seconds_left is not None:
        parts.append(f"plain would take {told(event.plain_seconds_left)}")
    return ", ".join(parts)


def _told(stripped: Stripped) -> str:
    """What it was, and how it begins."""
    begun = " ".join(stripped.text.split())
    begun = begun if len(begun) <= _MOST_STRIPPED else f"{begun[:_MOST_STRIPPED]}..."
    return f'{stripped.what}, "{begun}"'


def _changes(result: Result, outcome: Outcome) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "type": "changes",
        "path": result.path or result.name,
        "line_ends": result.converted.line_ends,
        "final_newline": result.converted.final_newline or None,
        "changes": hunks_as_json(outcome.review, outcome.flags),
    }


def _print_json(found: dict[str, object]) -> None:
    text = json.dumps(found, ensure_ascii=False)
    try:
        text.encode()
        steers = sys.stdout.isatty()
    except UnicodeEncodeError:  # a name that is no UTF-8
        steers = True
    print(json.dumps(found) if steers else text, flush=True)


def _print_bytes(data: bytes, outcome: Outcome) -> None:
    source = outcome.record.source
    if sys.stdout.isatty():
        sys.stdout.write(printable(data[len(source.mark) :].decode(source.encoding, "replace")))
    else:
        sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _print_patch(data: bytes, outcome: Outcome, wanted: Format) -> None:
    source = outcome.record.source
    if wanted is Format.UNIFIED and not sys.stdout.isatty():
        sys.stdout.buffer.write(patch(source, data))
        sys.stdout.flush()
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    draw = drawing(wanted)
    console.print(source.name, style="bold")
    for hunk in outcome.review.hunks:
        console.print(draw(source, hunk), soft_wrap=True)
