"""Which draft model guesses: the models that could, and why others cannot."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.content import Content
from textual.widgets import Select

from specchat.tui.widgets.numbers import one_line
from specchat.tui.widgets.settings_fields import DraftChoice, ListField

_TOLD = 3  # models that do not fit, of which each is told below the list; of more only how many


class DraftField(ListField):
    """Which draft model guesses; those that do not fit are listed, greyed, and cannot be chosen."""

    def __init__(self, choices: Sequence[DraftChoice]) -> None:
        self._choices = {choice.name: choice for choice in choices}
        self._chosen = "auto"
        super().__init__("guess.draft", "Draft", self._labels())

    def suggest(self, choices: Sequence[DraftChoice]) -> None:
        """Replace the models that can be chosen."""
        self._choices = {choice.name: choice for choice in choices}
        if self._select.is_mounted:
            self.offer(self._labels())

    def on_mount(self) -> None:
        self.suggest(list(self._choices.values()))

    def put(self, value: object) -> None:
        super().put(value)
        self._chosen = str(value)
        self._explain()

    def on_select_changed(self, event: Select.Changed) -> None:
        refused = self._choices.get(str(self.read()))
        if refused is None or refused.fits or refused.name == self._chosen:
            self._chosen = str(self.read())
            self._explain()
            return
        event.stop()
        self.show(self._chosen)
        self.complain(f"{one_line(refused.label)}: {one_line(refused.reason)}")

    def _labels(self) -> dict[str, Text]:
        return {"auto": Text("auto"), "none": Text("none")} | {
            choice.name: Text(one_line(choice.label))
            if choice.fits
            else Text(f"{one_line(choice.label)}\n  no: {one_line(choice.reason)}", style="dim")
            for choice in self._choices.values()
        }

    def _explain(self) -> None:
        chosen = self._choices.get(self._chosen)
        unfit = [choice for choice in self._choices.values() if not choice.fits]
        lines = []
        if chosen is not None and chosen.fits and chosen.reason:
            lines.append(f"ok: {one_line(chosen.reason)}")
        elif chosen is not None and not chosen.fits:
            lines.append(f"no: {one_line(chosen.reason)}")
        if len(unfit) > _TOLD:
            lines.append(f"{len(unfit)} do not fit; the list says why")
        else:
            others = [choice for choice in unfit if choice is not chosen]
            lines += [f"no: {one_line(choice.label)}, {one_line(choice.reason)}" for choice in others]
        self.hint(Content("\n".join(lines)))
