"""The editor of the user."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from specchat.errors import Refusal


class NoEditor(Refusal):
    """The editor cannot be started or did not do well; the text names it."""


def editor_name(environ: Mapping[str, str] = os.environ) -> str:
    """A command line: VISUAL, else EDITOR, else what the system has."""
    return environ.get("VISUAL") or environ.get("EDITOR") or ("notepad" if sys.platform == "win32" else "vi")


def edit(path: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Open a file in the editor and wait for its end. Raises NoEditor."""
    name = editor_name(environ)
    try:
        code = subprocess.run([*shlex.split(name), str(path)], check=False).returncode
    except (OSError, ValueError) as error:  # also for a quote that does not end
        raise NoEditor(f"no editor {name}: {getattr(error, 'strerror', None) or error}; set EDITOR") from error
    if code != 0:
        raise NoEditor(f"{name} ended with {code}")
