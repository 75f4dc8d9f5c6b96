"""What to do with files: a line of one's own, which remembers earlier ones, or a recipe with its variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from specchat.attachments import label
from specchat.rewrite.checks import Rails
from specchat.tui.screens.line import Line

if TYPE_CHECKING:
    from specchat.rewrite.recipes import Recipe


class FilesLine(Line):
    """A line for paths; @ looks for one."""

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


class InstructionLine(Line):
    """A line in which the arrow up brings back what was asked for before."""

    def __init__(self, placeholder: str, history: Sequence[str], *, id: str) -> None:
        super().__init__(placeholder, id=id)
        self._history = [*history, ""]  # the last one is what is being typed
        self._at = len(history)

    async def _on_key(self, event: events.Key) -> None:
        step = {"up": -1, "down": 1}.get(event.key, 0)
        if step and len(self._history) > 1 and self._at + step < len(self._history):
            event.stop()
            event.prevent_default()
            self._go(max(0, self._at + step))
            return
        await super()._on_key(event)

    def _go(self, at: int) -> None:
        if self._at == len(self._history) - 1:
            self._history[-1] = self.value
        self._at = at
        self.value = self._history[at]
        self.cursor_position = len(self.value)


class VariableLine(Line):
    """A line for the value of a recipe's variable."""

    def __init__(self, variable: str, value: str) -> None:
        super().__init__(f"{label(variable)} has no value yet")
        self.variable = variable
        self.value = value


class Request(Vertical):
    """Where one says what is to be done."""

    DEFAULT_CSS = """
    Request {
        height: auto;
        & > Static { height: auto; }
        #ask-recipe { display: none; color: $text-muted; max-height: 6; }
        &.-recipe #ask-recipe { display: block; }
        &.-recipe #ask-instruction { display: none; }
        #ask-variables { height: auto; }
    }
    """

    def __init__(self, instruction: str, history: Sequence[str]) -> None:
        super().__init__(id="ask-request")
        self._begin_with = instruction
        self._history = history
        self._recipe: Recipe | None = None

    def compose(self) -> ComposeResult:
        """The line, or a recipe and lines for its variables."""
        hint = "; arrow up: what was asked for before" if self._history else ""
        yield Static(f"what to do{hint}", classes="name", markup=False)
        yield InstructionLine("such as: fix spelling, change nothing else", self._history, id="ask-instruction")
        yield Static(id="ask-recipe", markup=False)
        yield Vertical(id="ask-variables")

    def on_mount(self) -> None:
        """With what was said already."""
        line = self._line
        line.value = self._begin_with
        line.cursor_position = len(line.value)

    @property
    def text(self) -> str:
        """What is to be done; "" while that is not said, or a variable has no value."""
        if self._recipe is None:
            return self._line.value.strip()
        return "" if self._empty() is not None else self._recipe.filled(self._values())

    @property
    def guard(self) -> Rails:
        """What must not change."""
        return Rails() if self._recipe is None else self._recipe.guard(Rails())

    def begin(self) -> None:
        """Type here."""
        variables = self._variables()
        (variables[0] if variables else self._line).focus()

    def missing(self) -> str:
        """What is to be said of a variable without a value, which is gone to."""
        empty = self._empty()
        if empty is None:
            return ""
        empty.focus()
        return f"what is {label(empty.variable)}?"

    def is_ready(self) -> bool:
        """Whether all is said; else the place where that is to be done is gone to."""
        if not self.text:
            self._line.focus()
        return bool(self.text)

    def take(self, recipe: Recipe | None) -> None:
        """Another recipe; None for words of one's own."""
        self._recipe = recipe
        self.set_class(recipe is not None, "-recipe")
        self.run_worker(self._lay_out(recipe), exclusive=True)

    async def _lay_out(self, recipe: Recipe | None) -> None:
        box = self.query_one("#ask-variables", Vertical)
        await box.remove_children()
        if recipe is not None:
            about = f"{label(recipe.name)}: {label(' '.join(recipe.instruction.split()))}"
            self.query_one("#ask-recipe", Static).update(Content(about))
            for variable in recipe.variables:
                await box.mount(
                    Static(label(variable.name), classes="name", markup=False),
                    VariableLine(variable.name, variable.default or ""),
                )
        self.begin()
        if recipe is not None and not recipe.variables:
            self.screen.query_one("#ask-files").focus()

    @property
    def _line(self) -> InstructionLine:
        return self.query_one("#ask-instruction", InstructionLine)

    def _variables(self) -> list[VariableLine]:
        return list(self.query_one("#ask-variables").query(VariableLine))

    def _values(self) -> dict[str, str]:
        return {line.variable: line.value.strip() for line in self._variables()}

    def _empty(self) -> VariableLine | None:
        return next((line for line in self._variables() if not line.value.strip()), None)
