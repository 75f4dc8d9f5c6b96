"""What stands in the prompt box, in a file of this process: the next start has it, though this one was killed."""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from specchat.partfile import locked
from specchat.transfer import DownloadError

_PATTERN = "unsent-*.txt"


class Unsent:
    """One file beside the store of chats, only for the user's eyes. Nothing here raises OSError."""

    def __init__(self, store: Path) -> None:
        """`store` is the path of the store."""
        self._folder = store.parent
        self._path = self._folder / f"unsent-{secrets.token_hex(6)}.txt"
        self._owned = ExitStack()
        self._is_owned = False
        self._lock = threading.Lock()
        self._text = self._written = ""

    def take_up(self) -> str:
        """What processes that are gone had not sent; their files go away with it."""
        found = []
        for path in sorted(self._folder.glob(_PATTERN)):
            with suppress(OSError, DownloadError), locked(_lock_of(path), "in use"):  # else its process lives
                found.append(path.read_text(encoding="utf-8", errors="replace"))
                path.unlink()
        return "\n".join(text for text in found if text)

    def keep(self, text: str) -> None:
        """Write the text, or no longer any. Waits for the disk; of several texts at once the last one stays."""
        self._text = text
        with self._lock, suppress(OSError, DownloadError):
            text = self._text
            if text == self._written:
                return
            if not text:
                self._path.unlink(missing_ok=True)
            else:
                self._own()
                beside = self._path.with_suffix(".new")
                with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                    file.write(text.encode("utf-8", "replace").decode())
                os.replace(beside, self._path)
            self._written = text

    def close(self) -> None:
        """Let go of the file; it stays where something is in it."""
        with suppress(OSError):
            self._owned.close()

    def _own(self) -> None:
        if not self._is_owned:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owned.enter_context(locked(_lock_of(self._path), "in use"))
            self._is_owned = True


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")
