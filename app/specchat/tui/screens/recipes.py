"""Requests with a name, to choose one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList

from specchat.attachments import label

if TYPE_CHECKING:
    from specchat.rewrite.recipes import Recipe


class RecipePicker(ModalScreen["Recipe | None"]):
    """Hands back a recipe, one without an instruction for words of one's own; None when left."""

    DEFAULT_CSS = """
    RecipePicker {
        align: center middle;
        & > Vertical {
            width: 76; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        OptionList {
            height: auto; max-height: 20; border: none; padding: 0; background: $surface;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        OptionList:focus { border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(self, load: Callable[[], Sequence[Recipe]]) -> None:
        super().__init__()
        self._load = load
        self._recipes: list[Recipe] = []

    def compose(self) -> ComposeResult:
        """The list."""
        box = Vertical()
        box.border_title = "Recipes"
        box.border_subtitle = "Enter choose  Esc leave"
        with box:
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        """Read them anew each time: they are files that may have been edited meanwhile."""
        from specchat.rewrite.recipes import Recipe

        self._recipes = [Recipe("own words", "no recipe", ""), *self._load()]
        width = max(len(label(recipe.name)) for recipe in self._recipes)
        options = self.query_one(OptionList)
        options.add_options(
            [
                Content.assemble((f"{label(recipe.name):<{width}}  ", "bold"), label(recipe.description))
                for recipe in self._recipes
            ]
        )
        options.highlighted = min(1, len(self._recipes) - 1)
        options.focus()

    @on(OptionList.OptionSelected)
    def _picked(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.dismiss(self._recipes[message.option_index])

    def action_leave(self) -> None:
        """Close without one."""
        self.dismiss(None)
