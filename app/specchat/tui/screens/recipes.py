"""Requests with a name, to choose one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from specchat.attachments import label
from specchat.tui.screens.picked_list import PickedList

if TYPE_CHECKING:
    from specchat.rewrite.recipes import Recipe


class RecipePicker(PickedList["Recipe | None"]):
    """Hands back a recipe, one without an instruction for words of one's own; None when left."""

    TITLE_SHOWN = "Recipes"
    PICK = "choose"

    def __init__(self, load: Callable[[], Sequence[Recipe]]) -> None:
        super().__init__()
        self._load = load
        self._recipes: list[Recipe] = []

    def lines(self) -> tuple[Sequence[Content], int]:
        """Read anew each time: they are files that may have been edited meanwhile."""
        from specchat.rewrite.recipes import Recipe

        self._recipes = [Recipe("own words", "no recipe", ""), *self._load()]
        width = max(len(label(recipe.name)) for recipe in self._recipes)
        lines = [
            Content.assemble((f"{label(recipe.name):<{width}}  ", "bold"), label(recipe.description))
            for recipe in self._recipes
        ]
        return lines, 1

    def answer(self, index: int) -> Recipe:
        """The recipe of a line."""
        return self._recipes[index]
