"""Which files to write again, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import get_current_worker

from specchat.attachments import label, typed_path
from specchat.errors import Refusal
from specchat.rewrite.part import range_of
from specchat.tui.rewrite_words import (
    MOST_FILES,
    Meant,
    RewriteWanted,
    Target,
    files_meant,
    fitting_files,
    is_file,
    quoted,
    words_in,
)
from specchat.tui.screens.files import FilePicker
from specchat.tui.screens.line import Line
from specchat.tui.screens.question import Question
from specchat.tui.screens.recipes import RecipePicker
from specchat.tui.widgets.request import FilesLine, Request

if TYPE_CHECKING:
    from specchat.rewrite.recipes import Recipe

_SHOWN = 6  # paths in a question


class RewriteAsk(ModalScreen[RewriteWanted | None]):
    """Asks for both; None when left. Posts what it wants to know the price of, and is told it by `tell_price`."""

    DEFAULT_CSS = """
    RewriteAsk {
        align: center middle;
        & > Vertical {
            width: 78; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1; overflow-y: auto;
        }
        .name { height: 1; color: $text-muted; }
        Line { background: $foreground 8%; padding: 0 1; }
        Line:focus { background: $foreground 14%; }
        #ask-about { height: auto; min-height: 1; color: $text-muted; margin-bottom: 1; }
        #ask-about.-problem { color: $text-error; }
        #ask-lines { margin-bottom: 1; }
        &:ansi Line { background: ansi_default; text-style: underline; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("ctrl+r", "recipes", "Recipes", id="rewrite.recipes"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    @dataclass
    class PriceWanted(Message):
        """What would this take?"""

        screen: RewriteAsk
        wanted: RewriteWanted

    @dataclass
    class Found(Message):
        """The files that fit a pattern."""

        pattern: str
        paths: list[Path]

    def __init__(
        self,
        root: Path,
        files: str = "",
        instruction: str = "",
        history: Sequence[str] = (),
        recipes: Callable[[], Sequence[Recipe]] = tuple,
    ) -> None:
        """`root` is where typed paths begin; `files` and `instruction` are what the user said already, `history` what
        was asked for before, the last one last."""
        super().__init__()
        self._root = root
        self._files = files
        self._recipes = recipes
        self._request = Request(instruction, history)
        self._known: dict[str, Path] = {}  # paths that cannot be typed, by what the line shows
        self._fitting: dict[str, list[Path]] = {}
        self._looking = ""  # for files that fit this pattern
        self._waits = False  # Enter came before a pattern was looked up
        self._priced: tuple[Target, ...] = ()
        self._price = ("", False)  # and whether something is wrong

    def compose(self) -> ComposeResult:
        """Files, what is known of them, lines, what to do."""
        box = Vertical()
        box.border_title = "Rewrite files"
        box.border_subtitle = "Enter go on  @ find a file  ^R recipes  Esc leave"
        with box:
            yield Static("files", classes="name", markup=False)
            yield FilesLine('paths or patterns, such as notes.md "my notes.md" src/*.py', id="ask-files")
            yield Static(id="ask-about", markup=False)
            yield Static("only these lines of it", classes="name", markup=False)
            yield Line("all; or such as 10:40", id="ask-lines")
            yield self._request

    def on_mount(self) -> None:
        """Ask for what is missing first."""
        if self._files:
            for word in words_in(self._files):
                path = typed_path(self._root, word.text)
                if label(word.text) != word.text and is_file(path):
                    self._known[label(word.text)] = path
            self._put(label(self._files))
            self._request.begin()
        else:
            self._line("files").focus()

    # Files.

    @property
    def meant(self) -> Meant:
        """The files that are named now."""
        return files_meant(self._line("files").value, self._root, self._known, self._fitting, self._line("lines").value)

    @on(FilesLine.FileWanted)
    def _look_for_one(self, message: FilesLine.FileWanted) -> None:
        message.stop()

        def picked(path: Path | None) -> None:
            if path is not None:
                shown = str(path.relative_to(self._root) if path.is_relative_to(self._root) else path)
                word = label(shown)
                if word != shown or ('"' in word and "'" in word):
                    word = word.replace('"', "\u2033")
                    self._known[word] = path
                self._put(f"{self._line('files').value} {quoted(word)}".strip())
                self._request.begin()

        self.app.push_screen(FilePicker(self._root), picked)

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
            self._priced, self._price = meant.targets, ("", False)
            self.post_message(self.PriceWanted(self, RewriteWanted(meant.targets, self._request.text)))
        self._tell(meant)

    def _tell(self, meant: Meant) -> None:
        outside = [each for each in meant.targets if each.is_outside(self._root)]
        lines = [f"outside this folder: {label(str(each.real))}" for each in outside[:2]]
        lines += [f"outside this folder too: {len(outside) - 2} more"] if len(outside) > 2 else []
        if meant.sought:
            lines.append("looking for files ...")
        elif len(meant.targets) > 1:
            lines.append(f"{len(meant.targets)} files")
        price, is_problem = self._price if meant.targets == self._priced else ("", False)
        self._say("\n".join(filter(None, [*lines, price])), is_problem=is_problem)

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

    def tell_price(self, targets: tuple[Target, ...], text: str, *, is_problem: bool) -> None:
        """What the rewrite of these would take, or what is wrong with them."""
        if targets == self._priced:
            self._price = (text, is_problem)
            self._tell(self.meant)

    # The answer.

    @on(Line.Submitted)
    def _entered(self, message: Line.Submitted) -> None:
        message.stop()
        self._go_on()

    def _go_on(self) -> None:
        meant, self._waits = self.meant, False
        if meant.sought:
            self._waits = True
            self._request.begin()
        elif meant.problem or not meant.targets:
            self._line("files").focus()
            self._say(meant.problem or "which file? @ finds one", is_problem=True)
        elif not self._lines_are_right(self._line("lines").value):
            self._line("lines").focus()
            self._say("lines are counted from 1, such as 10:40, 10: or :40", is_problem=True)
        elif missing := self._request.missing():
            self._say(missing, is_problem=True)
        elif self._request.is_ready():
            self._answer(RewriteWanted(meant.targets, self._request.text, self._request.guard))

    def _answer(self, wanted: RewriteWanted) -> None:
        outside = [each for each in wanted.targets if each.is_outside(self._root)]

        def answered(number: int | None) -> None:
            if number == 1:
                self.dismiss(wanted)

        if outside:
            paths = [label(str(each.real)) for each in outside[:_SHOWN]] + ["..."] * (len(outside) > _SHOWN)
            text = "\n".join([f"This is outside {label(str(self._root))}:", *paths])
            self.app.push_screen(Question("Rewrite a file elsewhere?", text, ["Do not", "Rewrite it"]), answered)
        else:
            self.dismiss(wanted)

    def action_recipes(self) -> None:
        """Choose a request that has a name."""

        def picked(recipe: Recipe | None) -> None:
            if recipe is not None:
                self._request.take(recipe if recipe.instruction else None)

        self.app.push_screen(RecipePicker(self._recipes), picked)

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    @staticmethod
    def _lines_are_right(text: str) -> bool:
        try:
            return not text.strip() or range_of(text.replace("-", ":")) is not None
        except Refusal:
            return False

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
