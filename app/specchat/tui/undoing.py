"""Writing files so that it can be taken back, and `/undo`. Disks may be slow: all of it is done beside the screen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on, work

from specchat.attachments import label, typed_path
from specchat.errors import InputRefused, Refusal, in_one_line
from specchat.folders import refused_folder, unfinished_folder
from specchat.rewrite.errors import ChangedOnDisk
from specchat.tui.actions import Actions
from specchat.tui.screens.question import Question
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.undo import MergeReview, UndoScreen

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.rewrite.journal import Entry
    from specchat.rewrite.undo import ChangedSince, Past, UndoStore
    from specchat.tui.reviewed import ReviewedFile


class UndoActions(Actions):
    """What was written, and the way back."""

    folder: Path
    _written: list[str]  # ids of what this session wrote, the last one last

    @work(thread=True, group="undo", exit_on_error=False)
    def tidy_undo(self) -> None:
        """Find out what killed processes left half done, and forget what is too old to be taken back or looked at."""
        from specchat.rewrite.refused import RefusedStore

        try:
            store = _store()
            store.settle()
            store.prune()
            RefusedStore(refused_folder()).prune()
            if unfinished_folder().is_dir():  # else the engine is not loaded for it
                from specchat.rewrite.unfinished import UnfinishedStore

                UnfinishedStore(unfinished_folder()).prune()
        except Exception as error:
            self._say(f"the copies to undo with could not be tidied: {in_one_line(error)}", "warning")

    @on(ReviewScreen.Write)
    def _write_rewrite(self, message: ReviewScreen.Write) -> None:
        self._save(message.screen, message)

    @work(thread=True, exclusive=True, group="save", exit_on_error=False)
    def _save(self, screen: ReviewScreen, message: ReviewScreen.Write) -> None:
        """The screen hears of each file when it is written."""
        from specchat.rewrite.refused import RefusedStore

        store = _store()
        for selected in message.files:
            source = selected.review.source
            try:
                entry = store.save(source, selected.result(), screen.instruction)
            except ChangedOnDisk as error:
                kept = RefusedStore(refused_folder()).put(source.place, selected.result())
                said = "" if kept is None else f"; what the model wrote is in {kept}"
                self._from_thread(screen.refused, f"{error}{said}", selected.number)
            except Refusal as error:
                self._from_thread(screen.refused, str(error), selected.number)
            else:
                if entry is not None:
                    self._from_thread(self._remember, entry.id)
                self._from_thread(screen.wrote, selected.number, "" if entry is None else entry.id)

    def action_undo(self, name: str = "") -> None:
        """Take back the last write of this session, or of a file; a list where there is none."""
        if name:
            self._undo_named(name)
        elif self._written:
            self._undo(self._written[-1])
        else:
            self._list_undo()

    @work(thread=True, group="undo", exit_on_error=False)
    def _undo_named(self, name: str) -> None:
        from specchat.rewrite.taking_back import id_of

        try:
            past = _store().past()
            known = any(each.entry.id.startswith(name.lower()) for each in past)
            self._take_back(id_of(past, name if known else str(typed_path(self.folder, name))))
        except InputRefused:
            self._say(f"{label(name)} is neither the id of a write nor a file with one to take back", "warning")
        except Exception as error:
            self._say(in_one_line(error), "error")

    @work(thread=True, group="undo", exit_on_error=False)
    def _undo(self, entry_id: str) -> None:
        self._take_back(entry_id)

    @work(thread=True, group="undo", exit_on_error=False)
    def _list_undo(self) -> None:
        try:
            past = _store().past()
        except Exception as error:
            self._say(in_one_line(error), "error")
        else:
            self._from_thread(self._show_list, past)

    def _show_list(self, past: list[Past]) -> None:
        if not past:
            self.tell("nothing was rewritten yet, so nothing can be taken back")
            return

        def picked(entry_id: str | None) -> None:
            if entry_id is not None:
                self._undo(entry_id)

        self.push_screen(UndoScreen(past), picked)

    def _take_back(self, entry_id: str) -> None:
        """Called on a thread."""
        from specchat.rewrite.undo import ChangedSince

        try:
            self._from_thread(self._taken_back_to, _store().undo(entry_id))
        except ChangedSince as changed:
            self._from_thread(self._offer_merge, changed)
        except Refusal as error:
            self._say(str(error), "error")
        except Exception as error:
            self._say(in_one_line(error), "error")

    def _taken_back_to(self, entry: Entry) -> None:
        self._undone(entry, f"{label(entry.named)} is as it was before {entry.undoes}")

    def _taken_out(self, entry: Entry) -> None:
        """Of a file that was changed since."""
        self._undone(entry, f"{entry.undoes} is taken out of {label(entry.named)}")

    def _undone(self, entry: Entry, done: str) -> None:
        self._written = [each for each in self._written if each != entry.undoes]
        self.tell(f"{done}; /undo {entry.id} brings it back")

    def _offer_merge(self, changed: ChangedSince) -> None:
        """A file was changed since: nothing is written unless the user wants the merge."""
        if changed.merged is None:
            self.tell(str(changed), "error")
            return
        n = changed.merged.conflicts
        marked = f" {n} conflict{'s' if n > 1 else ''} would stand between marks in it." if n else ""
        text = f"{label(changed.entry.named)} was changed since. The write can be taken out of what it is now.{marked}"

        def answered(number: int | None) -> None:
            if number == 1:
                self._review_merge(changed)
            elif number == 2:
                self._merge_back(changed)

        self.push_screen(Question("Take it back?", text, ["Leave it", "Review", "Write the merge"]), answered)

    @work(thread=True, group="undo", exit_on_error=False)
    def _merge_back(self, changed: ChangedSince) -> None:
        try:
            entry = _store().merge_back(changed)
        except Refusal as error:
            self._say(str(error), "error")
        else:
            self._from_thread(self._taken_out, entry)

    @work(thread=True, group="undo", exit_on_error=False)
    def _review_merge(self, changed: ChangedSince) -> None:
        """Hunk by hunk, as any other change."""
        try:
            file = _as_review(changed)
        except Refusal as error:
            self._say(str(error), "error")
        else:
            if file.review.hunks:
                self._from_thread(self.push_screen, MergeReview([file], f"undo of {changed.entry.id}"))
            else:
                self._say("nothing is left of it to take back")

    def _remember(self, entry_id: str) -> None:
        self._written.append(entry_id)

    def _say(self, text: str, severity: str = "information") -> None:
        """Called on a thread."""
        self._from_thread(self.tell, text, severity)

    def _from_thread(self, what: Callable[..., Any], *about: Any) -> None:
        with suppress(RuntimeError):  # the app has ended meanwhile
            self.call_from_thread(what, *about)


def _store() -> UndoStore:
    from specchat.folders import undo_folder
    from specchat.rewrite.undo import UndoStore

    return UndoStore(undo_folder())


def _as_review(changed: ChangedSince) -> ReviewedFile:
    """What a merge would change, as a review. Raises what reading does."""
    from specchat.rewrite.hunks import review
    from specchat.rewrite.source import read_source, source_of
    from specchat.tui.reviewed import ReviewedFile
    from specchat.tui.rewritten import facts_of

    assert changed.merged is not None
    source = read_source(Path(changed.entry.named))
    merged = source_of(changed.merged.data, source.name, None, source.encoding, most_bytes=len(changed.merged.data))
    return ReviewedFile(review(source, merged.texts), facts=facts_of(source))
