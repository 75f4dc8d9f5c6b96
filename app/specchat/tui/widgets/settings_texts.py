"""Fields of the settings panel for texts of one line: one that may be missing, or any number of them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widget import Widget

from specchat.console import printable
from specchat.settings.keys import KEYS
from specchat.tui.widgets.settings_controls import NumberInput
from specchat.tui.widgets.settings_fields import Field, TextField


class LineField(Field):
    """A setting that is a text, or None where the line is empty."""

    def __init__(self, key: str, label: str, hint: str = "") -> None:
        super().__init__(key, label, hint)
        self._allowed = KEYS[tuple(key.split("."))].metadata["allowed"]
        self._input = NumberInput(placeholder=str(self._allowed.none), compact=True)
        self._whole: object = None  # the setting, of which the line shows what can be shown

    def controls(self) -> Sequence[Widget]:
        return [self._input]

    def read(self) -> object:
        if self._input.value == _line(self._whole):
            return self._whole
        typed = self._input.value.strip()
        return self._allowed.read(typed) if typed else None

    def put(self, value: object) -> None:
        if self.read() != value:
            self._input.value = _line(value)
        self._whole = value


class TextsField(TextField):
    """A setting that is any number of texts, a line each; in them a line feed is \\n and a backslash is \\\\."""

    def read(self) -> object:
        text = super().read()
        return tuple(_meant(line) for line in str(text).split("\n") if line)

    def put(self, value: object) -> None:
        lines = value if isinstance(value, tuple) else ()
        if self.read() != lines:
            super().put("\n".join(each.replace("\\", "\\\\").replace("\n", "\\n") for each in lines))


def _line(value: object) -> str:
    return "" if value is None else " ".join(printable(str(value)).split("\n"))


def _meant(line: str) -> str:
    """The text that a line stands for."""
    return "\\".join(part.replace("\\n", "\n") for part in line.split("\\\\"))
