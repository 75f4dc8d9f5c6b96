"""The switch that forbids every fetch: SPECCHAT_OFFLINE, or offline = true in the user's own settings."""

from __future__ import annotations

import os
from collections.abc import Mapping

from specchat.errors import UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import settings_path
from specchat.settings.file import SettingsFile
from specchat.settings.variables import OFFLINE, variable_layer
from specchat.transfer import DownloadError


class Offline(DownloadError):
    """Nothing is fetched, because the user forbids it; the text names the switch."""


class Unclear(Offline):
    """Nothing is fetched, because a wrong file or variable cannot say whether the user forbids it."""

    exit_code = ExitCode.USAGE


def refuse_when_offline(what: str, environ: Mapping[str, str] = os.environ) -> None:
    """Called right before anything is fetched, and reads the switch anew, because the file may change meanwhile.

    Raises Offline, Unclear.
    """
    try:
        switch = offline_by(environ)
    except UsageError as error:
        raise Unclear(f"cannot fetch {what}: {error}") from error
    if switch:
        raise Offline(f"cannot fetch {what}: specchat is offline by {switch}; {OFFLINE}=false allows it once")


def offline_by(environ: Mapping[str, str] = os.environ) -> str:
    """The variable or the file that forbids every fetch; "" where none does. Raises UsageError."""
    said = variable_layer({OFFLINE: environ.get(OFFLINE, "")}).values.get(("offline",))
    if said is not None:
        return OFFLINE if said else ""
    file = SettingsFile(settings_path(environ))
    return str(file.path) if file.load().offline else ""
