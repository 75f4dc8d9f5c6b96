"""Memory, the disk of the models, and whether what is private can be read by its owner alone."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from specchat.console import size
from specchat.doctor.finding import Finding, note, ok, problem
from specchat.fit import Room
from specchat.folders import (
    crash_folder,
    history_path,
    log_folder,
    refused_folder,
    settings_path,
    states_folder,
    trusted_path,
    undo_folder,
    unfinished_folder,
)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST_FILES = 20_000  # looked at in one folder


def check_memory(room: Room, smallest: int | None, *, is_gpu: bool) -> Finding:
    """What models can have; `smallest` is what the smallest target of the catalogue takes, in bytes."""
    name = "memory of the GPU" if is_gpu else "memory"
    if room.free is None:
        return note(name, "how much is free is not known here, so nothing is refused for lack of it")
    of = f" of {size(room.total)}" if room.total is not None else ""
    values = {"free": room.free, "total": room.total}
    if smallest is not None and room.free < smallest:
        advice = "close other programs, or take a smaller model: specchat models list --fits"
        return problem(name, f"{size(room.free)}{of} is free, less than any model takes", advice, **values)
    return ok(name, f"{size(room.free)}{of} is free", **values)


def check_disk(folder: Path, wanted: int) -> Finding:
    """Whether models can be put into their folder; `wanted` is how many bytes the starter pair still needs."""
    free = shutil.disk_usage(_there(folder)).free
    values = {"folder": str(folder), "free": free}
    if not can_be_written(folder):
        advice = "set SPECCHAT_MODELS_DIR to a folder that you may write to"
        return problem("disk", f"nothing can be written into {folder}", advice, **values)
    if free < wanted:
        advice = "make room, or set SPECCHAT_MODELS_DIR to a folder on another disk"
        said = f"{size(free)} is free for {folder}, and the starter pair needs {size(wanted)}"
        return note("disk", said, advice, **values)
    return ok("disk", f"{size(free)} is free for {folder}", **values)


def can_be_written(folder: Path) -> bool:
    """Whether files can be put into a folder, which is made where it is not there."""
    there = _there(folder)
    return there.is_dir() and os.access(there, os.W_OK)


def _there(folder: Path) -> Path:
    """The folder, or the nearest one above that is there."""
    return next(each for each in (folder, *folder.parents) if each.exists() or each == each.parent)


def private_places(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Folders and files that hold what was said, or where; those of them that are made only when needed too."""
    kept = [undo_folder(environ), unfinished_folder(environ), refused_folder(environ), states_folder(environ)]
    trusted = trusted_path(environ)
    return [history_path(environ).parent, *kept, log_folder(environ), crash_folder(environ), trusted]


def check_private(
    places: Sequence[Path], settings: Path | None = None, system: str = sys.platform
) -> Iterator[Finding]:
    """Whether others can read what is private."""
    if system == "win32":
        yield ok("private files", "kept in folders of your own; Windows has no file modes to look at")
        return
    open_ones = [(place, found) for place in places if (found := readable_by_others(place))]
    for place, found in open_ones:
        many = f" and {len(found) - 1} more below {place}" if len(found) > 1 else ""
        advice = f"chmod -R go= {place}"
        yield problem("private files", f"others on this machine can read {found[0]}{many}", advice, open=len(found))
    if settings is not None and readable_by_others(settings):
        said = f"others on this machine can read {settings}, and with it your system prompt"
        yield note("private files", said, f"chmod go= {settings}")
    elif not open_ones:
        present = sum(place.exists() for place in places)
        yield ok(
            "private files", f"nobody else can read them ({present} of {len(places)} places are in use)", places=present
        )


def readable_by_others(place: Path) -> list[Path]:
    """Files and folders at and below a place that somebody else could open; links are not followed.

    What lies in a folder that nobody else can enter is out of reach, whatever its own mode.
    """
    try:
        mode = place.lstat().st_mode
        is_shut_in = not stat.S_ISDIR(mode) and not place.parent.stat().st_mode & _OTHERS
    except OSError:
        return []
    if is_shut_in or stat.S_ISLNK(mode) or not mode & _OTHERS:
        return []
    found = [place]
    if stat.S_ISDIR(mode):
        for count, each in enumerate(sorted(place.rglob("*"))):
            if count == _MOST_FILES:
                break
            with suppress(OSError):
                mode = each.lstat().st_mode
                if not stat.S_ISLNK(mode) and mode & _OTHERS:
                    found.append(each)
    return found


def private_files() -> Iterator[Finding]:
    """The check on this machine."""
    yield from check_private(private_places(), settings_path())
