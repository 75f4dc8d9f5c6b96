"""All settings of a run: flags, variables, the project's file and the user's, read once at its beginning."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchat.folders import settings_path, trusted_path
from specchat.settings.file import SettingsFile
from specchat.settings.flags import flag_layer
from specchat.settings.keys import Place, Settings
from specchat.settings.layers import Layer, Resolved, Source, only, resolved
from specchat.settings.project import NAME, find_project, project_layer, read_project
from specchat.settings.text import SettingsError
from specchat.settings.trust import Trust
from specchat.settings.variables import variable_layer

_MOST_NAMED = 4  # keys that a line names


@dataclass(frozen=True, slots=True)
class Chosen:
    """The settings of a run, and what there is to say about where they come from."""

    resolved: Resolved
    stored: Settings  # what the user's file alone says: what is changed later is written there
    file: SettingsFile
    notices: tuple[str, ...] = ()  # a line for whatever was ignored
    problem: SettingsError | None = None  # why the user's file could not be used

    @property
    def settings(self) -> Settings:
        return self.resolved.settings

    def settings_for(self, target: str) -> Settings:
        """The settings with a target model loaded, for which some of them may have been chosen."""
        return self.settings.chosen_for(target, self.resolved.decided)


def read_settings(
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    folder: Path,
    takes: Callable[[Place], bool] = lambda place: True,
) -> Chosen:
    """The settings that hold in a folder. A command that takes only some has the others as they are built in.

    Raises UsageError for wrong flags and variables.
    """
    file, problem = SettingsFile(settings_path(environ)), None
    user, notices = Layer(Source.USER, {}, {}), []
    stored = Settings()
    try:
        stored = file.load()
        notices += file.warnings
        user = Layer(Source.USER, file.known, dict.fromkeys(file.known, str(file.path)))
    except SettingsError as error:
        problem = error
    project, unused = project_settings(environ, folder)
    notices += told(unused)
    flags = flag_layer(given)
    weaker = [only(layer, takes) for layer in (variable_layer(environ), project, user)]
    return Chosen(resolved([flags, *weaker]), stored, file, tuple(notices), problem)


def told(unused: Mapping[str, str]) -> list[str]:
    """At most one line on what a project asks in vain, which every command would say again."""
    if len(unused) < 2:
        return list(unused.values())
    names = ", ".join(list(unused)[:_MOST_NAMED]) + (", ..." if len(unused) > _MOST_NAMED else "")
    return [f"the settings of this project that are not used: {names}; specchat config check says why"]


def project_settings(environ: Mapping[str, str], folder: Path) -> tuple[Layer, dict[str, str]]:
    """The settings of the project that a folder belongs to, and by key a line on each that is not used."""
    path = project_path(folder)
    if path is None:
        return Layer(Source.PROJECT, {}, {}), {}
    try:
        project = read_project(path)
    except SettingsError as error:
        return Layer(Source.PROJECT, {}, {}), {NAME: f"{error}; it is ignored"}
    return project_layer(project, is_trusted=trust_in(environ).has(project))


def working_folder() -> Path:
    """The folder that a command is called in; the home folder where that was deleted meanwhile."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()


def project_path(folder: Path) -> Path | None:
    """The project's file that holds for a folder, whether it can be used or not."""
    return find_project(Path(os.path.realpath(folder)), Path(os.path.realpath(Path.home())))


def trust_in(environ: Mapping[str, str]) -> Trust:
    """Which files of projects are trusted."""
    return Trust(trusted_path(environ))
