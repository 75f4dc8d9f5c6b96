"""What the settings panel chooses with. State is told by shape; Textual's own buttons tell it by colour alone."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content
from textual.geometry import Size
from textual.validation import ValidationResult, Validator
from textual.widgets import Checkbox, Input, RadioButton, RadioSet, TextArea
from textual.widgets.text_area import Edit, EditResult

from specchat.console import printable
from specchat.settings.keys import KEYS

_IN_A_ROW = 3  # picks


class Pick(RadioButton):
    """One of several."""

    def __init__(self, value: object, label: str) -> None:
        super().__init__(Content(label), compact=True)
        self.stands_for = value

    def render(self) -> Content:
        return _marked(self, "●" if self.value else "○")

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return 2 + self.label.cell_length


class Tick(Checkbox):
    """On or off."""

    def __init__(self, value: str, label: str) -> None:
        super().__init__(Content(label), compact=True)
        self.stands_for = value

    def render(self) -> Content:
        return _marked(self, "■" if self.value else "□")

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return 2 + self.label.cell_length


def _marked(button: Pick | Tick, mark: str) -> Content:
    style = button.get_visual_style("toggle--button", partial=True)
    return Content.assemble((mark, style), " ", button.label.stylize_before(button.get_visual_style("toggle--label")))


class Picks(RadioSet):
    """Several in a row, or in three columns where they are many, one of which is chosen."""

    def __init__(self, labels: Mapping[object, str]) -> None:
        self._picks = [Pick(value, label) for value, label in labels.items()]
        super().__init__(*self._picks, compact=True, classes="-many" if len(self._picks) > _IN_A_ROW else None)

    @property
    def chosen(self) -> object:
        """What the chosen one stands for. Raises ValueError when none is chosen."""
        button = self.pressed_button
        if not isinstance(button, Pick):
            raise ValueError("choose one of these")
        return button.stands_for

    def choose(self, value: object) -> None:
        """Choose one, while messages are held back; none when none stands for the value."""
        self._pressed_button = None
        for at, pick in enumerate(self._picks):
            pick.value = pick.stands_for == value
            if pick.value:
                self._pressed_button, self._selected = pick, at


class Allows(Validator):
    """Whether a text says a number that a key of the settings may have."""

    def __init__(self, key: str) -> None:
        super().__init__()
        described = KEYS[tuple(key.split("."))]
        self._kind = float if isinstance(described.default, float) else int
        self._allowed = described.metadata["allowed"]

    def parse(self, text: str) -> float | int:
        """The number. Raises ValueError that says what would be one."""
        try:
            value: float | int = self._kind(text)
            self._allowed.check(value)
        except ValueError:
            raise ValueError(f"must be {self._allowed.text}") from None
        return value

    def validate(self, value: str) -> ValidationResult:
        try:
            self.parse(value)
        except ValueError as error:
            return self.failure(str(error), value)
        return self.success()


class NumberInput(Input):
    """A line to type in. Textual's own sends pasted escape sequences to the terminal."""

    def validate_value(self, value: str) -> str:
        return printable(value)


class Prose(TextArea):
    """Lines to type in. Textual's own sends pasted escape sequences to the terminal."""

    def edit(self, edit: Edit) -> EditResult:
        edit.text = printable(edit.text.replace("\r\n", "\n").replace("\r", "\n"))
        return super().edit(edit)
