"""Where a message is put together: text, attachments, completions of commands, and how many tokens it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.worker import get_current_worker

from specchat.attachments import Attachment, read_attachment, with_attachments
from specchat.console import printable, size
from specchat.errors import Refusal
from specchat.tui.commands import completions
from specchat.tui.widgets.prompt import Prompt

HINTS = "Enter send  ^J new line  @ file  / command"


class Composer(Vertical):
    """Prompt box with all that belongs to it."""

    DEFAULT_CSS = """
    Composer { height: auto; }
    Composer #attached { height: auto; max-height: 3; padding: 0 1; color: $text-accent; display: none; }
    Composer #attached.-some { display: block; }
    Composer #completions {
        display: none; height: auto; max-height: 8; border: none; background: $panel; padding: 0 1;
    }
    Composer #completions.-open { display: block; }
    Composer #writing { height: auto; background: $surface; padding: 0 1; border-top: solid $foreground 20%; }
    Composer #sign { width: 2; color: $text-accent; }
    Composer #hints { height: 1; padding: 0 1; background: $surface; color: $text-muted; }
    """

    @dataclass
    class Submitted(Message):
        """A message or a command that the user wants to send. Attachments stay until `sent`."""

        text: str
        attachments: tuple[Attachment, ...]

    class Typed(Message):
        """The text in the box has changed, or what is attached."""

    @dataclass
    class Told(Message):
        """One line for the user."""

        text: str
        severity: str = "error"

    def __init__(self, folder: Path, count: Callable[[str], int | None], *, id: str) -> None:
        """`count` gives the tokens of a text, None while that is not known; it is called in a thread."""
        super().__init__(id=id)
        self._folder = folder
        self._count = count
        self._attachments: list[Attachment] = []
        self._pastes = 0
        self._meter = ""

    def compose(self) -> ComposeResult:
        options = OptionList(id="completions")
        options.can_focus = False
        yield options
        yield Static(id="attached", markup=False)
        with Horizontal(id="writing"):
            yield Static("> ", id="sign", markup=False)
            yield Prompt(id="prompt")
        yield Static(HINTS, id="hints", markup=False)

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def written(self) -> str:
        """What would be sent now, as the model reads it; empty for nothing, and for a command."""
        text = self.prompt.text
        if text.startswith("/") or not (text.strip() or self._attachments):
            return ""
        return with_attachments(text, self._attachments)

    @property
    def settled(self) -> str:
        """How the message begins whatever is typed: what is attached."""
        return with_attachments("", self._attachments)

    def focus_prompt(self) -> None:
        self.prompt.focus()

    def sent(self, text: str) -> None:
        """What was submitted is on its way."""
        self.prompt.remember(text)
        self.detach()

    def clear(self) -> None:
        """Empty the box; attachments stay."""
        self.prompt.put("")
        self._show_attached()

    def give_back(self, text: str, attachments: Sequence[Attachment]) -> None:
        """Put a message into the box again, in front of what was written meanwhile."""
        written = self.prompt.text
        self.prompt.put(f"{text}\n{written}" if written and text else text or written)
        self._attachments = [*attachments, *self._attachments]
        self._show_attached()
        self.focus_prompt()

    def attach_file(self, path: str) -> None:
        """Attach a file; without a path, let the user look for one."""
        if path:
            self._attach_path(self._folder / os.path.expanduser(path))
        else:
            self._look_for_file()

    def detach(self) -> None:
        """Drop all attachments."""
        self._attachments = []
        self._show_attached()

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        message.stop()
        if message.text.strip() or self._attachments:
            self.post_message(self.Submitted(message.text, tuple(self._attachments)))

    @on(Prompt.Changed)
    def _typed(self, message: Prompt.Changed) -> None:
        message.stop()
        text = message.text_area.text
        found = completions(text)
        exact = len(found) == 1 and text == f"/{found[0].name}"
        options = self.query_one("#completions", OptionList)
        self.prompt.completing = bool(found) and not exact
        options.set_class(self.prompt.completing, "-open")
        options.clear_options()
        options.add_options(
            Content.assemble((f"/{command.name:10}", "bold"), f"{command.hint:24}{command.text}") for command in found
        )
        if found:
            options.highlighted = 0
        self._measure()
        self.post_message(self.Typed())

    @on(Prompt.Steered)
    def _steered(self, message: Prompt.Steered) -> None:
        message.stop()
        options, found = self.query_one("#completions", OptionList), completions(self.prompt.text)
        at = options.highlighted or 0
        if message.step and found:
            options.highlighted = (at + message.step) % len(found)
        elif found:
            command = found[min(at, len(found) - 1)]
            self.prompt.put(f"/{command.name}{' ' if command.hint else ''}")
            self.prompt.completing = False
            options.set_class(False, "-open")

    @on(Prompt.Pasted)
    def _pasted(self, message: Prompt.Pasted) -> None:
        message.stop()
        self._pastes += 1
        self._add(Attachment(f"pasted text {self._pastes}", message.text))

    @on(Prompt.FileWanted)
    def _file_wanted(self, message: Prompt.FileWanted) -> None:
        message.stop()
        self._look_for_file()

    def _look_for_file(self) -> None:
        from specchat.tui.screens.files import FilePicker

        def picked(path: Path | None) -> None:
            if path is None:
                self.prompt.insert("@")
            else:
                self._attach_path(path)

        self.app.push_screen(FilePicker(self._folder), picked)

    def _attach_path(self, path: Path) -> None:
        try:
            self._add(read_attachment(path))
        except Refusal as error:
            self.post_message(self.Told(str(error)))

    def _add(self, attachment: Attachment) -> None:
        self._attachments.append(attachment)
        self._show_attached()

    def _show_attached(self) -> None:
        names = "  ".join(f"+ {a.name} ({size(len(a.text.encode('utf-8', 'replace')))})" for a in self._attachments)
        line = self.query_one("#attached", Static)
        line.update(printable(names))
        line.set_class(bool(names), "-some")
        self._measure()
        self.post_message(self.Typed())

    def _measure(self) -> None:
        self._count_tokens(self.prompt.text, tuple(self._attachments))

    @work(thread=True, exclusive=True, group="count", exit_on_error=False)
    def _count_tokens(self, text: str, attached: Sequence[Attachment]) -> None:
        """In a thread, because the engine's tokenizer may take a while for a long text."""
        worker = get_current_worker()
        typed = self._count(text) if text else 0
        counts = [self._count(attachment.text) for attachment in attached]
        if typed is not None and None not in counts and not worker.is_cancelled:  # else a later text is counted
            files = sum(n or 0 for n in counts)
            words = f"{typed} tokens{f' + {files} attached' if attached else ''}" if typed or attached else ""
            self.app.call_from_thread(self._show_meter, words)

    def _show_meter(self, words: str) -> None:
        self._meter = words
        room = self.size.width - len(HINTS) - len(words) - 2
        text = f"{HINTS}{' ' * room}{words}" if words and room > 1 else words or HINTS
        self.query_one("#hints", Static).update(text)

    def on_resize(self) -> None:
        self._show_meter(self._meter)
