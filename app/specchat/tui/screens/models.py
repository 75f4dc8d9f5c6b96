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
from textual.widgets.data_table import ColumnKey

from specchat.attachments import label
from specchat.catalogue import Model
from specchat.settings.endpoints import Endpoint
from specchat.tui.fetches import Fetches, State
from specchat.tui.screens import endpoint_facts
from specchat.tui.screens.fetching import Fetching
from specchat.tui.screens.line import Line
from specchat.tui.screens.model_facts import COLUMNS, WIDE_COLUMNS, Facts
from specchat.tui.screens.question import Question

if TYPE_CHECKING:  # loads the engine, which the first frame does not wait for
    from specchat.shelf import Shelf

WIDE = 108  # columns from which the table has room for all it can say
LOW = 22  # rows under which the table needs nearly all of them
TINY = 10  # and where even its head is too much
KEYS = (
    ("Enter", "load"), ("p", "fetch"), ("x", "stop it"), ("X", "stop all"), ("t", "try"), ("/", "filter"),
    ("Esc", "close"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The target to load, by its id, and the draft model that the catalogue pairs with it where that is here; or a
    server to connect to."""

    name: str
    draft: str | None
    endpoint: Endpoint | None = None
    is_trial: bool = False  # not to be loaded: the name is that of a draft model to try on the last replies


class ModelScreen(ModalScreen[ModelChoice | None]):
    """Chooses a model, and fetches missing ones, which goes on when it is left; None when left without a choice."""

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
        Binding("x", "stop", "Stop a fetch"),
        Binding("X", "stop_all", "Stop all fetches"),
        Binding("t", "try_draft", "Try as a draft on the last replies"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "leave", "Close"),
    ]

    def __init__(
        self,
        shelf: Shelf,
        fetches: Fetches,
        loaded: str | None,
        free_bytes: int | None,
        news: str = "",
        endpoints: Sequence[Endpoint] = (),
        connected: Endpoint | None = None,
    ) -> None:
        """`loaded` is the id or the file of the model in use, `free_bytes` the memory for one more, `news` a text.

        `endpoints` are the servers to offer, `connected` the one that answers now.
        """
        super().__init__()
        self._shelf, self._news = shelf, news
        self._fetches = fetches
        self._states: dict[str, State] = {}  # of fetches, as the table shows them
        self._state_column: ColumnKey | None = None
        self._facts = Facts(shelf, loaded, free_bytes)
        self._endpoints, self._connected = tuple(endpoints), connected
        self._shown: list[Model] = []
        self._servers: list[Endpoint] = []  # that are shown, below the models
        self._wide = False

    def compose(self) -> ComposeResult:
        """Memory, the table, the marked model in words, the fetch that runs."""
        box = Vertical()
        box.border_title = "Models"
        with box:
            server = self._connected
            headline = self._facts.headline() if server is None else f"connected to {label(server.told)}"
            yield Static(Content(headline), id="models-memory", markup=False)
            yield DataTable[Text](cursor_type="row")
            yield Line("filter: words of a name", id="models-filter")
            yield Static(id="models-about", markup=False)
            yield Fetching(self._fetches)
            yield Static(id="models-news", markup=False)
            keys = [(("  " if at else "") + key, f" {what}") for at, (key, what) in enumerate(KEYS)]
            parts = [part for key, what in keys for part in ((key, "bold $footer-key-foreground"), what)]
            yield Static(Content.assemble(*parts), id="models-keys", markup=False)

    def on_mount(self) -> None:
        """The loaded model is marked first, else the one that newcomers start with."""
        self._wide = self.app.size.width >= WIDE
        connected = None if self._connected is None else _key(self._connected)
        self._fill(connected or self._facts.loaded_id() or self._shelf.catalogue.default_target)
        self._table.focus()
        self._tell(self._news)

    @on(Resize)
    def _resized(self, message: Resize) -> None:
        self.set_class(message.size.height < LOW, "-low")
        self.set_class(message.size.height < TINY, "-tiny")
        self._table.show_header = message.size.height >= TINY
        if (message.size.width >= WIDE) != self._wide:
            self._wide = not self._wide
            self._fill()

    @on(Fetching.Moved)
    def _moved(self, message: Fetching.Moved) -> None:
        fetch = message.fetch
        if self._states.get(fetch.model.id) is not fetch.state:
            self._states[fetch.model.id] = fetch.state
            self._fill()
        elif fetch.model in self._shown and self._state_column is not None:
            self._table.update_cell(fetch.model.id, self._state_column, Text(fetch.share, "dim"))
        if fetch.problem:
            self._tell(f"{fetch.model.id}: {fetch.problem}", is_problem=True)
        elif fetch.state is State.STOPPED:
            self._tell(f"stopped; what has arrived whole of {fetch.model.id} is kept, and p goes on from there")
        elif fetch.state is State.DONE:
            self._tell(f"{fetch.model.id} is here; Enter loads the marked model")

    @on(DataTable.RowHighlighted)
    def _highlighted(self) -> None:
        model = self._marked()
        text = "" if model is None else self._facts.about(model, self._fetches.of(model))
        if (server := self._marked_server()) is not None:
            text = endpoint_facts.about(server, in_use=server == self._connected)
        about = Content(text).stylize("bold", 0, text.find("\n"))
        self.query_one("#models-about", Static).update(about)

    @on(DataTable.RowSelected)
    def _chosen(self) -> None:
        if (server := self._marked_server()) is not None:
            self.dismiss(ModelChoice(server.name, None, server))
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
            self.dismiss(ModelChoice(model.id, draft.id if draft is not None and here else None))

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
        """Offer to fetch the marked model, after those that are asked for already."""
        model = self._marked()
        if model is None:
            return
        if self._is_coming(model):
            self._tell(f"{model.id} is being fetched; x stops that")
        elif self._shelf.store.has(model):
            self._tell(f"{model.id} is here already")
        elif model.why_not_fetched:
            self._tell(model.why_not_fetched)
        else:
            draft = self._facts.draft(model)
            alone = draft is None or self._shelf.store.has(draft) or self._is_coming(draft) or draft.why_not_fetched
            self._offer([model] if draft is None or alone else [model, draft])

    def action_stop(self) -> None:
        """Stop the fetch of the marked model, or the one that runs."""
        model, running = self._marked(), self._fetches.running
        if model is not None and self._is_coming(model):
            self._fetches.stop(model)
        elif running is not None:
            self._fetches.stop(running.model)

    def action_try_draft(self) -> None:
        """Choose the marked model for a trial as a draft, where it is here."""
        model = self._marked()
        if model is None:
            return
        if self._shelf.store.has(model):
            self.dismiss(ModelChoice(model.id, None, is_trial=True))
        else:
            self._tell(f"{model.id} is not here yet: p fetches it, t then tries it as a draft on your last replies")

    def action_stop_all(self) -> None:
        """Stop all fetches."""
        self._fetches.stop_all()

    def action_leave(self) -> None:
        """Drop the filter, else close."""
        if self.has_class("-filtered"):
            self.remove_class("-filtered")
            self.query_one(Line).value = ""
            self._table.focus()
        else:
            self.dismiss(None)

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def _is_coming(self, model: Model) -> bool:
        fetch = self._fetches.of(model)
        return fetch is not None and fetch.is_open

    def _offer(self, models: Sequence[Model]) -> None:
        def answered(number: int | None) -> None:
            if number is not None:
                self._fetches.add(choices[number][1])

        choices = self._facts.offers(models)
        question = Question("Fetch?", self._facts.offer(models), [words for words, _ in choices])
        self.app.push_screen(question, answered)

    def _marked(self) -> Model | None:
        at = self._table.cursor_row
        return self._shown[at] if 0 <= at < len(self._shown) else None

    def _marked_server(self) -> Endpoint | None:
        at = self._table.cursor_row - len(self._shown)
        return self._servers[at] if 0 <= at < len(self._servers) else None

    def _fill(self, marked: str | None = None) -> None:
        """Draw the table anew, the mark on the same model as before, or on `marked`."""
        before, server = self._marked(), self._marked_server()
        key = None if server is None else _key(server)
        marked = marked or (before.id if before is not None else key)
        words = self.query_one(Line).value.lower().split()
        table = self._table
        table.clear(columns=True)
        columns = WIDE_COLUMNS if self._wide else COLUMNS
        self._state_column = table.add_columns(*columns)[columns.index("STATE")]
        offered = self._shelf.catalogue.offered(self._shelf.store.has)
        self._shown = [model for model in offered if self._facts.answers(model, words)]
        for model in self._shown:
            table.add_row(*self._facts.row(model, self._fetches.of(model), wide=self._wide), key=model.id)
        self._servers = [each for each in self._endpoints if endpoint_facts.answers(each, words)]
        for each in self._servers:
            in_use = each == self._connected
            table.add_row(*endpoint_facts.row(each, in_use=in_use, wide=self._wide), key=_key(each))
        ids = [*(model.id for model in self._shown), *map(_key, self._servers)]
        if marked in ids:
            table.move_cursor(row=ids.index(marked))
        self._highlighted()

    def _tell(self, text: str, *, is_problem: bool = False) -> None:
        news = self.query_one("#models-news", Static)
        news.update(Content(label(text)))
        news.set_class(is_problem, "-problem")


def _key(endpoint: Endpoint) -> str:
    """Of its row; no id of a model has a blank in it."""
    return f"server {endpoint.name or endpoint.url}"
