"""The `@` picker: letters of a file's name, or a path, become the path of one file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.worker import get_current_worker

from specchat.attachments import complete_path, find_files, fuzzy, is_file, is_typed_path, label, matched, typed_path
from specchat.tui.screens.line import Line

SHOWN = 50  # results at a time; who needs the next one types another letter

Answer = TypeVar("Answer")
Find = Callable[[Path, Callable[[], bool]], list[str]]  # (folder, still wanted?) -> names below it


class FileSearch(ModalScreen[Answer]):
    """Finds a file below a folder while its name is typed, or takes a path. No answer when left."""

    TITLE_SHOWN: ClassVar[str]
    KEYS_SHOWN: ClassVar[str]
    LINE: ClassVar[type[Line]] = Line
    DEFAULT_CSS = """
    FileSearch {
        align: center middle;
        & > Vertical {
            width: 80; max-width: 100%; height: 22; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        Line { margin-bottom: 1; }
        OptionList {
            height: 1fr; border: none; padding: 0; background: $surface;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        OptionList:focus { border: none; }
        #files-state { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("down", "move('cursor_down')", show=False),
        Binding("up", "move('cursor_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
        Binding("tab", "complete", show=False, priority=True),
    ]

    @dataclass
    class Listed(Message):
        """The files of the folder are known."""

        names: list[str]

    @dataclass
    class Found(Message):
        """A search has ended."""

        query: str
        names: list[str]

    def __init__(self, root: Path, find: Find = find_files) -> None:
        super().__init__()
        self._root = root
        self._find = find
        self._names: list[str] | None = None  # None while they are being listed
        self._searching = False
        self._found: FileSearch.Found | None = None  # what the list shows
        self._picked = False  # Enter came before the results of what was typed

    def compose(self) -> ComposeResult:
        """A line to type in, what it finds, and how much that is."""
        box = Vertical()
        box.border_title = self.TITLE_SHOWN
        box.border_subtitle = self.KEYS_SHOWN
        with box:
            yield self.LINE("letters of a name, or a path: /, ~/, ../")
            yield OptionList(markup=False)
            yield Static(id="files-state", markup=False)

    def on_mount(self) -> None:
        """Type at once; the files come when they are known."""
        self.query_one(OptionList).can_focus = False
        self._say("listing the files ...")
        self._list()

    @work(thread=True, group="list", exit_on_error=False)
    def _list(self) -> None:
        worker = get_current_worker()
        self.post_message(self.Listed(self._find(self._root, lambda: not worker.is_cancelled)))

    @work(thread=True, group="search", exit_on_error=False)
    def _search(self, query: str, names: list[str]) -> None:
        found = complete_path(self._root, query) if is_typed_path(query) else fuzzy(query, names)
        self.post_message(self.Found(query, found))

    @on(Listed)
    def _take_list(self, message: Listed) -> None:
        self._names = message.names
        self._found = None
        self._search_on()

    @on(Line.Changed)
    def _typed(self) -> None:
        self._picked = False
        self._search_on()

    @on(Found)
    def _take_found(self, message: Found) -> None:
        self._searching = False
        if message.query == self._query:
            self._found = message
            self._show(message)
        self._search_on()
        if self._picked and self._is_current():
            self._pick()

    @on(OptionList.OptionSelected)
    def _clicked(self, message: OptionList.OptionSelected) -> None:
        self.query_one(OptionList).highlighted = message.option_index
        self._pick()

    @on(Line.Submitted)
    def _entered(self) -> None:
        if self._is_current():
            self._pick()
        else:
            self._picked = True

    @abstractmethod
    def take(self, path: Path) -> None:
        """A file is chosen."""

    def drawn(self, query: str, name: str) -> Content:
        """A line of the list."""
        return drawn(query, name)

    def action_move(self, action: str) -> None:
        """Move the mark in the list, which never has the focus."""
        getattr(self.query_one(OptionList), f"action_{action}")()

    def action_complete(self) -> None:
        """Take the marked name into the line."""
        name = self._marked()
        if name is not None and self._is_current():
            self._type(name)

    def action_leave(self) -> None:
        """Close without a file."""
        self.dismiss(None)

    @property
    def _query(self) -> str:
        return self.query_one(Line).value

    def _is_current(self) -> bool:
        """Whether the list shows what was typed last."""
        return self._found is not None and self._found.query == self._query

    def _search_on(self) -> None:
        """Search for what is in the line now, unless a search runs, whose end comes back here."""
        query = self._query
        if self._searching or self._is_current() or (self._names is None and not is_typed_path(query)):
            return
        self._searching = True
        self._search(query, self._names or [])

    def _show(self, found: Found) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([self.drawn(found.query, name) for name in found.names[:SHOWN]])
        options.highlighted = 0 if found.names else None
        if not found.names:
            self._say("nothing there" if is_typed_path(found.query) else "no name holds these letters in this order")
        elif is_typed_path(found.query):
            self._say(f"{len(found.names):,} there")
        else:
            self._say(f"{len(found.names):,} of {len(self._names or []):,} files")

    def _say(self, text: str) -> None:
        self.query_one("#files-state", Static).update(Content(text))

    def _marked(self) -> str | None:
        at = self.query_one(OptionList).highlighted
        return None if at is None or self._found is None else self._found.names[at]

    def _pick(self) -> None:
        self._picked = False
        query, marked = self._query, self._marked()
        typed = typed_path(self._root, query) if is_typed_path(query) else None
        if typed is not None and is_file(typed):
            self.take(typed)
        elif marked is None:
            self.app.bell()
        elif marked.endswith("/"):
            self._type(marked)
        elif is_file(path := self._path(marked)):
            self.take(path)
        else:
            self._say(f"{label(marked)} is gone, or no file")

    def _path(self, name: str) -> Path:
        """The file that a line of the list stands for."""
        return typed_path(self._root, name) if is_typed_path(self._query) else self._root / name

    def _type(self, text: str) -> None:
        line = self.query_one(Line)
        if label(text) == text:  # else the line could not draw it
            line.value = text
            line.cursor_position = len(text)


class FilePicker(FileSearch[Path | None]):
    """Hands back one file."""

    TITLE_SHOWN = "Attach a file"
    KEYS_SHOWN = "Enter attach  Tab complete  Esc leave"

    def take(self, path: Path) -> None:
        """This one."""
        self.dismiss(path)


def drawn(query: str, name: str) -> Content:
    """A name with the letters that matched standing out; what leads to the file is dim."""
    shown = label(name)
    drawn = Content(shown).stylize("dim", 0, shown.rstrip("/").rfind("/") + 1)
    if is_typed_path(query):
        return drawn
    # One mark stands for one character, but some names lose their length on the way.
    for place in matched(query, name) if len(shown) == len(name) else []:
        drawn = drawn.stylize("bold underline $text-accent", place, place + 1)
    return drawn
