"""The models screen (Ctrl+L): what the catalogue knows, what is here, what fits, and the way from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import DataTable, Static

from specchat.attachments import label
from specchat.catalogue import Model
from specchat.tui.screens.fetching import Fetching
from specchat.tui.screens.line import Line
from specchat.tui.screens.model_facts import COLUMNS, WIDE_COLUMNS, Facts
from specchat.tui.screens.question import Question

if TYPE_CHECKING:  # loads the engine, which the first frame does not wait for
    from specchat.opening import Shelf

WIDE = 108  # columns from which the table has room for all it can say
LOW = 22  # rows under which the table needs nearly all of them
TINY = 10  # and where even its head is too much
KEYS = (("Enter", "load"), ("p", "fetch"), ("x", "stop fetching"), ("/", "filter"), ("Esc", "close"))


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The target to load, by its id, and the draft model that the catalogue pairs with it where that is here."""

    name: str
    draft: str | None


class ModelScreen(ModalScreen[ModelChoice | None]):
    """Chooses a model, and fetches the missing ones meanwhile; None when left."""

    DEFAULT_CSS = """
    ModelScreen {
        align: center middle;
        & > Vertical {
            width: 112;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        Static { height: auto; }
        #models-memory { color: $text-muted; margin-bottom: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        DataTable { height: auto; max-height: 40vh; background: $surface; background-tint: $surface; }
        #models-filter { display: none; }
        #models-about { margin-top: 1; }
        #models-news { margin-top: 1; }
        #models-news.-problem { color: $text-error; }
        #models-keys { margin-top: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-filtered #models-filter { display: block; }
        &.-low {
            Vertical { height: 100%; }
            DataTable { height: 1fr; max-height: 100%; scrollbar-size-horizontal: 0; }
            #models-about, #models-memory { display: none; }
            #models-news, #models-keys, Fetching { margin: 0; }
        }
        &.-tiny #models-keys { display: none; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "fetch", "Fetch"),
        Binding("x", "stop", "Stop fetching"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "leave", "Close"),
    ]

    def __init__(self, shelf: Shelf, loaded: str | None, free_bytes: int | None) -> None:
        """`loaded` is the id or the file of the model in use; `free_bytes` the memory that one more can have."""
        super().__init__()
        self._shelf = shelf
        self._facts = Facts(shelf, loaded, free_bytes)
        self._shown: list[Model] = []
        self._wide = False

    def compose(self) -> ComposeResult:
        """Memory, the table, the marked model in words, the fetch that runs."""
        box = Vertical()
        box.border_title = "Models"
        with box:
            yield Static(Content(self._facts.headline()), id="models-memory", markup=False)
            yield DataTable[Text](cursor_type="row")
            yield Line("filter: words of a name", id="models-filter")
            yield Static(id="models-about", markup=False)
            yield Fetching(self._shelf.store)
            yield Static(id="models-news", markup=False)
            keys = [(("  " if at else "") + key, f" {what}") for at, (key, what) in enumerate(KEYS)]
            parts = [part for key, what in keys for part in ((key, "bold $footer-key-foreground"), what)]
            yield Static(Content.assemble(*parts), id="models-keys", markup=False)

    def on_mount(self) -> None:
        """The loaded model is marked first, else the one that newcomers start with."""
        self._wide = self.app.size.width >= WIDE
        self._fill(self._facts.loaded_id() or self._shelf.catalogue.default_target)
        self._table.focus()

    @on(Resize)
    def _resized(self, message: Resize) -> None:
        self.set_class(message.size.height < LOW, "-low")
        self.set_class(message.size.height < TINY, "-tiny")
        self._table.show_header = message.size.height >= TINY
        if (message.size.width >= WIDE) != self._wide:
            self._wide = not self._wide
            self._fill()

    @on(Fetching.Ended)
    def _ended(self, message: Fetching.Ended) -> None:
        self._fill()
        if message.problem:
            self._tell(message.problem, is_problem=True)
        elif message.stopped:
            self._tell(f"stopped; what has arrived whole of {message.model.id} is kept, and p goes on from there")
        else:
            self._tell(f"{message.model.id} is here; Enter loads the marked model")

    @on(DataTable.RowHighlighted)
    def _highlighted(self) -> None:
        model = self._marked()
        text = "" if model is None else self._facts.about(model)
        about = Content(text).stylize("bold", 0, text.find("\n"))
        self.query_one("#models-about", Static).update(about)

    @on(DataTable.RowSelected)
    def _chosen(self) -> None:
        model = self._marked()
        if model is None:
            return
        if "target" not in model.roles:
            self._tell(f"{model.id} only drafts for other models; the settings (F2) take it")
        elif not self._shelf.store.has(model):
            self.action_fetch()
        else:
            draft = self._facts.draft(model)
            here = draft is not None and self._shelf.store.has(draft)
            self._leave(ModelChoice(model.id, draft.id if draft is not None and here else None))

    @on(Line.Changed)
    def _filtered(self) -> None:
        self._fill()

    @on(Line.Submitted)
    def _filter_done(self) -> None:
        self._table.focus()

    def action_filter(self) -> None:
        """Show only some models."""
        self.add_class("-filtered")
        self.query_one(Line).focus()

    def action_fetch(self) -> None:
        """Offer to fetch the marked model."""
        model = self._marked()
        if model is None:
            return
        if self._fetching.running:
            self._tell("one at a time: x stops the fetch that runs")
        elif self._shelf.store.has(model):
            self._tell(f"{model.id} is here already")
        else:
            draft = self._facts.draft(model)
            models = [model] if draft is None or self._shelf.store.has(draft) else [model, draft]
            self._offer(models)

    def action_stop(self) -> None:
        """Stop the fetch that runs."""
        self._fetching.stop()

    def action_leave(self) -> None:
        """Drop the filter, else close."""
        if self.has_class("-filtered"):
            self.remove_class("-filtered")
            self.query_one(Line).value = ""
            self._table.focus()
        else:
            self._leave(None)

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    @property
    def _fetching(self) -> Fetching:
        return self.query_one(Fetching)

    def _offer(self, models: Sequence[Model]) -> None:
        def answered(number: int | None) -> None:
            if number is not None:
                self._fetching.start(choices[number][1])

        choices = self._facts.offers(models)
        question = Question("Fetch?", self._facts.offer(models), [words for words, _ in choices])
        self.app.push_screen(question, answered)

    def _leave(self, choice: ModelChoice | None) -> None:
        def answered(number: int | None) -> None:
            if number == 1:
                self._fetching.stop()
                self.dismiss(choice)

        if not self._fetching.running:
            self.dismiss(choice)
            return
        text = "A model is being fetched. What has arrived whole is kept, and p goes on from there later."
        self.app.push_screen(Question("Leave?", text, ["Stay", "Stop fetching and leave"]), answered)

    def _marked(self) -> Model | None:
        at = self._table.cursor_row
        return self._shown[at] if 0 <= at < len(self._shown) else None

    def _fill(self, marked: str | None = None) -> None:
        """Draw the table anew, the mark on the same model as before, or on `marked`."""
        before = self._marked()
        marked = marked or (before.id if before is not None else None)
        words = self.query_one(Line).value.lower().split()
        table = self._table
        table.clear(columns=True)
        table.add_columns(*(WIDE_COLUMNS if self._wide else COLUMNS))
        self._shown = [model for model in self._shelf.catalogue.models if self._facts.answers(model, words)]
        for model in self._shown:
            table.add_row(*self._facts.row(model, wide=self._wide), key=model.id)
        ids = [model.id for model in self._shown]
        if marked in ids:
            table.move_cursor(row=ids.index(marked))
        self._highlighted()

    def _tell(self, text: str, *, is_problem: bool = False) -> None:
        news = self.query_one("#models-news", Static)
        news.update(Content(label(text)))
        news.set_class(is_problem, "-problem")
