"""The settings, docked beside the running chat. A change is posted at once; nothing here applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Self

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Checkbox, Input, RadioSet, Select, Static, TabbedContent, TabPane, TextArea

from specchat.live import Live
from specchat.settings import Settings
from specchat.tui.widgets import settings_tabs
from specchat.tui.widgets.settings_drafts import DraftField
from specchat.tui.widgets.settings_fields import DraftChoice, Field
from specchat.tui.widgets.settings_priced import PricedField

WIDTH = 46  # columns of the docked panel
NARROW = 80  # columns of a terminal below which it takes them all
_TABS = {"speculation": "Speculation", "sampling": "Sampling", "context": "Context", "view": "View"}


class SettingsPanel(Widget):
    """Every setting, in four tabs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close settings"),
        # Before the fields: a number longer than its field scrolls by these keys.
        Binding("ctrl+pagedown", "tab(1)", "Next tab", show=False, priority=True),
        Binding("ctrl+pageup", "tab(-1)", "Previous tab", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    SettingsPanel {
        dock: right;
        width: auto;
        height: 1fr;
        layout: vertical;
        border-left: vkey $accent;
        background: $surface;

        #settings-head { layout: horizontal; height: 1; padding: 0 1; }
        #settings-title { width: auto; text-style: bold; color: $text-accent; }
        #settings-keys { width: 1fr; text-align: right; color: $text-muted; }
        TabbedContent, ContentSwitcher, TabPane { height: 1fr; padding: 0; }
        .pane { height: 1fr; padding: 0 0 0 1; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }

        Field { height: auto; }
        .line { height: auto; }
        .label { width: 10; color: $text-muted; }
        .pane.-broad .label { width: 12; }
        .hint { height: auto; margin-left: 10; color: $text-muted; }
        .pane.-broad .hint { margin-left: 12; }
        .complaint { display: none; height: auto; margin-left: 10; color: $text-error; }
        .-wrong > .complaint { display: block; }
        .pane.-broad .complaint { margin-left: 12; }
        .words { width: 1fr; margin-left: 1; color: $text-muted; }
        Input { width: 8; background: $foreground 8%; padding: 0 1; }
        PerhapsField Input, LineField Input { width: 1fr; }
        Input:disabled { color: $text-disabled; background: transparent; }
        Select { width: 1fr; }
        Select > SelectCurrent { background: $foreground 8%; padding: 0 1; }
        Select > SelectCurrent #label { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        Select > SelectOverlay { border: none; max-height: 12; background: $panel; }
        Picks { layout: horizontal; width: auto; height: 1; background: transparent; overflow: hidden; }
        Picks.-many { layout: grid; grid-size: 3; grid-columns: 10 13 10; grid-rows: 1; width: 33; height: auto; }
        Pick, Tick { width: auto; margin-right: 2; background: transparent; }
        Pick > .toggle--button, Tick > .toggle--button { color: $foreground 60%; background: transparent; }
        Pick.-on > .toggle--button, Tick.-on > .toggle--button { color: $text-accent; background: transparent; }
        Picks:blur > Pick.-selected > .toggle--label { background: transparent; }
        TextField > .line { layout: vertical; }
        .pane.-broad TextField .label { width: 1fr; margin-top: 1; }
        .pane.-broad TextField > .hint, .pane.-broad TextField > .complaint { margin-left: 0; }
        .note { height: auto; color: $text-muted; }
        TextArea { height: 6; background: $foreground 8%; padding: 0 1; }
        TextsField TextArea { height: 3; }
        #settings-in-use { height: auto; margin-top: 1; }
        #settings-measured { height: auto; margin-top: 1; border-top: solid $foreground 20%; }
        #settings-measured { border-title-color: $text-muted; }

        &:ansi {
            #settings-keys, .label, .hint, .words, .note { text-style: dim; }
            Pick > .toggle--button, Tick > .toggle--button { background: ansi_default; }
            Pick.-on > .toggle--button, Tick.-on > .toggle--button { background: ansi_default; }
            Input, TextArea, Select > SelectCurrent, Select > SelectOverlay { background: $ansi-background; }
            Input:disabled { background: ansi_default; text-style: dim; }
            #settings-measured { border-top: solid $border-blurred; }
        }
    }
    """

    class Changed(Message):
        """A setting was changed by the user."""

        def __init__(self, settings: Settings) -> None:
            super().__init__()
            self.settings = settings

    class Closed(Message):
        """The user is done."""

    def __init__(
        self,
        settings: Settings,
        choices: Sequence[DraftChoice],
        decided: Mapping[str, str] | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """`decided` says by key what decides a setting before the file does."""
        super().__init__(id=id, classes=classes)
        self._settings = settings
        self._decided = decided or {}
        self._drafts = DraftField(choices)
        self._live: Live | None = None
        self._furnished: set[str] = set()
        self._price: Callable[[float], str] = lambda temperature: ""

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return (WIDTH if viewport.width >= NARROW else viewport.width) - self.gutter.width

    def compose(self) -> ComposeResult:
        # A plain widget: a child of relative width, as a Horizontal is, would stretch this one over the screen.
        yield Widget(
            Static("Settings", id="settings-title", markup=False),
            Static("Tab next  Space choose  Esc close", id="settings-keys", markup=False),
            id="settings-head",
        )
        with TabbedContent():
            for name, title in _TABS.items():
                with TabPane(title, id=f"settings-{name}"):
                    yield VerticalScroll(classes="pane" if name == "speculation" else "pane -broad", can_focus=False)

    @on(TabbedContent.TabActivated)
    async def _activated(self, event: TabbedContent.TabActivated) -> None:
        event.stop()
        await self._furnish(event.pane)

    async def _furnish(self, pane: TabPane) -> None:
        """Mount what stands in a tab when it is first opened: all at once would take twice as long to open."""
        if (name := str(pane.id).removeprefix("settings-")) in self._furnished:
            return
        self._furnished.add(name)
        contents: dict[str, Callable[[], Iterator[Widget]]] = {
            "speculation": lambda: settings_tabs.speculation(self._drafts),
            "sampling": settings_tabs.sampling,
            "context": settings_tabs.context,
            "view": lambda: settings_tabs.view(self.app.available_themes),
        }
        await pane.query_one(VerticalScroll).mount(*contents[name]())
        self._fill(pane)
        self._draw()

    async def on_mount(self) -> None:
        await self._furnish(self.query(TabPane).first())

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the first field of the open tab."""
        for pane in self.query(TabPane):
            if pane.id == self.query_one(TabbedContent).active:
                first = next((control for control in pane.query() if control.focusable), None)
                if first is not None:
                    first.focus(scroll_visible)
        return self

    def take(self, settings: Settings) -> None:
        """Show settings that were changed elsewhere, without a message."""
        self._settings = settings
        self._fill(self)

    def suggest(self, choices: Sequence[DraftChoice]) -> None:
        """Replace the draft models that can be chosen, as for another target."""
        self._drafts.suggest(choices)
        self._fill(self)

    def tell_price(self, price: Callable[[float], str]) -> None:
        """`price` says what a temperature costs; empty where that is not known."""
        self._price = price
        self._fill(self)

    def show(self, live: Live) -> None:
        """Draw what was measured on this chat."""
        self._live = live
        self._draw()

    def _fill(self, within: Widget) -> None:
        for field in within.query(Field):
            if field.is_mounted:
                field.show(_value(self._settings, field.key))
                field.tell_decided(self._decided.get(field.key, ""))
                if isinstance(field, PricedField):
                    field.tell_price(self._price)

    def _draw(self) -> None:
        for measured in self.query("#settings-measured").results(Static):
            measured.update(settings_tabs.measured(self._live))
        for in_use in self.query("#settings-in-use").results(Static):
            in_use.update(settings_tabs.in_use(self._live))

    @on(Checkbox.Changed)
    @on(Input.Changed)
    @on(RadioSet.Changed)
    @on(Select.Changed)
    @on(TextArea.Changed)
    def _changed(self, event: Message) -> None:
        event.stop()
        control = event.control
        field = next((node for node in control.ancestors if isinstance(node, Field)), None) if control else None
        if field is None:
            return
        try:
            settings = _with(self._settings, field.key, field.read())
        except ValueError as error:
            field.complain(str(error))
            return
        field.complain("")
        if settings != self._settings:
            self._settings = settings
            self.post_message(self.Changed(settings))

    def action_close(self) -> None:
        self.post_message(self.Closed())

    async def action_tab(self, by: int) -> None:
        """Go to the next tab or the one before it."""
        tabs, panes = self.query_one(TabbedContent), list(self.query(TabPane))
        pane = panes[([pane.id for pane in panes].index(tabs.active) + by) % len(panes)]
        await self._furnish(pane)
        tabs.active = str(pane.id)
        self.focus()


def _value(settings: Settings, key: str) -> object:
    return reduce(getattr, key.split("."), settings)


def _with(settings: Settings, key: str, value: object) -> Settings:
    section, _, name = key.rpartition(".")
    changed: dict[str, Any] = {name: value}
    if section:
        changed = {section: replace(getattr(settings, section), **changed)}
    return replace(settings, **changed)


__all__ = ["DraftChoice", "SettingsPanel"]
