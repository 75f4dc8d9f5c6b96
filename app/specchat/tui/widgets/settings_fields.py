"""Fields of the settings panel: a label, something to choose or type with, and a line for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, OptionList, RadioButton, RadioSet, Select, Static, TextArea

from specchat.tui.widgets.panel import one_line
from specchat.tui.widgets.settings_controls import Allows, Picks, Tick

_MESSAGES = (Checkbox.Changed, Input.Changed, RadioButton.Changed, RadioSet.Changed, Select.Changed, TextArea.Changed)
_FIXED = "fixed"  # what the second pick of a PerhapsField stands for


class Field(Vertical):
    """One setting. `key` names it: section and name, joined by a dot."""

    def __init__(self, key: str, label: str, hint: str = "") -> None:
        super().__init__(id=key.replace(".", "-").replace("_", "-"))
        self.key = key
        self._label = label
        self._hint = Static(hint, classes="hint", markup=False)
        self._hint.display = bool(hint)
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
        self._input = Input(validators=[self._allows], max_length=24, compact=True)

    def controls(self) -> Sequence[Widget]:
        return [self._input, Static(self._words, classes="words", markup=False)]

    def read(self) -> object:
        return self._allows.parse(self._input.value)

    def put(self, value: object) -> None:
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
    """A setting that is one of a list, whose labels are shown as they are."""

    def __init__(self, key: str, label: str, entries: Mapping[str, str]) -> None:
        super().__init__(key, label)
        self._entries = dict(entries)
        self._unfit: frozenset[str] = frozenset()
        self._select: Select[str] = Select(self._options(), allow_blank=False, compact=True)

    def controls(self) -> Sequence[Widget]:
        return [self._select]

    def read(self) -> object:
        return self._select.value

    def put(self, value: object) -> None:
        name = str(value)
        if name not in self._entries:
            self.offer({**self._entries, name: name}, self._unfit)
        self._select.value = name

    def offer(self, entries: Mapping[str, str], unfit: frozenset[str] = frozenset()) -> None:
        """Replace the list and choose its first; the `unfit` are seen and cannot be chosen."""
        self._entries, self._unfit = dict(entries), unfit
        with self.prevent(*_MESSAGES):
            self._select.set_options(self._options())
        options = self._select.query_one(OptionList)
        for at, name in enumerate(self._entries):
            if name in unfit:
                options.disable_option_at_index(at)

    def _options(self) -> list[tuple[Content, str]]:
        return [(Content(label), name) for name, label in self._entries.items()]


class TextField(Field):
    """A setting that is a text of several lines, below its label."""

    def __init__(self, key: str, label: str, hint: str = "") -> None:
        super().__init__(key, label, hint)
        self._area = TextArea(compact=True, tab_behavior="focus", highlight_cursor_line=False)

    def controls(self) -> Sequence[Widget]:
        return [self._area]

    def read(self) -> object:
        return self._area.text

    def put(self, value: object) -> None:
        if self._area.text != value:
            self._area.text = str(value)


@dataclass(frozen=True, slots=True)
class DraftChoice:
    """A draft model in the list: its name in the settings, its label, and whether and why it fits the target."""

    name: str
    label: str
    fits: bool
    reason: str


class DraftField(ListField):
    """Which draft model guesses; those that do not fit are listed with the reason."""

    def __init__(self, choices: Sequence[DraftChoice]) -> None:
        self._choices = {choice.name: choice for choice in choices}
        super().__init__("guess.draft", "Draft", self._labels())

    def on_mount(self) -> None:
        self.suggest(list(self._choices.values()))

    def suggest(self, choices: Sequence[DraftChoice]) -> None:
        """Replace the models that can be chosen."""
        self._choices = {choice.name: choice for choice in choices}
        self.offer(self._labels(), frozenset(choice.name for choice in choices if not choice.fits))

    def put(self, value: object) -> None:
        super().put(value)
        self._explain()

    def on_select_changed(self) -> None:
        self._explain()

    def _labels(self) -> dict[str, str]:
        models = {choice.name: one_line(choice.label) for choice in self._choices.values()}
        return {"auto": "auto", "none": "none", **models}

    def _explain(self) -> None:
        name = str(self.read())
        chosen = self._choices.get(name)
        lines = []
        if chosen is not None and chosen.fits:
            lines.append(Content(f"ok: {one_line(chosen.reason)}"))
        elif name not in ("auto", "none"):
            lines.append(Content("the settings name it; not in the list of what is here"))
        unfit = [choice for choice in self._choices.values() if not choice.fits]
        lines += [Content(f"no: {one_line(choice.label)}, {one_line(choice.reason)}") for choice in unfit]
        self.hint(Content("\n").join(lines))
