"""The changes of a rewrite, one after the other in line mode, with the keys of `git add -p`."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specchat.console import answer_to, say
from specchat.editor import editor_name
from specchat.rewrite.flags import Flag
from specchat.rewrite.hunks import Decision, Hunk, Review
from specchat.rewrite.patch import drawn
from specchat.rewrite.shown import Draw
from specchat.rewrite.source import joined, split_lines

if TYPE_CHECKING:
    from rich.console import Console

_HELP = """\
y - make this change
n - leave these lines as they are
a - make this change and all later ones of the file
d - leave these lines and all later ones of the file as they are
s - split the change into smaller ones
e - edit the change in $VISUAL or $EDITOR
q - ask no more, about other files neither; what was accepted is written
? - this help"""


def ask_about(review: Review, flags: Sequence[Flag], draw: Draw = drawn) -> tuple[Review, bool]:
    """Ask about each hunk that is not decided; the review with the answers, and False where no more should be asked."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    while undecided := [hunk for hunk in review.hunks if hunk.decision is Decision.OPEN]:
        hunk = undecided[0]
        _show(console, review, hunk, flags, draw)
        parts = review.split(hunk.id)
        keys = f"y,n,a,d,{'s,' if parts is not review else ''}e,q,?"
        match answer_to(f"make this change [{keys}]? "):
            case "y":
                review = review.decide(Decision.ACCEPTED, [hunk.id])
            case "n":
                review = review.decide(Decision.REJECTED, [hunk.id])
            case "a":
                review = review.decide(Decision.ACCEPTED, [each.id for each in undecided])
            case "d":
                review = review.decide(Decision.REJECTED, [each.id for each in undecided])
            case "s":
                review = parts
            case "e":
                review = _edited(review, hunk)
            case "q" | None:
                return review.decide(Decision.REJECTED, [each.id for each in undecided]), False
            case _:
                say(_HELP)
    return review, True


def agreed(question: str) -> bool:
    """Ask on the terminal; only a yes means yes."""
    return answer_to(f"{question} [y/N] ") in ("y", "yes")


def _show(console: Console, review: Review, hunk: Hunk, flags: Sequence[Flag], draw: Draw) -> None:
    number = review.hunks.index(hunk) + 1
    last = max(hunk.end, hunk.start + 1)
    where = f"line {last}" if last - hunk.start == 1 else f"lines {hunk.start + 1}-{last}"
    console.print(f"\n{review.source.name}: change {number} of {len(review.hunks)}, {where}", style="bold")
    console.print(draw(review.source, hunk), soft_wrap=True)
    of_hunk = (flag for flag in flags if flag.hunk == hunk.id or hunk.id.startswith(f"{flag.hunk}."))
    for flag in of_hunk:
        console.print(f"{flag.kind.upper()}: {flag.reason}", style="reverse")


def _edited(review: Review, hunk: Hunk) -> Review:
    """The review with what an editor made of a hunk, accepted; the same one where that failed."""
    editor = editor_name()
    name = review.source.place.named.name if review.source.place is not None else "text"
    with tempfile.TemporaryDirectory(prefix="specchat-") as folder:
        path = Path(folder) / f"change{Path(name).suffix}"
        try:
            path.write_text(joined(review.new_lines(hunk.id)), encoding="utf-8", newline="")
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
            text = path.read_bytes().decode("utf-8")
        except (OSError, ValueError) as error:
            say(f"no editor {editor}: {error}")
            return review
    if code != 0:
        say(f"{editor} ended with {code}; the change is as it was")
        return review
    review = review.edit(hunk.id, [line for line, _ in split_lines(text)])
    return review.decide(Decision.ACCEPTED, [hunk.id])
