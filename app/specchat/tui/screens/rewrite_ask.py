"""Which files to write again, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from specchat.attachments import is_file, label, typed_path
from specchat.errors import Refusal
from specchat.rewrite.part import range_of
from specchat.tui.rewrite_words import (
    RewriteWanted,
    words_in,
)
from specchat.tui.screens.line import Line
from specchat.tui.screens.question import Question
from specchat.tui.screens.recipes import RecipePicker
from specchat.tui.screens.rewrite_targets import TargetsAsk
from specchat.tui.widgets.request import FilesLine, Request

if TYPE_CHECKING:
    from specchat.rewrite.recipes import Recipe

_SHOWN = 6  # paths in a question


class RewriteAsk(TargetsAsk):
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
        Binding("ctrl+o", "go_on_with", "Go on with the unfinished rewrite", id="rewrite.go_on"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

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
        super().__init__(root, Request(instruction, history))
        self._files = files
        self._recipes = recipes

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

    def action_go_on_with(self) -> None:
        """Go on with the rewrite of this file that was cut off, as it was asked for then."""
        meant, partial = self.meant, self._unfinished
        if partial is None or meant.targets != self._priced:
            self._say("nothing of this file is unfinished", is_problem=True)
        else:
            self._answer(RewriteWanted(meant.targets, partial.instruction, self._request.guard, partial))

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    @staticmethod
    def _lines_are_right(text: str) -> bool:
        try:
            return not text.strip() or range_of(text.replace("-", ":")) is not None
        except Refusal:
            return False
