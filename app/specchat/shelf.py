"""What is known of models and what of them is here: the catalogue, the user's own and the store, with downloads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from specchat.catalogue import Catalogue, HubSource, Model, UnknownModel
from specchat.catalogue_file import catalogue_path, load_catalogue, user_catalogue_path
from specchat.console import Bar, can_ask, confirmed, say, size
from specchat.downloads import Store
from specchat.errors import Declined, NotHere
from specchat.fit import too_large
from specchat.folders import models_folder
from specchat.headers import HeaderError
from specchat.hub import repository
from specchat.loading import room_here
from specchat.machine import total_memory
from specchat.model_names import is_path as is_path
from specchat.model_names import is_spec
from specchat.own_models import OwnModels, fetchable
from specchat.recommended import among_what_is_here, better_pair, memory_bytes
from specchat.repositories import choose, parse_spec
from specchat.tables import CatalogueError


class Shelf:
    """The catalogue, the user's own models and the store together: what is known and what is here."""

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        """Raises CatalogueError; with `tell`, lists of the user's that are broken are left out and told instead."""
        self.store = Store(models_folder())
        self.own = OwnModels(self.store.folder)
        shipped, user = catalogue_path(), user_catalogue_path(os.environ)
        try:
            known = load_catalogue(shipped, user)
        except CatalogueError as error:
            if tell is None or error.path == shipped:
                raise
            tell(f"{error}; using the shipped catalogue")
            known = load_catalogue(shipped)
        own: tuple[Model, ...] = ()
        try:
            own = self.own.models()
        except CatalogueError as error:
            if tell is None:
                raise
            tell(f"{error}; going on without the models in it")
        names = {model.id for model in own}
        others = tuple(model for model in known.models if model.id not in names)
        self.catalogue: Catalogue = among_what_is_here(replace(known, models=others + own), self.store.has)

    def locate(self, name: str, *, agreed: bool, beside: Sequence[Model] = ()) -> Path:
        """The file of a model that is known, of one of the hub, or at a path; fetches it, and `beside`, on a yes.

        Raises UnknownModel, NotHere, Declined, UsageError, DownloadError, HeaderError.
        """
        if is_path(name):
            return Path(os.path.expanduser(name))  # which, unlike Path's own, leaves an unknown user alone
        model = self.hub_model(name) if is_spec(name) else self.catalogue.find(name)
        if model.is_linked:
            return self.store.pull(model, Bar(model.id, "bytes"))  # which only looks whether it is there
        if not self.store.has(model):
            if model.why_not_fetched:
                raise NotHere(model.why_not_fetched)
            missing = [model, *(each for each in beside if not self.store.has(each) and not each.why_not_fetched)]
            total = sum(other.file.size for other in missing)
            titles = " and ".join(f"{other.title} ({size(other.file.size)})" for other in missing)
            if not agreed:
                say(f"{titles} will be fetched into {self.store.path(model).parent}, {size(total)} in all.")
                self.warn(missing)
                if not confirmed("Fetch now?"):
                    self._refuse(missing)
            for other in missing:
                self.pull(other)
        self.own.complete(model, self.store.path(model))
        return self.store.path(model)

    def hub_model(self, name: str) -> Model:
        """The model that hf:owner/name:QUANT means: as it was asked for before, or as the hub has it now.

        Raises UsageError, DownloadError.
        """
        try:
            return self.catalogue.find(name)
        except UnknownModel:
            spec = parse_spec(name)
        found = repository(spec.repo, spec.revision, lambda: None)
        variant = choose(spec, found)
        sums = [file.sha256 for file in variant.files]
        for model in self.catalogue.models:  # which may have another source for it, or be here already
            if [part.sha256 for part in model.file.parts] == sums:
                if model.sources:
                    return model
                return replace(model, sources=(HubSource(spec.repo, found.commit, variant.name),))  # now it is pinned
        return fetchable(self.own, name, spec, found, variant, {model.id for model in self.catalogue.models})

    def pull(self, model: Model) -> Path:
        """Fetch one model with a progress bar; one that only the hub knows becomes one of the user's own.

        Raises DownloadError, HeaderError.
        """
        asked_by_name = is_spec(model.origin)
        if asked_by_name:
            self.own.put(model)
        try:
            with Bar(model.id, "bytes") as bar:
                path = self.store.pull(model, bar)
            self.own.complete(model, path)
            return path
        except HeaderError:
            self.store.remove(model)  # it is what was published, and no model
            raise
        finally:
            if asked_by_name and not self.store.begun(model):
                self.own.forget(model.id)

    def paired_draft(self, name: str) -> Model | None:
        """The draft that the catalogue recommends for a target."""
        if is_path(name) or is_spec(name):
            return None
        draft = self.catalogue.find(name).draft
        return None if draft is None else self.catalogue.find(draft)

    def warn(self, models: Sequence[Model]) -> None:
        """Say what somebody should know before models are fetched."""
        for warning in self.warnings(models):
            say(warning)

    def warnings(self, models: Sequence[Model]) -> list[str]:
        """What the licences of models ask of people, and which of them there is no memory for, each once."""
        room = room_here()
        licences = [self.catalogue.warning(model) for model in models]
        sizes = [too_large(model.title, memory_bytes(model), room) for model in models]
        return [warning for warning in dict.fromkeys(licences + sizes) if warning]

    def suggestion(self) -> str:
        """A line on a pair that suits the memory of this machine better; "" where there is nothing to say."""
        pair = better_pair(self.catalogue, self.store.has, total_memory())
        if pair is None:
            return ""
        missing = " ".join(model.id for model in pair if not self.store.has(model))
        return f"this machine has room for {pair[0].id} with {pair[1].id}: specchat models pull {missing}"

    def _refuse(self, missing: Sequence[Model]) -> None:
        names = " ".join(model.origin if is_spec(model.origin) else model.id for model in missing)
        if can_ask():
            raise Declined(f"nothing fetched; `specchat models pull {names}` does it later")
        raise NotHere(f"no terminal to ask on: run `specchat models pull {names}` first, or add -y")
