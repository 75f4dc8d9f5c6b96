"""`specchat paths`: every place where something is kept, what it holds, and whether it may be deleted."""

from __future__ import annotations

import json
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from specchat import folders
from specchat.console import printable, size
from specchat.errors import UsageError
from specchat.logs import log_path
from specchat.tables import suggestion

SCHEMA = "specchat.paths/1"


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder, there or not; what stands in a folder below another one is counted in both."""

    name: str
    path: Path
    holds: str
    may_go: bool  # whether it is made again, or missed by nobody


def places(environ: Mapping[str, str] = os.environ) -> list[Place]:
    """Every place, the folders before what is in them."""
    log = log_path(environ)
    logs = [Place("log", log, "figures of commands and replies, no text", True)] if log else []
    return [
        Place("config", folders.config_folder(environ), "what you write by hand", False),
        Place("settings", folders.settings_path(environ), "your settings", False),
        Place("catalogue", folders.own_catalogue_path(environ), "your own entries of the catalogue", False),
        Place("recipes", folders.recipes_folder(environ), "your recipes of rewrites", False),
        Place("data", folders.data_folder(environ), "chats and models", False),
        Place("models", folders.models_folder(environ), "models; those of the catalogue can be fetched again", False),
        Place("chats", folders.history_path(environ), "your chats; beside it, what you had not sent yet", False),
        Place("heads", folders.heads_folder(environ), "heads that were trained here; training takes long", False),
        Place("state", folders.state_folder(environ), "what specchat notes for itself", False),
        Place("trusted", folders.trusted_path(environ), "which settings of projects you trust", False),
        Place("undo", folders.undo_folder(environ), "files as they were before a rewrite", False),
        Place("unfinished", folders.unfinished_folder(environ), "rewrites that were cut off", False),
        Place("refused", folders.refused_folder(environ), "rewrites that were not used", False),
        Place("crashes", folders.crash_folder(environ), "reports of faults, no text", True),
        *logs,
        Place("cache", folders.cache_folder(environ), "what is made again when it is gone", True),
        Place("states", folders.states_folder(environ), "old chats as the model holds them", True),
        Place("texts", folders.texts_folder(environ), "what heads learn from, and how far they are", True),
        Place("prices", folders.prices_path(environ), "what a step costs with each model", True),
        Place("survival", folders.survival_path(environ), "what guesses have been worth", True),
        Place("trials", folders.trials_path(environ), "which model files have been tried out", True),
    ]


def paths(args: Namespace) -> int:
    """A line a place; one of them alone as it is, for scripts; or JSON. Raises UsageError for an unknown name."""
    known = places()
    if args.name is not None:
        known = [place for place in known if place.name == args.name] or _unknown(args.name, known)
    if args.json:
        json.dump({"schema": SCHEMA, "places": [_as_json(place) for place in known]}, sys.stdout, indent=2)
        print()
    elif args.all:
        _show_all(known)
    elif args.name is not None:
        print(known[0].path)
    else:
        width = max(len(place.name) for place in known)
        for place in known:
            print(printable(f"{place.name:{width}}  {place.path}"))
    return 0


def taken(path: Path) -> int | None:
    """Bytes of a file or of all files below a folder, links not followed; None where there is nothing."""
    try:
        top = path.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(top.st_mode):
        return top.st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def _show_all(known: Sequence[Place]) -> None:
    rows = [("NAME", "SIZE", "PATH"), *((place.name, _size(place.path), str(place.path)) for place in known)]
    name_width, size_width = (max(len(row[at]) for row in rows) for at in (0, 1))
    indent = " " * (name_width + size_width + 4)
    for at, (name, amount, path) in enumerate(rows):
        print(printable(f"{name:{name_width}}  {amount:>{size_width}}  {path}"))
        if at:
            place = known[at - 1]
            print(f"{indent}{place.holds}{'; may be deleted without loss' if place.may_go else ''}")


def _size(path: Path) -> str:
    n_bytes = taken(path)
    return "-" if n_bytes is None else size(n_bytes)


def _as_json(place: Place) -> dict[str, object]:
    return {
        "name": place.name,
        "path": str(place.path),
        "holds": place.holds,
        "bytes": taken(place.path),
        "may_be_deleted": place.may_go,
    }


def _unknown(name: str, known: Sequence[Place]) -> list[Place]:
    names = [place.name for place in known]
    hint = suggestion(name, names) or f"; there are {', '.join(names)}"
    raise UsageError(f'no place is named "{name}"{hint}')
