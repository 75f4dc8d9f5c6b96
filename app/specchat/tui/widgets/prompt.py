"""Where the user writes: a box that grows, remembers, completes commands, and turns long pastes into attachments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from specchat.console import printable

LONG_PASTE = 2_000  # characters from which a paste becomes an attachment


class Prompt(TextArea):
    """The prompt box. Whatever is put into it, from a key to a file of the editor, it holds printable text only."""

    DEFAULT_CSS = """
    Prompt, Prompt:focus {
        height: auto; min-height: 1; max-height: 10; border: none; padding: 0; background: $surface;
        scrollbar-size-vertical: 1;
    }
    """

    @dataclass
    class Sent(Message):
        """The user pressed Enter; the box is empty again."""

        text: str

    @dataclass
    class Pasted(Message):
        """A paste that is too long to be typed text."""

        text: str

    @dataclass
    class FileWanted(Message):
        """An @ was typed where a word begins."""

    @dataclass
    class Steered(Message):
        """Up, down, tab or enter while a list of completions is open: -1, 1 or 0 to take the one that is marked."""

        step: int

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, show_line_numbers=False, soft_wrap=True, tab_behavior="focus", compact=True)
        self.completing = False  # the app shows a list of completions; arrows and Enter go there
        self._history: list[str] = []
        self._at = 0  # in the history; its length is the text being written
        self._unsent = ""
        # No bindings: the app looks at those before it hands on letters that were typed earlier, in the same burst.
        self._keys: dict[str, Callable[[], None]] = {
            "enter": self.action_send,
            **dict.fromkeys(("ctrl+j", "shift+enter", "alt+enter"), self.action_new_line),
            "up": lambda: self.action_recall(-1),
            "down": lambda: self.action_recall(1),
        }

    def remember(self, text: str) -> None:
        """Add a sent prompt to what the arrows recall."""
        if text and self._history[-1:] != [text]:
            self._history.append(text)
        self._at = len(self._history)
        self._unsent = ""

    def put(self, text: str) -> None:
        """Replace what is written; the cursor stands behind it."""
        self.text = text
        self.move_cursor(self.document.end)

    def load_text(self, text: str) -> None:
        """Replace what is written."""
        super().load_text(printable(text))

    def edit(self, edit: Edit) -> EditResult:
        """Type, paste, delete."""
        edit.text = printable(edit.text)
        return super().edit(edit)

    def action_send(self) -> None:
        if self.completing:
            self.post_message(self.Steered(0))
        else:
            text = self.text
            self.put("")  # at once: what is typed next is another message
            self.post_message(self.Sent(text))

    def action_new_line(self) -> None:
        start, end = self.selection
        self._replace_via_keyboard("\n", start, end)

    def action_recall(self, step: int) -> None:
        """Older and newer prompts, from the first or last line of the text."""
        if self.completing:
            self.post_message(self.Steered(step))
            return
        row, last = self.cursor_location[0], self.document.line_count - 1
        if (step < 0 and row > 0) or (step > 0 and row < last) or not 0 <= self._at + step <= len(self._history):
            if step < 0:
                self.action_cursor_up()
            else:
                self.action_cursor_down()
            return
        if step < 0 and self._at == len(self._history) and self.text and self.text not in self._history:
            self.action_cursor_up()  # what is being written is not thrown away by an arrow
            return
        if self._at == len(self._history):
            self._unsent = self.text
        self._at += step
        self.put(self._unsent if self._at == len(self._history) else self._history[self._at])

    async def _on_key(self, event: events.Key) -> None:
        if (deed := self._keys.get(event.key)) is not None:
            event.stop()
            event.prevent_default()
            deed()
            return
        if event.key == "tab" and self.completing:
            event.stop()
            event.prevent_default()
            self.post_message(self.Steered(0))
            return
        if event.character == "@" and self._begins_word():
            event.stop()
            event.prevent_default()
            self.post_message(self.FileWanted())
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) >= LONG_PASTE:
            event.stop()
            event.prevent_default()
            self.post_message(self.Pasted(text.encode("utf-8", "replace").decode()))  # halves of surrogate pairs go
            return
        event.stop()
        event.prevent_default()
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    def _begins_word(self) -> bool:
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        return not before or before[-1].isspace()
