"""`specchat undo`: what rewrites wrote, and the way back."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import datetime

from specchat.attachments import label
from specchat.console import can_ask, printable, say
from specchat.errors import InputRefused
from specchat.rewrite.asking import agreed
from specchat.rewrite.journal import Entry, State
from specchat.rewrite.undo import ChangedSince, Past, UndoStore, undo_folder

_MOST_TITLE = 60  # characters of a request in a list


def undo(args: Namespace) -> int:
    """Take back a write, or list them. Returns the exit code."""
    store = UndoStore(undo_folder())
    if args.list:
        for past in _of_file(store.past(), args.wanted) if args.wanted else store.past():
            print(_line(past))
        return 0
    wanted = None if args.wanted is None else _id_of(store.past(), args.wanted)
    try:
        entry = store.undo(wanted)
    except ChangedSince as changed:
        entry = _merged(store, changed)
    again = f"`specchat undo {entry.id}` brings it back"
    say(f"{label(entry.named)} is as it was before {entry.undoes}; {again}")
    return 0


def _id_of(past: list[Past], wanted: str) -> str:
    """The id of a write that is named by its id, or by the file whose last one it is. Raises InputRefused."""
    if any(each.entry.id.startswith(wanted.lower()) for each in past if wanted):
        return wanted
    found = [each.entry.id for each in _of_file(past, wanted) if not each.undone and each.entry.undoes is None]
    if not found:
        raise InputRefused(f"{label(wanted)} is neither the id of a write nor a file with one to take back")
    return found[0]


def _of_file(past: list[Past], name: str) -> list[Past]:
    real = os.path.realpath(name)
    return [each for each in past if each.entry.real == real]


def _merged(store: UndoStore, changed: ChangedSince) -> Entry:
    """Write the merge if the user agrees; raises the refusal otherwise."""
    if changed.merged is None or not can_ask():
        raise changed
    say(str(changed))
    marked = f" with {changed.merged.conflicts} conflicts marked in it" if changed.merged.conflicts else ""
    if not agreed(f"write the merge{marked}?"):
        raise changed
    return store.merge_back(changed)


def _line(past: Past) -> str:
    entry = past.entry
    when = datetime.fromtimestamp(entry.written).strftime("%Y-%m-%d %H:%M")
    title = " ".join(printable(entry.title).split())
    title = title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 3]}..."
    if entry.undoes is not None:
        title = f"undo of {entry.undoes}"
    state = "interrupted" if entry.state is State.UNCLEAR else "undone" if past.undone else ""
    return f"{entry.id}  {when}  {label(entry.named)}  {title}{f'  ({state})' if state else ''}"
