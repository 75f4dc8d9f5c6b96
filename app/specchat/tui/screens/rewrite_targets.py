"""Which files are named in a line, what is known of them, and what their rewrite would take."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import get_current_worker

from specchat.attachments import label
from specchat.tui.rewrite_words import (
    MOST_FILES,
    Meant,
    RewriteWanted,
    Target,
    files_meant,
    fitting_files,
    meant_in_words,
    quoted,
    unfinished_in_words,
)
from specchat.tui.screens.line import Line
from specchat.tui.screens.several_files import FilesPicker
from specchat.tui.widgets.request import FilesLine, Request

if TYPE_CHECKING:
    from specchat.rewrite.partial import Partial


class TargetsAsk(ModalScreen[RewriteWanted | None]):
    """The files of a rewrite that is being asked for: two lines to type in, and one that tells of them."""

    @dataclass
    class PriceWanted(Message):
        """What would this take?"""

        screen: TargetsAsk
        wanted: RewriteWanted

    @dataclass
    class Found(Message):
        """The files that fit a pattern."""

        pattern: str
        paths: list[Path]

    def __init__(self, root: Path, request: Request) -> None:
        super().__init__()
        self._root = root
        self._request = request
        self._known: dict[str, Path] = {}  # paths that cannot be typed, by what the line shows
        self._fitting: dict[str, list[Path]] = {}
        self._looking = ""  # for files that fit this pattern
        self._waits = False  # Enter came before a pattern was looked up
        self._priced: tuple[Target, ...] = ()
        self._price = ("", False)  # and whether something is wrong
        self._unfinished: Partial | None = None  # rewrite of the only file

    @property
    def meant(self) -> Meant:
        """The files that are named now."""
        return files_meant(self._line("files").value, self._root, self._known, self._fitting, self._line("lines").value)

    @on(FilesLine.FileWanted)
    def _look_for_one(self, message: FilesLine.FileWanted) -> None:
        message.stop()

        def picked(paths: list[Path] | None) -> None:
            if paths:
                self._put(" ".join([self._line("files").value, *map(self._word_for, paths)]).strip())
                self._request.begin()

        self.app.push_screen(FilesPicker(self._root), picked)

    def _word_for(self, path: Path) -> str:
        """What the line shows for a file; one that cannot be typed is remembered under it."""
        shown = str(path.relative_to(self._root) if path.is_relative_to(self._root) else path)
        word = label(shown)
        if word != shown or ('"' in word and "'" in word):
            word = word.replace('"', "\u2033")
            self._known[word] = path
        return quoted(word)

    @on(Line.Changed, "#ask-files")
    @on(Line.Changed, "#ask-lines")
    def _typed(self, message: Line.Changed) -> None:
        message.stop()
        self._waits = False
        self._look()

    def _look(self) -> None:
        """Find out what is meant now, and what it would take."""
        meant = self.meant
        if meant.sought and not self._looking:
            self._looking = meant.sought
            self._find(meant.sought)
        if not meant.sought and not meant.problem and meant.targets and meant.targets != self._priced:
            self._priced, self._price, self._unfinished = meant.targets, ("", False), None
            self.post_message(self.PriceWanted(self, RewriteWanted(meant.targets, self._request.text)))
        self._tell(meant)

    def _tell(self, meant: Meant) -> None:
        lines, is_problem = meant_in_words(meant, self._root), False
        if meant.targets == self._priced:
            price, is_problem = self._price
            lines += [price, unfinished_in_words(self._unfinished)]
        self._say("\n".join(filter(None, lines)), is_problem=is_problem)

    @work(thread=True, exit_on_error=False)
    def _find(self, pattern: str) -> None:
        worker = get_current_worker()
        found = fitting_files(pattern, self._root, lambda: not worker.is_cancelled)
        self.post_message(self.Found(pattern, found[: MOST_FILES + 1]))

    @on(Found)
    def _found(self, message: Found) -> None:
        self._looking = ""
        self._fitting[message.pattern] = message.paths
        self._look()
        if self._waits and not self.meant.sought:
            self._go_on()

    def tell_price(
        self, targets: tuple[Target, ...], text: str, unfinished: Partial | None = None, *, is_problem: bool
    ) -> None:
        """What the rewrite of these would take, or what is wrong with them; what there is to go on with."""
        if targets == self._priced:
            self._price, self._unfinished = (text, is_problem), unfinished
            self._tell(self.meant)

    @abstractmethod
    def _go_on(self) -> None:
        """Everything may be said now."""

    def _line(self, part: str) -> Line:
        return self.query_one(f"#ask-{part}", Line)

    def _put(self, text: str) -> None:
        line = self._line("files")
        line.value = text
        line.cursor_position = len(line.value)

    def _say(self, text: str, *, is_problem: bool = False) -> None:
        about = self.query_one("#ask-about", Static)
        about.update(Content(text))
        about.set_class(is_problem, "-problem")
