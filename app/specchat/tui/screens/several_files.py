"""The picker of a rewrite: as the one of the composer, but Space marks files, and all of them are handed back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textual import events, on
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList

from specchat.attachments import find_files, is_file, is_typed_path, label
from specchat.tui.screens.files import FileSearch, Find, drawn
from specchat.tui.screens.line import Line


class MarkingLine(Line):
    """A line in which a blank marks a file, but for one in a path."""

    @dataclass
    class MarkWanted(Message):
        """A blank was typed that is part of no path."""

    async def _on_key(self, event: events.Key) -> None:
        if event.character == " " and not is_typed_path(self.value):
            event.stop()
            event.prevent_default()
            self.post_message(self.MarkWanted())
            return
        await super()._on_key(event)


class FilesPicker(FileSearch[list[Path] | None]):
    """Hands back the marked files in the order in which they were marked, or else the one that Enter chose."""

    TITLE_SHOWN = "Find files"
    KEYS_SHOWN = "Space mark  Enter take  Tab complete  Esc leave"
    LINE = MarkingLine

    def __init__(self, root: Path, find: Find = find_files) -> None:
        super().__init__(root, find)
        self._marks: dict[Path, None] = {}
        self._said = ""

    def take(self, path: Path) -> None:
        """This one and those that are marked; of a list with marks these alone."""
        chosen = self._marks if self._marks and not is_typed_path(self._query) else {**self._marks, path: None}
        self.dismiss(list(chosen))

    def drawn(self, query: str, name: str) -> Content:
        """With a sign that says whether it is marked."""
        return Content.assemble(("* ", "bold") if self._path(name) in self._marks else "  ", drawn(query, name))

    @on(MarkingLine.MarkWanted)
    def _mark(self, message: MarkingLine.MarkWanted) -> None:
        """Mark a file, or take its mark away, and go to the next."""
        message.stop()
        options, name = self.query_one(OptionList), self._marked()
        if name is None or options.highlighted is None or not self._is_current():
            self.app.bell()
        elif not is_file(path := self._path(name)):
            self._say(f"{label(name)} is gone, or no file")
        else:
            if path in self._marks:
                del self._marks[path]
            else:
                self._marks[path] = None
            options.replace_option_prompt_at_index(options.highlighted, self.drawn(self._query, name))
            if options.highlighted + 1 < options.option_count:
                options.action_cursor_down()
            self._say(self._said)

    def _say(self, text: str) -> None:
        self._said = text
        super()._say(f"{text}; {len(self._marks)} marked" if self._marks else text)
