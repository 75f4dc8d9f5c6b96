"""What is wrong with the settings of a user, in all places at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from specchat.folders import settings_path
from specchat.settings.endpoints import endpoint_problems
from specchat.settings.file import SettingsFile
from specchat.settings.reading import project_settings, working_folder
from specchat.settings.text import SettingsError, SettingsText
from specchat.settings.variables import examined, unknown_variables


def problems(environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> list[str]:
    """A line for each wrong value and each unknown name, of the user's file, the project's file and the variables."""
    _, wrong = examined(environ)
    _, unused = project_settings(environ, folder or working_folder())
    return [*file_problems(SettingsFile(settings_path(environ))), *unused.values(), *wrong, *unknown_variables(environ)]


def file_problems(file: SettingsFile) -> list[str]:
    """A line for each wrong value and each unknown key of the user's file."""
    try:
        text = file.read()
        if text is None:
            return []
        contents = SettingsText.examine(file.path, text)
    except SettingsError as error:
        return [str(error)]
    return [*map(str, contents.wrong), *contents.warnings().values(), *endpoint_problems(contents)]
