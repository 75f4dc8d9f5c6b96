"""Rewrites that were cut off, kept in the state folder until somebody goes on with them: one for each file.

The file's path is known by its SHA-256 only. What is kept holds text of the file, so nobody but the user may read it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, time

from specchat.errors import InputRefused
from specchat.rewrite.disk import PART, Place, create, private_folder, read_all, regular
from specchat.rewrite.long import AnyRewriting
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.partial import Partial
from specchat.rewrite.terms import Terms

KEEP_S = 30 * 86400.0
EVERY_S = 15.0  # of work that a power cut may cost
_MOST_BYTES = 64 << 20


class UnfinishedStore:
    """Partial rewrites in a folder, which is made when something is put there."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time) -> None:
        self.folder = folder
        self._clock = clock

    def put(self, place: Place, partial: Partial) -> bool:
        """Keep what was written so far, in the place of what was kept before; False where that cannot be done."""
        try:
            with private_folder(self.folder) as folder:
                create(folder, _name(place), json.dumps(partial.as_json()).encode())
        except OSError:
            return False
        return True

    def get(self, place: Place) -> Partial | None:
        """What is kept of a file; None for nothing that can be used."""
        if not self.folder.is_dir():
            return None
        try:
            with private_folder(self.folder) as folder:
                handle = folder.open(_name(place), os.O_RDONLY)
                try:
                    regular(handle)
                    data = read_all(handle, _MOST_BYTES)
                finally:
                    os.close(handle)
            return Partial.from_json(json.loads(data))
        except (OSError, ValueError, RecursionError, InputRefused):
            return None

    def drop(self, place: Place) -> None:
        """Forget a file's."""
        if self.folder.is_dir():
            with suppress(OSError), private_folder(self.folder) as folder:
                folder.remove(_name(place))

    def prune(self, older_than_s: float = KEEP_S) -> None:
        """Forget what has that age. Never raises."""
        if not self.folder.is_dir():
            return
        with suppress(OSError), private_folder(self.folder) as folder:
            for name in os.listdir(self.folder):
                if name.endswith((".json", PART)) and self._clock() - folder.stat(name).st_mtime > older_than_s:
                    folder.remove(name)


class Keeping:
    """Keeps one rewrite while it runs: at each chunk, and so often that a power cut costs little."""

    def __init__(
        self,
        store: UnfinishedStore,
        rewriting: AnyRewriting,
        terms: Terms | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`terms` are those of the command line, of which the rewrite itself knows its guard rails only."""
        self._store = store
        self._terms = terms
        self._rewriting = rewriting
        self._clock = clock
        self._chunks = rewriting.chunks_done
        self._latest = clock()

    def look(self) -> None:
        """Between two steps: keep it when it is time."""
        due = self._clock() - self._latest >= EVERY_S
        if due or self._rewriting.chunks_done > self._chunks:
            self._chunks, self._latest = self._rewriting.chunks_done, self._clock()
            self._put()

    def broken(self) -> bool:
        """Where it could not come to its end: whether somebody can go on with it."""
        return self._put()

    def end(self, outcome: Outcome) -> bool:
        """Behind the last step: whether somebody can go on with it."""
        place = self._rewriting.source.place
        if not outcome.complete:
            return self._put()
        if place is not None:
            self._store.drop(place)
        return False

    def _put(self) -> bool:
        place, partial = self._rewriting.source.place, self._rewriting.partial()
        if self._terms is not None:
            partial = replace(partial, terms=self._terms.guarded_by(partial.terms.guard))
        return place is not None and partial.lines_done > 0 and self._store.put(place, partial)


def _name(place: Place) -> str:
    return f"{hashlib.sha256(os.fsencode(place.real)).hexdigest()}.json"
