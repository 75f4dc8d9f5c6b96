"""Which file to write again, and what to do with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.attachments import label, typed_path
from specchat.tui.screens.files import FilePicker
from specchat.tui.screens.line import Line

About = Callable[[Path], str]  # a line on a file: its lines, its forecast; may raise, and runs on a thread


@dataclass(frozen=True, slots=True)
class RewriteWanted:
    """A file, and what to do with it."""

    path: Path
    instruction: str


def words_of(text: str) -> tuple[str, str]:
    """What stands behind `/rewrite`: a path, in quotes where it has blanks, and an instruction."""
    text = text.strip()
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        return text[1:end], text[end + 1 :].strip()
    path, _, instruction = text.partition(" ")
    return path, instruction.strip()


class PathLine(Line):
    """A line for a path; @ looks for one."""

    @dataclass
    class FileWanted(Message):
        """An @ was typed."""

    async def _on_key(self, event: events.Key) -> None:
        if event.character == "@":
            event.stop()
            event.prevent_default()
            self.post_message(self.FileWanted())
            return
        await super()._on_key(event)


class RewriteAsk(ModalScreen[RewriteWanted | None]):
    """Asks for both; None when left."""

    DEFAULT_CSS = """
    RewriteAsk {
        align: center middle;
        & > Vertical {
            width: 76; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1; overflow-y: auto;
        }
        .name { height: 1; color: $text-muted; }
        Line { background: $foreground 8%; padding: 0 1; }
        Line:focus { background: $foreground 14%; }
        #ask-about { height: auto; min-height: 1; color: $text-muted; margin-bottom: 1; }
        #ask-about.-problem { color: $text-error; }
        &:ansi Line { background: ansi_default; text-style: underline; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    @dataclass
    class Told(Message):
        """What is known of a file."""

        path: Path
        text: str
        is_problem: bool = False

    def __init__(self, root: Path, path: str = "", instruction: str = "", about: About | None = None) -> None:
        """`root` is where typed paths begin; `path` and `instruction` are what the user said already."""
        super().__init__()
        self._root = root
        self._path, self._instruction = path, instruction
        self._about = about
        self._picked: tuple[str, Path] | None = None  # a path that cannot be typed, and how the line shows it

    def compose(self) -> ComposeResult:
        """Two lines, and what is known of the file."""
        box = Vertical()
        box.border_title = "Rewrite a file"
        box.border_subtitle = "Enter go on  @ find a file  Esc leave"
        with box:
            yield Static("file", classes="name", markup=False)
            yield PathLine("a path, or @ to find one", id="ask-path")
            yield Static(id="ask-about", markup=False)
            yield Static("what to do with it", classes="name", markup=False)
            yield Line("such as: fix spelling, change nothing else", id="ask-instruction")

    def on_mount(self) -> None:
        """Ask for what is missing first."""
        path, instruction = self._line("path"), self._line("instruction")
        if self._path:
            self._take(typed_path(self._root, self._path), self._path)
        instruction.value = self._instruction
        instruction.cursor_position = len(instruction.value)
        (instruction if self._path else path).focus()

    @on(PathLine.FileWanted)
    def _look(self, message: PathLine.FileWanted) -> None:
        message.stop()

        def picked(path: Path | None) -> None:
            if path is not None:
                shown = path.relative_to(self._root) if path.is_relative_to(self._root) else path
                self._take(path, str(shown))
                self._line("instruction").focus()

        self.app.push_screen(FilePicker(self._root), picked)

    @on(Line.Changed, "#ask-path")
    def _typed(self, message: Line.Changed) -> None:
        message.stop()
        self._say("")
        path = self._named()
        if path is not None and _is_file(path):
            self._say(_outside(path, self._root))
            if self._about is not None:
                self._ask(path, self._about)

    @on(Line.Submitted)
    def _entered(self, message: Line.Submitted) -> None:
        message.stop()
        path, instruction = self._named(), self._line("instruction").value.strip()
        if path is None:
            self._line("path").focus()
            self._say("which file? @ finds one", is_problem=True)
        elif not _is_file(path):
            self._line("path").focus()
            self._say(f"{label(str(path))} is no file", is_problem=True)
        elif not instruction:
            self._line("instruction").focus()
        else:
            self.dismiss(RewriteWanted(path, instruction))

    @on(Told)
    def _told(self, message: Told) -> None:
        if message.path == self._named():
            lines = [_outside(message.path, self._root), message.text]
            self._say("\n".join(line for line in lines if line), is_problem=message.is_problem)

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _ask(self, path: Path, about: About) -> None:
        try:
            self.post_message(self.Told(path, label(about(path))))
        except Exception as error:  # whatever is wrong with the file is said where its name stands
            self.post_message(self.Told(path, label(str(error)), is_problem=True))

    def _line(self, part: str) -> Line:
        return self.query_one(f"#ask-{part}", Line)

    def _take(self, path: Path, shown: str) -> None:
        """Put a path into the line; where that cannot show it, remember which one is meant."""
        line = self._line("path")
        self._picked = (label(shown), path)
        line.value = label(shown)
        line.cursor_position = len(line.value)

    def _named(self) -> Path | None:
        text = self._line("path").value
        if self._picked is not None and self._picked[0] == text:
            return self._picked[1]
        return typed_path(self._root, text.strip()) if text.strip() else None

    def _say(self, text: str, *, is_problem: bool = False) -> None:
        about = self.query_one("#ask-about", Static)
        about.update(Content(text))
        about.set_class(is_problem, "-problem")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _outside(path: Path, root: Path) -> str:
    """Where a file really stands that is not below the folder, as behind a link or a ".."; "" for the others."""
    real = Path(os.path.realpath(path))
    return "" if real.is_relative_to(os.path.realpath(root)) else f"outside this folder: {label(str(real))}"
