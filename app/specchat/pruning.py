"""`specchat models prune`: what downloads and trials have left; nothing that is linked, running or somebody's."""

from __future__ import annotations

import re
import shutil
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchat.catalogue import SPLIT_NAME, Model
from specchat.console import can_ask, confirmed, printable, say, size
from specchat.errors import Declined
from specchat.exit_codes import ExitCode
from specchat.kept import Kept, kept_trials
from specchat.own_models import LIST_NAME
from specchat.partfile import held, locked
from specchat.shelf import Shelf
from specchat.transfer import DownloadError

# Names that only partfile.py and own_models.py make.
_BEGUN = re.compile(r"(?P<final>.+\.gguf)\.part(?:\.json|\.new|-.+)?")
_LOCK = re.compile(rf"(?P<final>.+\.gguf|{re.escape(LIST_NAME)})\.lock")


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that nobody needs any more."""

    what: str
    path: Path
    size: int  # bytes
    lock: Path  # held by whoever is at work on it
    is_doubtful: bool = False  # it may be a file of the user's own


def leftovers(folder: Path, models: Iterable[Model], known: Iterable[Path]) -> list[Leftover]:
    """What lies in the folder of the models and is neither in use nor being fetched.

    `known` are the files of all models, in that folder and elsewhere; `models` says whose the unfinished ones are.
    """
    kept = set(known)
    places = {part.name: model.id for model in models for part in model.file.parts}
    found = []
    hub = folder / "hub"
    for place in (folder, *(path for path in _inside(hub) if path.is_dir() and not path.is_symlink())):
        busy = [lock for lock in _inside(place) if _LOCK.fullmatch(lock.name) and held(lock)]
        found += [each for each in _in(place, kept, places, is_ours=place.parent == hub) if each.lock not in busy]
    return found


def _in(place: Path, kept: set[Path], places: dict[str, str], *, is_ours: bool) -> Iterator[Leftover]:
    for path in _inside(place):
        if path.is_symlink():  # whatever it leads to is somebody's
            continue
        lock = path.with_name(f"{path.name}.lock")
        if begun := _BEGUN.fullmatch(path.name):
            whose = places.get(begun["final"])
            what = f"an unfinished download of {whose}, which can go on" if whose else "an unfinished download"
            yield Leftover(what, path, _size(path), _lock_of(place / begun["final"]))
        elif _LOCK.fullmatch(path.name):
            yield Leftover("the mark of a download that was killed", path, 0, path)
        elif path.name == f"{LIST_NAME}.new" and path.is_file():
            yield Leftover("a list that was not finished", path, _size(path), place / f"{LIST_NAME}.lock")
        elif path.suffix == ".gguf" and path.is_file() and path not in kept:
            what = "fetched, and on no list any more" if is_ours else "on no list; it may be a file of yours"
            yield Leftover(what, path, _size(path), _lock_of(path), is_doubtful=not is_ours)
        elif is_ours and path.is_file() and path not in kept:
            yield Leftover("on no list", path, _size(path), lock, is_doubtful=True)


def _lock_of(final: Path) -> Path:
    """The lock around a file: of a split model, that of its first part."""
    split = SPLIT_NAME.fullmatch(final.name)
    first = final.name if split is None else f"{split['stem']}-00001-of-{split['count']}.gguf"
    return final.with_name(f"{first}.lock")


def delete(leftover: Leftover) -> bool:
    """Delete one; False where somebody has begun to work on it. Raises OSError."""
    path = leftover.path
    try:
        with locked(leftover.lock, "in use"):  # which takes a lock that is left over away with it
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except DownloadError:
        return False
    if path.parent.parent.name == "hub":
        with suppress(OSError):  # it holds other files
            path.parent.rmdir()
    return True


def stale_trials(trials: Kept) -> list[str]:
    """The records of trials whose files are gone."""
    return [key for key, value in trials.all().items() if not all(map(Path.exists, _files_of(value)))]


def _files_of(value: Any) -> list[Path]:
    with suppress(TypeError, KeyError, IndexError):
        return [Path(str(each[0])) for each in value["files"]]
    return [Path("/nothing/readable")]


def prune_models(args: Namespace) -> int:
    """Say what is left over and how much it takes, ask, and delete it."""
    shelf, trials = Shelf(), kept_trials()
    models = shelf.catalogue.models
    found = leftovers(shelf.store.folder, models, (path for model in models for path in shelf.store.paths(model)))
    stale = stale_trials(trials)
    for each in found:
        print(f"{size(each.size):>7}  {printable(str(each.path))}: {each.what}")
    if stale:
        print(f"{len(stale)} records of trials of files that are gone")
    if not found and not stale:
        say("nothing is left over")
        return 0
    sure = [each for each in found if args.yes or not each.is_doubtful]
    doubtful = len(found) - len(sure)
    if doubtful:
        say(f"{doubtful} of these may be files of your own and stay; `specchat models prune -y` deletes them too")
    if args.dry_run or not (sure or stale):
        return 0
    total = size(sum(each.size for each in sure))
    if not args.yes:
        if not can_ask():
            raise Declined("nothing deleted: no terminal to ask on; add -y")
        if not confirmed(f"Delete {f'{len(sure)} of these, {total}' if sure else 'the records'}?"):
            raise Declined("nothing deleted")
    gone = sum(_tell_deleted(each) for each in sure)
    trials.drop(stale)
    if sure:
        say(f"{gone} of {len(sure)} deleted")
    return ExitCode.DONE if gone == len(sure) else ExitCode.CHECK_FAILED


def _tell_deleted(leftover: Leftover) -> bool:
    try:
        if delete(leftover):
            return True
        say(f"{leftover.path} is in use by now and stays")
    except OSError as error:
        say(f"{leftover.path} stays: {error.strerror or error}")
    return False


def _inside(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _size(path: Path) -> int:
    with suppress(OSError):
        if path.is_dir():
            return sum(each.lstat().st_size for each in path.rglob("*"))
        return path.stat().st_size
    return 0
