"""Which draft models there are for a target, and why some of them do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specchat.catalogue import Catalogue, CatalogueError
from specchat.console import size
from specchat.tui.widgets.settings_fields import DraftChoice

if TYPE_CHECKING:
    from specchat.tui.messages import Loaded


def draft_choices(loaded: Loaded | None) -> list[DraftChoice]:
    """What is here, and what the catalogue pairs with the target; what is here fits as far as is known unloaded."""
    from specchat.shelf import Shelf

    try:
        shelf = Shelf(lambda _: None)  # what is wrong with it is told by what loads models
    except CatalogueError:
        return []
    partners = _partners(shelf.catalogue, loaded)
    choices = []
    for model in shelf.catalogue.offered(shelf.store.has):
        if model.id not in partners and not shelf.store.has(model):
            continue
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


def _partners(catalogue: Catalogue, loaded: Loaded | None) -> set[str]:
    """The ids of the drafts that go with the target, or with the one that newcomers start with."""
    targets = {catalogue.default_target}
    if loaded is not None:
        targets = {model.id for model in catalogue.models if model.file.name.removesuffix(".gguf") == loaded.name}
    return {pair.draft for pair in catalogue.pairs if pair.target in targets}
