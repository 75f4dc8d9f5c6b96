"""Fields of the settings panel: a label, something to choose or type with, and a line for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, RadioButton, RadioSet, Select, Static, TextArea

from specchat.console import printable
from specchat.tui.widgets.numbers import one_line
from specchat.tui.widgets.settings_controls import Allows, NumberInput, Picks, Prose, Tick

_MESSAGES = (Checkbox.Changed, Input.Changed, RadioButton.Changed, RadioSet.Changed, Select.Changed, TextArea.Changed)
_FIXED = "fixed"  # what the second pick of a PerhapsField stands for


class Field(Vertical):
    """One setting. `key` names it: section and name, joined by a dot."""

    def __init__(self, key: str, label: str, hint: str = "") -> None:
        super().__init__(id=f"settings-{key}".replace(".", "-").replace("_", "-"))
        self.key = key
        self._label = label
        self._hint = Static(hint, classes="hint", markup=False)
        self._hint.display = bool(hint)
        self._decided = Static(classes="hint", markup=False)
        self._decided.display = False
        self._complaint = Static(classes="complaint", markup=False)

    def controls(self) -> Sequence[Widget]:
        """What stands beside the label."""
        raise NotImplementedError

    def read(self) -> object:
        """The value that stands there. Raises ValueError that says what is wrong with it."""
        raise NotImplementedError

    def put(self, value: object) -> None:
        """Change the controls to a value."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Horizontal(classes="line"):
            yield Static(self._label, classes="label", markup=False)
            yield from self.controls()
        yield self._hint
        yield self._decided
        yield self._complaint

    def show(self, value: object) -> None:
        """Show a value without a message, and forget a complaint."""
        with self.prevent(*_MESSAGES):
            self.put(value)
        self.complain("")

    def hint(self, hint: str | Content) -> None:
        """What is said below the controls; nothing takes no line."""
        self._hint.update(hint)
        self._hint.display = bool(hint)

    def tell_decided(self, by: str) -> None:
        """Say what decides the setting at the next start, whatever is chosen here; nothing takes no line."""
        self._decided.update(f"from {printable(by)}")
        self._decided.display = bool(by)

    def complain(self, problem: str) -> None:
        """Say what is wrong; nothing takes the line away."""
        self._complaint.update(f"! {problem}")
        self.set_class(bool(problem), "-wrong")


class PickField(Field):
    """A setting that is one of a few, each with a label and perhaps a hint."""

    def __init__(
        self, key: str, label: str, labels: Mapping[object, str], hints: Mapping[object, str] | None = None
    ) -> None:
        super().__init__(key, label)
        self._picks = Picks(labels)
        self._hints = hints or {}

    def controls(self) -> Sequence[Widget]:
        return [self._picks]

    def read(self) -> object:
        return self._picks.chosen

    def put(self, value: object) -> None:
        self._picks.choose(value)
        self.hint(self._hints.get(value, ""))

    def on_radio_set_changed(self) -> None:
        self.hint(self._hints.get(self.read(), ""))


class TickField(Field):
    """A setting that is on or off."""

    def __init__(self, key: str, label: str, words: str) -> None:
        super().__init__(key, label)
        self._tick = Tick(key, words)

    def controls(self) -> Sequence[Widget]:
        return [self._tick]

    def read(self) -> object:
        return self._tick.value

    def put(self, value: object) -> None:
        self._tick.value = value is True


class TicksField(Field):
    """A setting that is any of a few words; its value is the tuple of them."""

    def __init__(self, key: str, label: str, labels: Mapping[str, str], hint: str = "") -> None:
        super().__init__(key, label, hint)
        self._ticks = [Tick(value, words) for value, words in labels.items()]

    def controls(self) -> Sequence[Widget]:
        return self._ticks

    def read(self) -> object:
        return tuple(tick.stands_for for tick in self._ticks if tick.value)

    def put(self, value: object) -> None:
        for tick in self._ticks:
            tick.value = isinstance(value, tuple) and tick.stands_for in value


class NumberField(Field):
    """A setting that is a number."""

    def __init__(self, key: str, label: str, words: str = "") -> None:
        super().__init__(key, label)
        self._allows = Allows(key)
        self._words = words
        self._input = NumberInput(validators=[self._allows], max_length=24, compact=True)

    def controls(self) -> Sequence[Widget]:
        return [self._input, Static(self._words, classes="words", markup=False)]

    def read(self) -> object:
        return self._allows.parse(self._input.value)

    def put(self, value: object) -> None:
        try:
            if self._allows.parse(self._input.value) == value:
                return  # "0.70" may stay as it was typed
        except ValueError:
            pass
        self._input.value = str(value)


class PerhapsField(NumberField):
    """A setting that is a number or, as None, left to a word: automatic, random, none."""

    def __init__(self, key: str, label: str, word: str, usual: int) -> None:
        super().__init__(key, label)
        self._picks = Picks({None: word, _FIXED: "fixed"})
        self._usual = usual

    def controls(self) -> Sequence[Widget]:
        return [self._picks, self._input]

    def read(self) -> object:
        return super().read() if self._picks.chosen == _FIXED else None

    def put(self, value: object) -> None:
        self._picks.choose(None if value is None else _FIXED)
        self._input.disabled = value is None
        super().put(self._usual if value is None else value)

    def on_radio_set_changed(self) -> None:
        self._input.disabled = self._picks.chosen is None


class ListField(Field):
    """A setting that is one of a list; by name, the label of each."""

    def __init__(self, key: str, label: str, entries: Mapping[str, Text]) -> None:
        super().__init__(key, label)
        self._entries = dict(entries)
        self._select: Select[str] = Select(self._options(), allow_blank=False, compact=True)

    def controls(self) -> Sequence[Widget]:
        return [self._select]

    def read(self) -> object:
        return self._select.value

    def put(self, value: object) -> None:
        name = str(value)
        if name not in self._entries:
            self.offer({**self._entries, name: Text(one_line(name))})
        self._select.value = name

    def offer(self, entries: Mapping[str, Text]) -> None:
        """Replace the list and choose its first."""
        self._entries = dict(entries)
        with self.prevent(*_MESSAGES):
            self._select.set_options(self._options())

    def _options(self) -> list[tuple[Text, str]]:
        return [(label, name) for name, label in self._entries.items()]


@dataclass(frozen=True, slots=True)
class DraftChoice:
    """A draft model in the list: its name in the settings, its label, and whether and why it fits the target."""

    name: str
    label: str
    fits: bool
    reason: str


class TextField(Field):
    """A setting that is a text of several lines, below its label."""

    def __init__(self, key: str, label: str, hint: str = "") -> None:
        super().__init__(key, label, hint)
        self._area = Prose(compact=True, tab_behavior="focus", highlight_cursor_line=False)
        self._whole = ""  # the text, of which the area shows what can be shown

    def controls(self) -> Sequence[Widget]:
        return [self._area]

    def read(self) -> object:
        return self._whole if self._area.text == printable(self._whole) else self._area.text

    def put(self, value: object) -> None:
        if self.read() != value:
            self._area.text = printable(str(value))
        self._whole = str(value)
