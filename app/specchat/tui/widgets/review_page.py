"""What a review looks like: lists, diff, reasons and figures, arranged by the room there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from specchat.attachments import label
from specchat.tui import review_words
from specchat.tui.diff_rows import rows_around
from specchat.tui.widgets.diff import DiffView
from specchat.tui.widgets.pick_list import PickList

if TYPE_CHECKING:
    from specchat.tui.reviewing import Reviewing

SIDE_BY_SIDE = 110  # columns from which old and new have room beside each other
COLUMN = 96  # from which the lists stand beside the diff ...
COLUMN_TOO = 150  # ... and from which they do so beside two columns of it
LOW, LOWER = 18, 11  # rows under which things leave the screen


class ReviewPage(Container):
    """Draws a review; whoever changes that calls `draw`."""

    DEFAULT_CSS = """
    ReviewPage {
        layout: vertical;
        & > Static { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        #review-title { background: $panel; color: $foreground; }
        #review-file { background: $boost; }
        #review-middle { height: 1fr; layout: vertical; }
        #review-side { height: auto; }
        #review-side > .head { display: none; height: 1; color: $text-muted; padding: 0 1; }
        #review-files { display: none; }
        #review-hunks { max-height: 5; }
        #review-main { height: 1fr; border-top: solid $foreground 20%; }
        #review-why { height: auto; max-height: 5; padding: 0 1; border-top: solid $foreground 20%; display: none; }
        #review-why.-some { display: block; }
        #review-figures { color: $text-muted; border-top: solid $foreground 20%; height: 2; display: none; }
        #review-figures.-some { display: block; }
        #review-keys { height: 2; background: $panel; text-overflow: clip; }

        &.-column {
            #review-middle { layout: horizontal; }
            #review-side { width: 32; height: 1fr; border-right: solid $foreground 20%; }
            #review-side > .head { display: block; }
            #review-files { display: block; max-height: 40%; margin-bottom: 1; }
            #review-hunks { max-height: 100%; height: 1fr; }
            #review-main { border-top: none; }
            &.-one #review-files, &.-one #review-files-head { display: none; }
        }
        &.-low {
            #review-keys { height: 1; }
            #review-figures { display: none; }
            #review-hunks { max-height: 3; }
            #review-why { max-height: 3; border-top: none; }
        }
        &.-lower {
            #review-keys, #review-title, #review-why, #review-side { display: none; }
            #review-main { border-top: none; }
        }
        &:ansi {
            #review-main, #review-why, #review-figures { border-top: solid $border-blurred; }
            .head, #review-figures { text-style: dim; }
        }
    }
    """

    def __init__(self, state: Reviewing, instruction: str) -> None:
        super().__init__()
        self._state = state
        self._instruction = instruction
        self._wants_side_by_side = False
        self._shown: tuple[object, ...] = ()  # what the diff was drawn from

    def compose(self) -> ComposeResult:
        """Title, file, lists, diff, reasons, figures, keys."""
        yield Static(id="review-title", markup=False)
        yield Static(id="review-file", markup=False)
        with Container(id="review-middle"):
            with Vertical(id="review-side"):
                yield Static(id="review-files-head", classes="head", markup=False)
                yield PickList(lambda item, width: review_words.file_item(self._state, item, width), id="review-files")
                yield Static(id="review-hunks-head", classes="head", markup=False)
                yield PickList(lambda item, width: review_words.hunk_item(self._state, item, width), id="review-hunks")
            with Vertical(id="review-main"):
                yield DiffView(id="review-diff")
                yield Static(id="review-why", markup=False)
        yield Static(id="review-figures", markup=False)
        yield Static(id="review-keys", markup=False)

    @property
    def side_by_side(self) -> bool:
        """Whether old and new stand beside each other now."""
        return self._wants_side_by_side and self.size.width >= SIDE_BY_SIDE

    def toggle_side_by_side(self) -> None:
        """Old and new beside each other where there is room, or below."""
        self._wants_side_by_side = not self._wants_side_by_side
        self._arrange()
        self.draw()

    def draw(self) -> None:
        """Show what the review stands at."""
        state, width = self._state, self.size.width - 2
        if width < 0 or not self.is_mounted:
            return
        file, hunk = state.file, state.hunk
        self._say("title", review_words.title(self._instruction, state, width))
        self._say("file", review_words.file_line(state, width, side_by_side=self.side_by_side))
        self._say("keys", review_words.keys(width, 1 if self.has_class("-low") else 2))
        self._say("figures", label(file.figures))
        self._say("why", review_words.reasons(state))
        self._say("files-head", f"FILES  {len(state.files)}")
        self._say("hunks-head", f"HUNKS  {state.order}")
        self.query_one("#review-files", PickList).show(len(state.files), state.number)
        self.query_one("#review-hunks", PickList).show(len(state.listed), state.position)
        shown = (file.review.hunks, state.number, "" if hunk is None else hunk.id, self.side_by_side)
        if shown != self._shown:
            self._shown = shown
            rows = rows_around(file, hunk, side_by_side=self.side_by_side)
            self.query_one(DiffView).show(rows, "" if hunk is None else hunk.id)

    def on_resize(self, event: Resize) -> None:
        """Arrange all for another size."""
        self._arrange()
        self.draw()

    def _say(self, part: str, text: Content | str) -> None:
        line = self.query_one(f"#review-{part}", Static)
        line.update(text if isinstance(text, Content) else Content(text))
        line.set_class(bool(text), "-some")

    def _arrange(self) -> None:
        width, height = self.size
        self.set_class(width >= (COLUMN_TOO if self.side_by_side else COLUMN) and height >= LOW, "-column")
        self.set_class(len(self._state.files) == 1, "-one")
        self.set_class(height < LOW, "-low")
        self.set_class(height < LOWER, "-lower")
