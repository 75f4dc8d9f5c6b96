"""A list of any length of which only the lines on the screen are drawn; who owns it says what each line is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

Parts = Sequence[tuple[str, str]]  # texts, each with its tone: "", "quiet", "alarm" or "match"
Draw = Callable[[int, int], Parts]  # (item, columns) -> its line


class PickList(ScrollView, can_focus=False):
    """Lines to click on; the marked one is kept on the screen."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"pick-list--{tone}{mark}" for tone in ("plain", "quiet", "alarm", "match") for mark in ("", "-marked")
    }
    DEFAULT_CSS = """
    PickList {
        height: auto; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
        & > .pick-list--quiet { color: $text-muted; }
        & > .pick-list--alarm { color: $text-warning; }
        & > .pick-list--match { color: $text-accent; text-style: bold; }
        & > .pick-list--match-marked { background: $primary 25%; color: $text-accent; text-style: bold; }
        & > .pick-list--plain-marked { background: $primary 25%; text-style: bold; }
        & > .pick-list--quiet-marked { background: $primary 25%; }
        & > .pick-list--alarm-marked { background: $primary 25%; color: $text-warning; text-style: bold; }
        &:ansi {
            & > .pick-list--quiet { text-style: dim; }
            & > .pick-list--alarm { color: ansi_yellow; }
            & > .pick-list--match { text-style: bold; }
            & > .pick-list--match-marked, & > .pick-list--plain-marked,
            & > .pick-list--quiet-marked, & > .pick-list--alarm-marked {
                background: ansi_default; color: ansi_default; text-style: reverse;
            }
        }
    }
    """

    @dataclass
    class Picked(Message):
        """An item was clicked."""

        list_id: str
        item: int

    def __init__(self, draw: Draw, *, id: str) -> None:
        """`draw` is asked for lines when they come on the screen, and must return what is fit to be shown."""
        super().__init__(id=id)
        self._draw = draw
        self._count = 0
        self._marked = -1

    def show(self, count: int, marked: int) -> None:
        """How many items there are, and which one is marked; all are drawn anew."""
        self._marked = marked
        if count != self._count:
            self._count = count
            self.virtual_size = Size(self.size.width, count)
            self.refresh(layout=True)
        self.refresh()
        self._reveal()

    @property
    def shown(self) -> list[str]:
        """All lines as they would be drawn."""
        return ["".join(text for text, _ in self._draw(item, self.size.width)) for item in range(self._count)]

    def on_resize(self, event: events.Resize) -> None:
        """The marked line stays on the screen."""
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        """Hand on what was clicked."""
        event.stop()
        item = event.y + self.scroll_offset.y
        if 0 <= item < self._count:
            self.post_message(self.Picked(str(self.id), item))

    def render_line(self, y: int) -> Strip:
        """What Textual asks for: one line of the screen."""
        width, item = self.size.width, y + self.scroll_offset.y
        if item >= self._count:
            return Strip.blank(width, self.rich_style)
        mark = "-marked" if item == self._marked else ""
        strip = Strip([Segment(text, self._style(tone, mark)) for text, tone in self._draw(item, width)])
        if strip.cell_length > width:
            strip = Strip([*strip.crop(0, width - 1), Segment("\u2026", self._style("", mark))])
        return strip.crop_extend(0, width, self._style("", mark))

    def _style(self, tone: str, mark: str) -> Style:
        return self.get_component_rich_style(f"pick-list--{tone or 'plain'}{mark}")

    def _reveal(self) -> None:
        height = self.size.height
        if self._marked >= 0 and height > 0:
            top = self.scroll_offset.y
            if not top <= self._marked < top + height:
                self.scroll_to(y=max(0, self._marked - height // 2), animate=False)
