"""Which files of projects the user has looked at and trusts: by place and content, so that a change asks again."""

from __future__ import annotations

import json
import os
from pathlib import Path

from specchat.errors import Refusal
from specchat.settings.file import write_private
from specchat.settings.project import ProjectFile


class NotKept(Refusal):
    """The list of what is trusted cannot be written; the text says why."""


class Trust:
    """The list of trusted files, in a file of its own. One that cannot be read trusts nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, project: ProjectFile) -> bool:
        """Whether a file with just this content is trusted at its place."""
        return self._read().get(_place(project.path)) == project.sha256

    def add(self, project: ProjectFile) -> None:
        """Trust a file as it is now. Raises NotKept."""
        self._write({**self._read(), _place(project.path): project.sha256})

    def remove(self, path: Path) -> bool:
        """Trust what is at a place no longer; whether it was trusted. Raises NotKept."""
        known = self._read()
        if known.pop(_place(path), None) is None:
            return False
        self._write(known)
        return True

    def _read(self) -> dict[str, str]:
        try:
            known = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return known if isinstance(known, dict) else {}

    def _write(self, known: dict[str, str]) -> None:
        try:
            write_private(self.path, json.dumps(known, indent=1).encode())
        except OSError as error:
            raise NotKept(f"cannot write {self.path}: {error.strerror or error}") from error


def _place(path: Path) -> str:
    """Where a file is, links of folders followed: its own name is no link, or it would not be read."""
    return os.path.join(os.path.realpath(path.parent), path.name)
