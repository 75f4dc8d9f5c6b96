"""What the models screen says of a model: its row, its paragraph, the question before it is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from specchat.attachments import label
from specchat.catalogue import Model
from specchat.console import size
from specchat.recommended import memory_bytes
from specchat.tui.fetches import Fetch, State

if TYPE_CHECKING:  # loads the engine, which the first frame does not wait for
    from specchat.shelf import Shelf

COLUMNS = (" ", "NAME", "QUANT", "SIZE", "STATE", "FITS IN MEMORY")
WIDE_COLUMNS = (" ", "NAME", "QUANT", "SIZE", "ROLE", "DRAFT", "STATE", "FITS IN MEMORY")


class Facts:
    """The catalogue, the files that are here and the memory, in words."""

    def __init__(self, shelf: Shelf, loaded: str | None, free_bytes: int | None) -> None:
        self._shelf = shelf
        self._loaded = loaded
        self._free_bytes = free_bytes

    def loaded_id(self) -> str | None:
        """The id of the model in use, when the catalogue has it."""
        for model in self._shelf.catalogue.models:
            if self._is_loaded(model):
                return model.id
        return None

    def draft(self, model: Model) -> Model | None:
        """The draft model that the catalogue pairs with this one."""
        return None if model.draft is None else self._shelf.catalogue.find(model.draft)

    def answers(self, model: Model, words: Sequence[str]) -> bool:
        """Whether every word, in lower case, is somewhere in what names the model."""
        said = " ".join((model.id, model.title, model.file.quantization, *model.roles)).lower()
        return all(word in said for word in words)

    def headline(self) -> str:
        """The memory there is, and the model in use."""
        memory = "memory: not known here" if self._free_bytes is None else f"{_gb(self._free_bytes)} GB of memory free"
        if self._loaded is None:
            return f"{memory}, no model loaded"
        return f"{memory}, loaded: {label(self.loaded_id() or self._loaded)}"

    def state(self, model: Model, fetch: Fetch | None) -> str:
        """What there is of a model, in a word, or how far its fetch is."""
        if self._is_loaded(model):
            return "loaded"
        if fetch is not None and fetch.is_open:
            return fetch.share
        if self._shelf.store.has(model):
            return "here"
        if fetch is not None and fetch.state is State.FAILED:
            return fetch.state
        return "part" if self._shelf.store.begun(model) else "no pin" if model.why_not_fetched else "-"

    def row(self, model: Model, fetch: Fetch | None, *, wide: bool) -> list[Text]:
        """The cells of a model, for WIDE_COLUMNS or COLUMNS."""
        loaded, here = self._is_loaded(model), self._shelf.store.has(model)
        state = self.state(model, fetch)
        style = "bold" if loaded else "" if here else "dim"
        cells = [
            Text("*" if loaded else " ", style),
            Text(label(model.id), style),
            Text(label(model.file.quantization), style),
            Text(size(model.file.size), style, justify="right"),
        ]
        if wide:
            cells += [Text(", ".join(model.roles), style), Text(label(model.draft or "-"), style)]
        return [*cells, Text(state, style), Text(self._fits(memory_bytes(model)), style)]

    def about(self, model: Model, fetch: Fetch | None = None) -> str:
        """A few lines on one model: what it is, what goes with it, what Enter does."""
        licence = self._shelf.catalogue.licence(model)
        terms = "" if licence is None or licence.terms == "open" else f" ({licence.terms})"
        named = label(licence.title if licence else model.licence)
        lines = [f"{label(model.title)}, trained on {model.context:,} tokens, {named}{terms}"]
        need = memory_bytes(model)
        if (draft := self.draft(model)) is not None:
            both = need + memory_bytes(draft)
            lines.append(f"guesses come from {label(draft.id)}; both: {self._needs(both)}")
        else:
            targets = [label(other.id) for other in self._shelf.catalogue.models if other.draft == model.id]
            lines.append(
                f"drafts for {', '.join(targets)}" if targets else "guesses come from the text itself (lookup)"
            )
            lines[-1] += f"; {self._needs(need)}"
        if self._is_loaded(model):
            lines.append("loaded now")
        elif "target" not in model.roles:
            lines.append("only drafts for other models; the settings (F2) take it")
        elif self._shelf.store.has(model):
            lines.append("here: Enter loads it")
        elif fetch is not None and fetch.is_open:
            lines.append("being fetched: x stops that")
        elif fetch is not None and fetch.state is State.FAILED:
            lines.append(f"{label(fetch.problem)}; p tries again")
        elif model.why_not_fetched:
            lines.append(label(model.why_not_fetched))
        elif self._shelf.store.begun(model):
            lines.append("a part is here: p goes on fetching")
        else:
            lines.append(f"not here: p fetches {size(model.file.size)}, after a question")
        return "\n".join(lines)

    def offer(self, models: Sequence[Model]) -> str:
        """The question before a fetch: what, how much, where to."""
        lines = [f"{label(model.title)}, {size(model.file.size)}" for model in models]
        if len(models) > 1:
            lines[1] += ", which drafts for it"
        lines += ["", f"into {label(str(self._shelf.store.path(models[0]).parent))}"]
        lines += [label(text) for text in dict.fromkeys(map(self._shelf.catalogue.warning, models)) if text]
        need = memory_bytes(models[0])
        if self._free_bytes is not None and need > self._free_bytes:
            lines.append(f"It does not fit: {self._needs(need)}.")
        return "\n".join(lines)

    def offers(self, models: Sequence[Model]) -> list[tuple[str, Sequence[Model]]]:
        """The answers to it, and the models that each fetches."""
        total = size(sum(model.file.size for model in models))
        choices: list[tuple[str, Sequence[Model]]] = [(f"Fetch {total}", models)]
        if len(models) > 1:
            choices = [(f"Fetch both, {total}", models), (f"Only the first, {size(models[0].file.size)}", models[:1])]
        return [*choices, ("Not now", ())]

    def _is_loaded(self, model: Model) -> bool:
        return self._loaded in (model.id, model.file.name, model.file.name.removesuffix(".gguf"))

    def _fits(self, need_bytes: int) -> str:
        if self._free_bytes is None:
            return f"? needs {_gb(need_bytes)} GB"
        answer = "yes" if need_bytes <= self._free_bytes else "no"
        return f"{answer}, {_gb(need_bytes)} of {_gb(self._free_bytes)} GB"

    def _needs(self, need_bytes: int) -> str:
        needs = f"about {_gb(need_bytes)} GB of memory"
        if self._free_bytes is None or need_bytes <= self._free_bytes:
            return needs
        return f"{needs}, {_gb(need_bytes - self._free_bytes)} GB more than is free"


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f}"
