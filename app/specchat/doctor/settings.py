"""Whether the settings can be used, as `specchat config check` sees them, and what they say of the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from specchat.config.checking import file_problems
from specchat.doctor.finding import Finding, note, ok, problem
from specchat.errors import UsageError, in_one_line
from specchat.folders import settings_path
from specchat.offline import offline_by
from specchat.settings.endpoints import load_endpoints
from specchat.settings.file import SettingsFile
from specchat.settings.reading import project_settings
from specchat.settings.text import SettingsError
from specchat.settings.variables import examined, unknown_variables

_CHECK = "settings"


def check_settings(environ: Mapping[str, str], folder: Path) -> Iterator[Finding]:
    """A line for everything that is wrong or ignored, else one for the file."""
    found = list(_troubles(environ, folder))
    yield from found
    if not found:
        file = settings_path(environ)
        yield ok(_CHECK, f"{file}{'' if file.exists() else ' is not there, so all is as built in'}")


def known_endpoints(environ: Mapping[str, str]) -> Sequence[str]:
    """The endpoints that the settings name, each with its host; none where they cannot be read."""
    try:
        known = load_endpoints(SettingsFile(settings_path(environ)))
    except SettingsError:
        return []
    return [f"{name} ({endpoint.told})" for name, endpoint in known.items()]


def why_offline(environ: Mapping[str, str]) -> str:
    """Why nothing may be fetched; "" where it may. What is wrong forbids it too."""
    try:
        switch = offline_by(environ)
    except UsageError as error:
        return in_one_line(error)
    return f"specchat is offline by {switch}" if switch else ""


def _troubles(environ: Mapping[str, str], folder: Path) -> Iterator[Finding]:
    for line in file_problems(SettingsFile(settings_path(environ))):
        yield problem(_CHECK, line, "specchat config edit")
    for line in examined(environ)[1]:
        yield problem(_CHECK, line, "give it such a value, or unset it")
    for line in (*project_settings(environ, folder)[1].values(), *unknown_variables(environ)):
        yield note(_CHECK, line)
