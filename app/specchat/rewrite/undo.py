"""Writing so that it can be taken back: both contents are kept before the first byte of a file changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from specchat.attachments import label
from specchat.errors import InputRefused
from specchat.rewrite.disk import Place, place_of
from specchat.rewrite.errors import ChangedOnDisk, NotKept, NotWritten
from specchat.rewrite.journal import MOST_BYTES, ORPHAN_S, Entry, Journal, Past, State, digest_of, new_id
from specchat.rewrite.source import SourceFile
from specchat.rewrite.three_way import Merged, merge_three
from specchat.rewrite.write import contents, finish_torn, remove_part, replace_contents, torn

_ENTRY_BYTES = 8192  # at most, with what the disk needs for a name
_UNFINISHED = (State.PENDING, State.OVERWRITING)
KEEP_S = 30 * 86400.0  # how long a write can be taken back, unless asked otherwise


class ChangedSince(ChangedOnDisk):
    """The file was changed after the write that is to be taken back; `merged` is the file with that write taken out."""

    def __init__(self, entry: Entry, merged: Merged | None) -> None:
        name = label(entry.named)
        if merged is None:
            way_out = "it cannot be merged"
        elif merged.conflicts:
            way_out = f"a merge leaves {merged.conflicts} conflict{'s' if merged.conflicts > 1 else ''}"
        else:
            way_out = "a merge is possible without conflicts"
        super().__init__(f"{name} changed since it was written; {way_out}; nothing was written")
        self.entry = entry
        self.merged = merged


class UndoStore:
    """The writes of a user, and the way back. Every call first settles what a killed process left."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._journal = Journal(folder)
        self._clock = clock

    def save(self, source: SourceFile, data: bytes, title: str = "") -> Entry | None:
        """Put `data` into the file that was read as `source`; None where it holds that already.

        Raises ChangedOnDisk and NotWritten; the file is then as it was. ValueError for standard input.
        """
        if source.place is None:
            raise ValueError("standard input cannot be written")
        self.settle()
        return None if data == source.data else self._write(source.place, source.data, data, title, None)

    def check_room(self, place: Place, data: bytes) -> None:
        """Find out before the model works whether a file and one like it can be kept. Raises NotKept."""
        try:
            self._journal.check_room(2 * len(data) + _ENTRY_BYTES)
        except OSError as error:
            raise NotKept(label(str(place.named)), error) from error

    def undo(self, wanted: str | None = None) -> Entry:
        """Take back a write, the last one where none is named by its id or the beginning of it; the entry of that.

        Raises InputRefused for an id that names none, ChangedSince, ChangedOnDisk and NotWritten.
        """
        entry = self._find(wanted)
        place = _place(entry)
        present = self._present(entry, place)
        old = self._old(entry, present)
        if digest_of(present) != entry.new:
            raise self._changed_since(entry, present)
        return self._write(place, present, old, entry.title, entry.id)

    def restore(self, entry: Entry) -> Entry:
        """Put back what stood before a write, whatever the file holds by now: that is kept in its turn.

        Raises as `undo` does, but for ChangedSince.
        """
        place = _place(entry)
        present = self._present(entry, place)
        return self._write(place, present, self._old(entry, present), entry.title, entry.id)

    def merge_back(self, changed: ChangedSince) -> Entry:
        """Write the merge that `undo` offered. Raises as `undo` does, ChangedSince also where it offers another one."""
        place = _place(changed.entry)
        present = self._present(changed.entry, place)
        again = self._changed_since(changed.entry, present)
        if again.merged is None or again.merged != changed.merged:
            raise again
        return self._write(place, present, again.merged.data, changed.entry.title, changed.entry.id)

    def past(self) -> list[Past]:
        """The writes that are known, the newest first."""
        self.settle()
        entries = self._journal.entries()
        undone = {entry.undoes for entry in entries if entry.state is State.DONE}
        return [Past(entry, entry.id in undone) for entry in entries if entry.state in (State.DONE, State.UNCLEAR)]

    def copy_path(self, entry: Entry) -> Path:
        """Where the contents before a write are kept."""
        return self._journal.folder / "copies" / entry.old

    def forget(self, entry: Entry) -> None:
        """Drop a write, so that it cannot be taken back."""
        try:
            self._journal.drop(entry)
        except OSError as error:
            raise NotWritten(f"cannot forget {entry.id}: {error.strerror or error}") from error
        self._journal.sweep(self._clock())

    def prune(self, older_than_s: float = KEEP_S) -> int:
        """Forget the writes of that age, and the copies that no other needs; how many writes."""
        self.settle()
        now = self._clock()
        forgotten = 0
        for entry in self._journal.entries():
            # A younger one that is not finished may be at work in another process.
            age = max(older_than_s, ORPHAN_S) if entry.state in _UNFINISHED else older_than_s
            if now - entry.written > age:
                try:
                    self._journal.drop(entry)
                    forgotten += 1
                except OSError:
                    continue
        self._journal.sweep(now)
        return forgotten

    def settle(self) -> None:
        """Find out how far interrupted writes came, and complete half of one. Never raises."""
        for entry in self._journal.entries():
            if entry.state in _UNFINISHED:
                try:
                    with self._journal.claimed(entry.id) as mine:
                        self._settle(mine)
                except (OSError, ValueError, ChangedOnDisk, NotWritten):
                    continue  # the disk is full, or not there; the next call tries again

    def _settle(self, entry: Entry | None) -> None:
        if entry is None or entry.state not in _UNFINISHED:
            return
        place = _place(entry)
        present = contents(place, MOST_BYTES)
        remove_part(place, entry.part)
        old, new = self._journal.copy(entry.old), self._journal.copy(entry.new)
        if present is None or old is None or new is None:
            state = State.UNCLEAR
        elif present == old:
            self._journal.drop(entry)
            return
        elif entry.state is State.OVERWRITING and torn(present, old, new):
            finish_torn(place, present, new)
            state = State.DONE
        else:
            state = State.DONE if present == new else State.UNCLEAR
        self._journal.put(replace(entry, state=state))

    def _write(self, place: Place, old: bytes, new: bytes, title: str, undoes: str | None) -> Entry:
        with ExitStack() as stack:
            try:
                entry = Entry(
                    id=new_id(),
                    named=str(place.named),
                    real=str(place.real),
                    written=self._clock(),
                    old=self._journal.keep(old),
                    new=self._journal.keep(new),
                    title=title,
                    undoes=undoes,
                    state=State.PENDING,
                )
                stack.enter_context(self._journal.claimed(entry.id))
                self._journal.put(entry)
            except OSError as error:
                raise NotKept(label(str(place.named)), error) from error
            overwriting = replace(entry, state=State.OVERWRITING)
            try:
                replace_contents(place, old, new, entry.part, lambda: self._journal.put(overwriting))
            except BaseException:
                with suppress(OSError, ValueError, ChangedOnDisk, NotWritten):
                    self._refused(entry, place, new)
                raise
            done = replace(entry, state=State.DONE)
            with suppress(OSError):  # the file is written; the next call finds that out
                self._journal.put(done)
            return done

    def _refused(self, entry: Entry, place: Place, new: bytes) -> None:
        """Tidy up after a write that failed, perhaps in the middle of putting bytes in place."""
        try:
            written = contents(place, MOST_BYTES) == new
        except ChangedOnDisk:
            written = False
        present = next((each for each in self._journal.entries() if each.id == entry.id), entry)
        if written or present.state is State.OVERWRITING:
            self._settle(present)
        else:
            self._journal.drop(entry)

    def _find(self, wanted: str | None) -> Entry:
        past = self.past()
        if wanted is None:
            fitting = [each.entry for each in past if not each.undone and each.entry.undoes is None][:1]
            problem = "there is nothing to undo"
        else:
            fitting = [each.entry for each in past if wanted and each.entry.id.startswith(wanted.lower())]
            problem = f"{label(wanted)} names {'several writes' if fitting else 'no write'}"
        if len(fitting) != 1:
            raise InputRefused(f"{problem}; nothing was written")
        return fitting[0]

    def _old(self, entry: Entry, present: bytes) -> bytes:
        old = self._journal.copy(entry.old)
        if old is None:
            raise InputRefused(f"the copy of {label(entry.named)} before {entry.id} is lost; nothing was written")
        if old == present:
            raise InputRefused(f"{label(entry.named)} is already as it was before {entry.id}")
        return old

    def _present(self, entry: Entry, place: Place) -> bytes:
        present = contents(place, MOST_BYTES)
        if present is None:
            raise ChangedOnDisk(f"{label(entry.named)} is gone; what it held is in {self.copy_path(entry)}")
        return present

    def _changed_since(self, entry: Entry, present: bytes) -> ChangedSince:
        base, old = self._journal.copy(entry.new), self._journal.copy(entry.old)
        if base is None or old is None:
            return ChangedSince(entry, None)
        return ChangedSince(entry, merge_three(base, present, old, ("the file now", f"before {entry.id}")))


def _place(entry: Entry) -> Place:
    """Where the file of an entry stands now."""
    name = label(entry.named)
    try:
        place = place_of(Path(entry.named))
    except OSError as error:
        raise ChangedOnDisk(f"cannot find {name}: {error.strerror or error}; nothing was written") from error
    if str(place.real) != entry.real:
        raise ChangedOnDisk(f"{name} leads to another file than it did; nothing was written")
    return place


__all__ = ["KEEP_S", "ChangedSince", "Past", "UndoStore"]
