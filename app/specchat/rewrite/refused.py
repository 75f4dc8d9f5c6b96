"""What models wrote and rewrites refused: kept as files in the state folder, so that somebody can take from it.

It holds text of the user's files, so nobody else may read it. Only the last ones are kept, and not for ever.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from specchat.rewrite.disk import Folder, Place, create, private_folder
from specchat.rewrite.errors import OutputRefused
from specchat.rewrite.journal import new_id

if TYPE_CHECKING:  # loads the engine, which no screen needs
    from specchat.rewrite.outcome import Outcome

KEEP_S = 30 * 86400.0
MOST = 20  # files
_LONGEST_NAME = 60  # characters
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class RefusedStore:
    """Files in a folder, which is made when something is put there."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time) -> None:
        self.folder = folder
        self._clock = clock

    def put(self, place: Place | None, data: bytes) -> Path | None:
        """Keep what a file was not given; None where that is nothing, or cannot be kept."""
        if not data:
            return None
        name = f"{new_id()}-{_plain('text' if place is None else place.named.name)}"
        try:
            with private_folder(self.folder) as folder:
                create(folder, name, data)
                with suppress(OSError):  # another process forgets, too
                    self._forget(folder, KEEP_S, MOST)
        except OSError:
            return None
        return self.folder / name

    def prune(self, older_than_s: float = KEEP_S) -> None:
        """Forget what has that age. Never raises."""
        if self.folder.is_dir():
            with suppress(OSError), private_folder(self.folder) as folder:
                self._forget(folder, older_than_s, MOST)

    def _forget(self, folder: Folder, older_than_s: float, most: int) -> None:
        """What is too old, and of the rest all but the last ones; what killed processes left counts as the others."""
        written = {name: folder.stat(name).st_mtime for name in os.listdir(folder.path)}
        for number, name in enumerate(sorted(written, key=written.__getitem__, reverse=True)):
            if number >= most or self._clock() - written[name] > older_than_s:
                folder.remove(name)


def unused(outcome: Outcome) -> bytes:
    """The file with every change; what the model wrote where that is no file."""
    if outcome.complete and any(line.strip() for line in outcome.lines):
        with suppress(OutputRefused):
            return outcome.review.result([hunk.id for hunk in outcome.review.hunks])
    elif outcome.complete and not outcome.written.stripped:  # the marks around nothing
        return b""
    return outcome.record.text.encode("utf-8", "replace")


def _plain(name: str) -> str:
    """A name that every shell takes as it is; its end, which editors know the language by, stays."""
    return _ODD.sub("_", name)[-_LONGEST_NAME:].lstrip(".") or "text"
