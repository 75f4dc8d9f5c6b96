"""Where the lines of a hunk are typed over, or the model is told what to do otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea
from textual.widgets.text_area import EditResult, Location

from specchat.attachments import label
from specchat.console import printable
from specchat.tui.hunk_text import lines_of, text_of
from specchat.tui.screens.line import Line
from specchat.tui.screens.question import Question


class PlainArea(TextArea):
    """A text area in which nothing that is pasted steers the terminal."""

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        return super()._replace_via_keyboard(printable(insert.replace("\r\n", "\n").replace("\r", "\n")), start, end)


class HunkEditor(ModalScreen[list[str] | None]):
    """Hands back other lines for a hunk; None when left. Typed text is not dropped without a question."""

    DEFAULT_CSS = """
    HunkEditor {
        align: center middle;
        & > Vertical {
            width: 96%; height: 80%; max-height: 100%; border: round $primary; background: $surface;
            & > TextArea, & > TextArea:focus { height: 1fr; border: none; padding: 0; }
            & > Static { height: auto; padding: 0 1; color: $text-error; display: none; }
            & > Static.-problem { display: block; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f5", "take", "Take", priority=True),
        Binding("escape", "leave", "Leave", priority=True),
    ]

    def __init__(self, name: str, lines: Sequence[str], old: Sequence[str], first: int) -> None:
        """`lines` are to be typed over, `old` those of the file, the first of which has the number `first`."""
        super().__init__()
        self._file = label(name)
        self._known = [*lines, *old]
        self._text = text_of(lines)
        self._first = first

    def compose(self) -> ComposeResult:
        """The lines, and below them what is wrong."""
        box = Vertical()
        box.border_title = Content(f"Edit the new lines of {self._file}")
        box.border_subtitle = "Ctrl+S take and accept  Esc leave"
        with box:
            yield PlainArea(
                self._text,
                soft_wrap=False,
                show_line_numbers=True,
                line_number_start=self._first,
                tab_behavior="indent",
            )
            yield Static(markup=False)

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one(TextArea).focus()

    def action_take(self) -> None:
        """Hand back what was typed."""
        try:
            lines = lines_of(self.query_one(TextArea).text, self._known)
        except ValueError as error:
            problem = self.query_one(Static)
            problem.update(Content(str(error)))
            problem.add_class("-problem")
            return
        self.dismiss(lines)

    def action_leave(self) -> None:
        """Leave; ask first where something was typed."""
        if isinstance(self.app.screen, Question):  # an urgent key reaches this screen below it, too
            self.app.screen.action_leave()
            return

        def answered(number: int | None) -> None:
            if number == 1:
                self.dismiss(None)
            elif number == 2:
                self.action_take()

        if self.query_one(TextArea).text == self._text:
            self.dismiss(None)
        else:
            question = Question("Leave?", "What you typed is not taken yet.", ["Go on", "Drop it", "Take it"])
            self.app.push_screen(question, answered)


class OneLine(ModalScreen[str | None]):
    """One line; None when left."""

    DEFAULT_CSS = """
    OneLine {
        align: center middle;
        & > Vertical {
            width: 72; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        Static { height: auto; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(self, title: str, verb: str, placeholder: str, about: str) -> None:
        """All are the program's own words, or printable."""
        super().__init__()
        self._said = (title, verb, placeholder, about)

    def compose(self) -> ComposeResult:
        """A line to type in."""
        title, verb, placeholder, about = self._said
        box = Vertical()
        box.border_title = Content(title)
        box.border_subtitle = f"Enter {verb}  Esc leave"
        with box:
            yield Line(placeholder)
            yield Static(Content(about), markup=False)

    @on(Line.Submitted)
    def _entered(self, message: Line.Submitted) -> None:
        message.stop()
        self.dismiss(message.value.strip())

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


class Note(OneLine):
    """What the model is told of a hunk."""

    def __init__(self) -> None:
        about = "Only this hunk is written anew; all before and behind it stays."
        super().__init__("Redo this hunk", "redo", "what to do otherwise, such as: keep 3000", about)


class Find(OneLine):
    """A text that hunks are searched for."""

    def __init__(self, last: str) -> None:
        about = f"Without a text: {label(last)}" if last else "In either case, in lines that go and lines that come."
        super().__init__("Find a hunk", "find", "a text", about)
