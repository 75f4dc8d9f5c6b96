"""Puts the man page into the wheel: share/man/man1/specchat.1, made from the parser while the wheel is built."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPage(BuildHookInterface):  # type: ignore[misc] # its types are not followed: it is there only while a wheel is built
    """The build hook that pyproject.toml names. What it imports must be among the requirements of the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes the page and adds it."""
        sys.path[:0] = [self.root, str(Path(self.root) / "app")]
        from specchat.manual import page

        self._folder = tempfile.mkdtemp()
        path = Path(self._folder) / "specchat.1"
        path.write_text(page() + "\n")
        build_data["shared_data"][str(path)] = "share/man/man1/specchat.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what `initialize` made."""
        shutil.rmtree(self._folder, ignore_errors=True)
