"""The settings that a project brings along: `.specchat.toml` in its folder, written by whoever wrote the project.

Such a file may come with a download. Without trust it changes how a chat is written, and leads to nothing outside its
folder: no command to run, no file elsewhere, no model from the hub.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchat.exactness import INEXACT_RULES
from specchat.model_names import is_path, is_spec
from specchat.settings.allowed import InProject
from specchat.settings.keys import KEYS, OTHER_TABLES, Place, kind_of
from specchat.settings.layers import Layer, Source
from specchat.settings.text import SettingsError, SettingsText, dotted

NAME = ".specchat.toml"
MOST_BYTES = 64 << 10  # of a file of settings, which has some kilobytes
_OF_THE_USER = "belongs into your own settings file alone"
_MODELS = frozenset({("model",), ("guess", "draft")})
_RULE = ("sampling", "rule")


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The file of a project as it was read, once."""

    contents: SettingsText
    sha256: str

    @property
    def path(self) -> Path:
        return self.contents.path


def find_project(folder: Path, home: Path) -> Path | None:
    """The file that holds for a folder: the nearest one, up to the root of the repository or below the home folder.

    Outside both only the folder itself is looked at, because above it others may put files.
    """
    for each in _looked_at(folder, home):
        if os.path.lexists(each / NAME):
            return each / NAME
    return None


def _looked_at(folder: Path, home: Path) -> Iterator[Path]:
    upwards = [folder, *folder.parents]
    repository = next((i for i, each in enumerate(upwards) if os.path.lexists(each / ".git")), None)
    if repository is not None and home not in upwards[: repository + 1]:
        yield from upwards[: repository + 1]
    elif home in upwards:
        yield from upwards[: upwards.index(home)]
    else:
        yield folder


def read_project(path: Path) -> ProjectFile:
    """The file of a project; wrong values are told in it. Raises SettingsError for one that cannot be used."""
    data = _read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(path, "", f"is not UTF-8 text (byte {error.start})") from error
    return ProjectFile(SettingsText.examine(path, text), hashlib.sha256(data).hexdigest())


def project_layer(project: ProjectFile, *, is_trusted: bool) -> tuple[Layer, dict[str, str]]:
    """The settings that the file of a project gives, and by key a line on each that it asks in vain."""
    contents = project.contents
    values: dict[Place, Any] = {}
    unused = {error.key: str(error) for error in contents.wrong}
    unused |= {dotted(place): said for place, said in contents.warnings().items()}
    for place in contents.unknown.keys() & OTHER_TABLES:
        unused[dotted(place)] = f"{contents.where(place)}: {dotted(place)} {_OF_THE_USER}"
    for place, value in contents.known.items():
        if why := _why_not(project, place, value, is_trusted=is_trusted):
            unused[dotted(place)] = f"{contents.where(place)}: {dotted(place)} {why}"
        elif place in _MODELS and isinstance(value, str) and is_path(value):
            values[place] = str(_in_folder(project.path, value))
        else:
            values[place] = value
    return Layer(Source.PROJECT, values, dict.fromkeys(values, str(project.path))), unused


def wants_trust(project: ProjectFile) -> list[str]:
    """What a file could do with trust alone, a line for each such setting."""
    found = []
    for place, value in project.contents.known.items():
        if _why_not(project, place, value, is_trusted=False) and not _why_not(project, place, value, is_trusted=True):
            found.append(f"{dotted(place)} = {value!r}")
    return found


def _why_not(project: ProjectFile, place: Place, value: object, *, is_trusted: bool) -> str:
    allowed = KEYS[kind_of(place)].metadata.get("project", InProject.NO)
    if allowed is InProject.NO:
        return _OF_THE_USER
    if is_trusted:
        return ""
    ask = f"; after a look at it: specchat config trust {project.path}"
    if allowed is InProject.TRUSTED and value is not None:
        return f"is not used, because it runs a command and the file is not trusted{ask}"
    if place == _RULE and value in INEXACT_RULES:
        return f"is not used, because with it text does not follow the model, and the file is not trusted{ask}"
    if place in _MODELS and isinstance(value, str):
        if is_spec(value):
            return f"is not used, because it fetches a model and the file is not trusted{ask}"
        folder = Path(os.path.realpath(project.path.parent))
        if is_path(value) and not Path(os.path.realpath(_in_folder(project.path, value))).is_relative_to(folder):
            return f"is not used, because it leads out of the folder and the file is not trusted{ask}"
    return ""


def _in_folder(path: Path, name: str) -> Path:
    """A file that the file of a project names: from its own folder on."""
    return path.parent / os.path.expanduser(name)


def _read(path: Path) -> bytes:
    """A plain file that is not large. Raises SettingsError."""
    try:
        # No link, which may lead anywhere; and no waiting for a pipe that nobody writes into.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise SettingsError(path, "", "is not a file")
            if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
                raise SettingsError(path, "", "belongs to another user")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(MOST_BYTES + 1)
        finally:
            os.close(handle)
    except OSError as error:
        why = "is a link" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise SettingsError(path, "", why) from error
    if len(data) > MOST_BYTES:
        raise SettingsError(path, "", f"is larger than {MOST_BYTES >> 10} KiB")
    return data
