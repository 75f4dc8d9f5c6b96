"""How specchat came onto this machine, and the command by which its engine is built anew in the same place."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specchat.workers import frozen

ENGINE = "llama-cpp-python"


class Installer(StrEnum):
    """Who put it here."""

    PIP = "pip"
    PIPX = "pipx"
    UV_TOOL = "uv tool"
    UV = "uv"  # an environment that uv made, which has no pip
    STAND_ALONE = "stand-alone build"


@dataclass(frozen=True, slots=True)
class Installation:
    """A place with Python and packages."""

    installer: Installer
    python: str  # the program
    system: str = sys.platform

    def rebuild(self, cmake: str, version: str) -> str:
        """The command that builds the engine anew with options of CMake, for the shell that this system has."""
        wanted = f"{ENGINE}=={version}" if version else ENGINE
        fresh = f"--no-deps --no-binary {ENGINE}"
        python = self._quoted(self.python)
        match self.installer:
            case Installer.PIPX:
                command = f"pipx runpip specchat install --force-reinstall --no-cache-dir {fresh} {wanted}"
            case Installer.UV | Installer.UV_TOOL:
                command = f"uv pip install --python {python} --reinstall --no-cache {fresh} {wanted}"
            case Installer.PIP:
                command = f"{python} -m pip install --force-reinstall --no-cache-dir {fresh} {wanted}"
            case Installer.STAND_ALONE:  # which cannot be changed, so the way is another one beside it
                return self._with_options(cmake, "pipx install --pip-args=--no-cache-dir PATH-OF-THE-SOURCE")
        return self._with_options(cmake, command)

    def _with_options(self, cmake: str, command: str) -> str:
        if not cmake:
            return command
        if self.system == "win32":
            return f'$env:CMAKE_ARGS = "{cmake}"; {command}'
        return f'CMAKE_ARGS="{cmake}" {command}'

    def _quoted(self, text: str) -> str:
        if self.system != "win32":
            return shlex.quote(text)
        return (
            f'& "{text}"' if " " in text and self.installer is Installer.PIP else f'"{text}"' if " " in text else text
        )


def installation(prefix: Path, python: str, system: str = sys.platform, *, is_frozen: bool) -> Installation:
    """What the files that each installer leaves in its environment say."""
    if is_frozen:
        return Installation(Installer.STAND_ALONE, python, system)
    if (prefix / "uv-receipt.toml").exists():
        return Installation(Installer.UV_TOOL, python, system)
    if (prefix / "pipx_metadata.json").exists():
        return Installation(Installer.PIPX, python, system)
    try:
        lines = (prefix / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    made_by_uv = any(line.partition("=")[0].strip() == "uv" for line in lines)
    return Installation(Installer.UV if made_by_uv else Installer.PIP, python, system)


def this_installation() -> Installation:
    """The one that is running."""
    return installation(Path(sys.prefix), sys.executable, is_frozen=frozen())
