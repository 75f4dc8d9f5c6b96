"""`specchat undo`: what rewrites wrote, and the way back."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from specchat.attachments import label
from specchat.console import can_ask, printable, say
from specchat.errors import InputRefused
from specchat.folders import undo_folder
from specchat.rewrite.asking import agreed
from specchat.rewrite.choosing import check_folder
from specchat.rewrite.journal import Entry, Past, State
from specchat.rewrite.patch import patch
from specchat.rewrite.source import read_source
from specchat.rewrite.three_way import Merged
from specchat.rewrite.undo import ChangedSince, UndoStore

_MOST_TITLE = 60  # characters of a request in a list
_MOST_LINES = 40  # of a merge that are shown


def undo(args: Namespace) -> int:
    """Take back a write, or list them. Returns the exit code."""
    check_folder()
    store = UndoStore(undo_folder())
    store.prune()  # which settles first what a killed process left
    if args.list:
        past = _of_file(store.past(), args.wanted) if args.wanted else store.past()
        _print(past)
        if not past:
            say(f"nothing that was written{f' to {label(args.wanted)}' if args.wanted else ''} can be taken back")
        return 0
    wanted = None if args.wanted is None else id_of(store.past(), args.wanted)
    try:
        entry = store.undo(wanted)
        done = f"{label(entry.named)} is as it was before {entry.undoes}"
    except ChangedSince as changed:
        entry = _merged(store, changed)
        done = f"{entry.undoes} is taken out of {label(entry.named)}"
    say(f"{done}; `specchat undo {entry.id}` brings it back")
    return 0


def id_of(past: list[Past], wanted: str) -> str:
    """The id of a write that is named by its id, or by the file whose last one it is. Raises InputRefused."""
    if any(each.entry.id.startswith(wanted.lower()) for each in past if wanted):
        return wanted
    found = [each.entry.id for each in _of_file(past, wanted) if not each.undone and each.entry.undoes is None]
    if not found:
        named = label(wanted) or '""'
        raise InputRefused(f"{named} is neither the id of a write nor a file with one to take back")
    return found[0]


def _of_file(past: list[Past], name: str) -> list[Past]:
    real = os.path.realpath(name)
    return [each for each in past if each.entry.real == real]


def _merged(store: UndoStore, changed: ChangedSince) -> Entry:
    """Write the merge if the user agrees; raises the refusal otherwise."""
    if changed.merged is not None and not can_ask():
        say("note: on a terminal, or in the app with /undo, it is asked whether to write the merge")
    if changed.merged is None or not can_ask():
        raise changed
    say(str(changed))
    _show_merge(changed.entry, changed.merged)
    marked = f" with {changed.merged.conflicts} conflicts marked in it" if changed.merged.conflicts else ""
    if not agreed(f"write the merge{marked}?"):
        raise changed
    return store.merge_back(changed)


def _show_merge(entry: Entry, merged: Merged) -> None:
    """What the merge would change in the file as it is now."""
    try:
        source = read_source(Path(entry.named))
    except InputRefused:
        return  # it is no text any more; the question stands
    lines = patch(source, merged.data).decode("utf-8", "replace").splitlines()
    for line in lines[:_MOST_LINES]:
        say(line)
    if len(lines) > _MOST_LINES:
        say(f"... and {len(lines) - _MOST_LINES} lines more")


def _print(past: Sequence[Past]) -> None:
    width = max((cell_len(_name(each)) for each in past), default=0)
    for each in past:
        print(line_of(each, width))


def line_of(past: Past, name_width: int = 0) -> str:
    """A write as a line of a list, fit to be shown; the file's name takes `name_width` columns or more."""
    entry = past.entry
    when = datetime.fromtimestamp(entry.written).strftime("%Y-%m-%d %H:%M")
    title = " ".join(printable(entry.title).split())
    title = title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 3]}..."
    if entry.undoes is not None:
        title = f"undo of {entry.undoes}"
    state = "interrupted" if entry.state is State.UNCLEAR else "undone" if past.undone else ""
    name = set_cell_size(_name(past), max(name_width, cell_len(_name(past))))
    return f"{entry.id}  {when}  {name}  {title}{f'  ({state})' if state else ''}"


def _name(past: Past) -> str:
    """The path from here where the file is below the working folder."""
    named, here = Path(past.entry.named), Path.cwd()
    return label(str(named.relative_to(here) if named.is_relative_to(here) else named))
