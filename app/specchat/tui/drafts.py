"""Which draft models there are for a target, and why some of them do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specchat.catalogue import CatalogueError
from specchat.console import size
from specchat.tui.widgets.settings_fields import DraftChoice

if TYPE_CHECKING:
    from specchat.tui.messages import Loaded


def draft_choices(loaded: Loaded | None) -> list[DraftChoice]:
    """The catalogued drafts: those that are here fit as far as is known before they are loaded."""
    from specchat.opening import Shelf

    try:
        shelf = Shelf()
    except CatalogueError:
        return []
    choices = []
    for model in shelf.catalogue.models:
        label = f"{model.title} {model.file.quantization}, {size(model.file.size)}"
        if loaded is not None and not loaded.can_guess:
            choices.append(DraftChoice(model.id, label, False, f"{loaded.title} cannot take tokens back"))
        elif model.file.name.removesuffix(".gguf") == (None if loaded is None else loaded.name):
            choices.append(DraftChoice(model.id, label, False, "this is the target itself"))
        elif not shelf.store.has(model):
            choices.append(DraftChoice(model.id, label, False, "not here yet: Ctrl+L fetches it"))
        elif loaded is not None and model.file.size >= loaded.size_bytes:
            choices.append(DraftChoice(model.id, label, False, "no smaller than the target"))
        else:
            choices.append(DraftChoice(model.id, label, True, ""))
    return choices
