"""A line to type in that cannot be made to steer the terminal."""

from __future__ import annotations

from textual.widgets import Input

from specchat.attachments import label


class Line(Input):
    """An input line that shows control characters as marks; Textual's own draws what is pasted as it comes."""

    DEFAULT_CSS = """
    Line { border: none; height: 1; padding: 0; background: $surface; &:focus { border: none; } }
    """

    def __init__(self, placeholder: str, *, id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id, select_on_focus=False)

    def validate_value(self, value: str) -> str:
        """The value with marks; a mark for a character, so the cursor stays right."""
        return label(value)
