"""A file while it is written again: how far, how many edits, how long still; and the ways to end it early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ProgressBar, Static

from specchat.attachments import label
from specchat.tui.review_words import shortened
from specchat.tui.rewrite_progress import RewriteProgress, copying, edits, figures
from specchat.tui.screens.downloading import duration
from specchat.tui.widgets.status import fitted

_KEYS = (("Tab", "the rest is unchanged: copy it"), ("Esc", "stop"), ("^G", "guesser"))


class RewritingScreen(ModalScreen[None]):
    """Stays until it is dismissed: a rewrite ends some steps after it was asked to."""

    DEFAULT_CSS = """
    RewritingScreen {
        align: center middle;
        & > Vertical {
            width: 92; max-width: 100%; height: auto; max-height: 100%;
            border: round $primary; background: $surface; padding: 0 1; overflow-y: auto;
        }
        Static { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        ProgressBar, Bar { width: 1fr; height: 1; }
        #rewriting-instruction, #rewriting-guesser, #rewriting-results { color: $text-muted; }
        #rewriting-results { display: none; &.-some { display: block; } }
        #rewriting-instruction { margin-bottom: 1; }
        #rewriting-rest { color: $text-success; text-style: bold; }
        #rewriting-keys { margin-top: 1; }
        &.-short {
            #rewriting-instruction, #rewriting-guesser, #rewriting-results { display: none; }
            #rewriting-keys { margin: 0; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "rest", "The rest is unchanged", id="rewrite.rest", priority=True),
        Binding("escape", "stop", "Stop", id="rewrite.stop"),
        Binding("ctrl+g", "guesser", "Next guesser", id="rewrite.guesser"),
    ]

    @dataclass
    class RestUnchanged(Message):
        """End as soon as the text is back at an old line, and take the rest as it is."""

    @dataclass
    class Stop(Message):
        """End after the present step; what was written is kept, and the user is asked what to do with it."""

    @dataclass
    class NextGuesser(Message):
        """Let another guesser guess."""

    def __init__(self, name: str, instruction: str, number: int = 1, of: int = 1) -> None:
        """File `number` of `of` is written again."""
        super().__init__()
        self._file, self._number, self._of = name, number, of
        self._instruction = label(instruction)
        self._progress: RewriteProgress | None = None
        self._request = ""  # which of those that a long file takes
        self._forecast = ""
        self._ending = ""
        self._closes = False

    def compose(self) -> ComposeResult:
        """What was asked, the bar, figures, edits, hints."""
        with Vertical():
            yield Static(id="rewriting-instruction", markup=False)
            yield ProgressBar(show_percentage=False, show_eta=False)
            yield Static("reading ...", id="rewriting-figures", markup=False)
            yield Static(id="rewriting-edits", markup=False)
            yield Static(id="rewriting-results", markup=False)
            yield Static(id="rewriting-guesser", markup=False)
            yield Static(id="rewriting-rest", markup=False)
            yield Static(id="rewriting-keys", markup=False)

    def on_mount(self) -> None:
        """Nothing is known yet."""
        self.begin(self._file, self._number, self._of)

    def begin(self, name: str, number: int = 1, of: int = 1) -> None:
        """The next file."""
        self._progress, self._request, self._forecast, self._ending = None, "", "", ""
        many = f" ({number} of {of})" if of > 1 else ""
        self.query_one(Vertical).border_title = Content(f"Rewrite {shortened(label(name), 60, from_start=True)}{many}")
        self.query_one(ProgressBar).update(total=None, progress=0)
        self._draw()

    def show_reading(self, read: int, total: int, seconds_left: float | None) -> None:
        """The prompt is being read: `read` of `total` tokens."""
        self.query_one(ProgressBar).update(total=max(1, total), progress=read)
        left = "" if seconds_left is None else f"  {duration(seconds_left)} left"
        self._say("figures", f"reading {read:,}/{total:,} tokens{left}")

    def show_forecast(self, text: str) -> None:
        """What it will take; seen until the first step."""
        self._forecast = text
        self._draw()

    def show_results(self, text: str) -> None:
        """What became of the files before this one."""
        results = self.query_one("#rewriting-results", Static)
        results.update(Content(f"so far  {text}"))
        results.set_class(bool(text), "-some")

    def show(self, progress: RewriteProgress, request: int = 1, requests: int = 1) -> None:
        """A step was made, of `request` of the `requests` that a long file takes."""
        self._progress = progress
        self._request = f"part {request}/{requests}" if requests > 1 else ""
        self.query_one(ProgressBar).update(total=max(1, progress.lines), progress=progress.line)
        self._draw()

    def show_guesser(self, text: str) -> None:
        """Who guesses, and why."""
        self._say("guesser", f"guess   {label(text)}")

    def close(self) -> None:
        """Leave, as soon as nothing lies over it."""
        self._closes = True
        if self.is_active:
            self.dismiss()

    def on_screen_resume(self) -> None:
        """What lay over it is gone."""
        if self._closes and self.is_active:  # else it has left already
            self.dismiss()

    def action_rest(self) -> None:
        """Take the rest of the file as it is."""
        if self._progress is not None and not self._ending:
            self._ending = "ends as soon as the text is back at an old line ..."
            self.post_message(self.RestUnchanged())
            self._draw()

    def action_stop(self) -> None:
        """Stop, and ask what to do with what was written."""
        self._ending = "stopping ..."
        self.post_message(self.Stop())
        self._draw()

    def action_guesser(self) -> None:
        """Ask for another guesser."""
        self.post_message(self.NextGuesser())

    def on_resize(self, event: Resize) -> None:
        """Less is said where there is less room."""
        self.set_class(event.size.height < 11, "-short")
        self._draw()

    def _draw(self) -> None:
        progress, width = self._progress, max(1, min(92, self.size.width) - 4)
        self._say("instruction", shortened(f'"{self._instruction}"', width))
        if progress is not None:
            self._say("figures", fitted([*figures(progress), (4, self._request)], width))
            self._say("edits", f"edits   {edits(progress)}")
        else:
            self._say("figures", "reading ...")
            self._say("edits", label(self._forecast))
        self._say("rest", self._ending or ("" if progress is None else copying(progress)))
        keys = [part for key, what in _KEYS for part in ((key, "bold $footer-key-foreground"), f" {what}  ")]
        self.query_one("#rewriting-keys", Static).update(Content.assemble(*keys))

    def _say(self, part: str, text: str) -> None:
        self.query_one(f"#rewriting-{part}", Static).update(Content(text))
