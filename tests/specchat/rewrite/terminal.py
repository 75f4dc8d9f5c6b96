"""A program on a terminal of its own: what it shows, and keys for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Self

MOST_S = 60.0  # without a sign of life


class Terminal:
    """One run of the command line on a scripted model, see `program`."""

    def __init__(self, folder: Path, env: Mapping[str, str], *words: str, columns: int = 80) -> None:
        self.screen = ""
        self._read = 0  # characters of the screen that were waited for
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.specchat.rewrite.program", *words],
            cwd=folder,
            env=dict(env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it as it does a person's
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def until(self, text: str) -> str:
        """What is shown up to a text, behind what was waited for before."""
        while (at := self.screen.find(text, self._read)) < 0:
            if not self._more():
                raise AssertionError(f"it ended without {text!r}:\n{self.screen}")
        begun, self._read = self._read, at + len(text)
        return self.screen[begun : self._read]

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        """Wait until it ends; its exit code."""
        while self._more():
            pass
        return self.process.wait(MOST_S)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], MOST_S)
        if not ready:
            raise AssertionError(f"it waits for ever:\n{self.screen}")
        chunk = b""
        with contextlib.suppress(OSError):  # how a terminal says that the other side has gone
            chunk = os.read(self._ours, 4096)
        self.screen += chunk.decode(errors="replace").replace("\r\n", "\n")
        return bool(chunk)
