"""What the app does outside of its screen: the editor, the system's clipboard, a file beside the others."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from textual.app import App, SuspendNotSupported

from specchat.console import printable
from specchat.editor import editor_name

_CLIPBOARDS = (("pbcopy",), ("wl-copy",), ("xclip", "-selection", "clipboard"), ("xsel", "-ib"), ("clip.exe",))
_ENDINGS = {
    "python": "py", "py": "py", "javascript": "js", "typescript": "ts", "bash": "sh", "sh": "sh", "rust": "rs",
    "markdown": "md", "md": "md", "json": "json", "toml": "toml", "yaml": "yaml", "html": "html", "css": "css",
    "c": "c", "cpp": "cpp", "java": "java", "go": "go", "sql": "sql",
}  # fmt: skip


def edited(app: App[None], text: str) -> str | None:
    """A text as the user's editor leaves it; None when there is no editor, or it failed."""
    wanted = editor_name()
    try:
        command = shlex.split(wanted)
    except ValueError:  # a quote that does not end
        command = []
    if not command or shutil.which(command[0]) is None:
        app.notify(printable(f"no editor {wanted}: set $EDITOR"), severity="warning", markup=False)
        return None
    descriptor, name = tempfile.mkstemp(suffix=".md", prefix="specchat-")
    path = Path(name)
    try:
        os.close(descriptor)
        path.write_text(text, encoding="utf-8", errors="replace")
        with app.suspend():
            code = subprocess.run([*command, name], check=False).returncode
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n") if code == 0 else None
    except (SuspendNotSupported, OSError) as error:
        app.notify(printable(f"no editor here: {error}"), severity="warning", markup=False)
        return None
    finally:
        path.unlink(missing_ok=True)


def to_system_clipboard(text: str) -> bool:
    """Hand a text to the system's clipboard where a program for that is there; terminals get it by OSC 52 besides."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    for command in _CLIPBOARDS:
        if shutil.which(command[0]) is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                done = subprocess.run(
                    command,
                    input=text.encode(),
                    timeout=2,
                    check=False,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                return done.returncode == 0
    return False


def free_name(folder: Path, language: str) -> Path:
    """A file that is not there yet, named by the language of a block of code."""
    ending = _ENDINGS.get(language.lower(), "txt")
    number = 1
    while (path := folder / f"code-{number}.{ending}").exists():
        number += 1
    return path
