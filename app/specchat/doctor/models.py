"""What is here of models: whole, right where that is asked for, and catalogues that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specchat.catalogue import Model
from specchat.console import Bar, size
from specchat.doctor.finding import Finding, note, ok, problem
from specchat.headers import HeaderError, read_header
from specchat.shelf import Shelf
from specchat.transfer import DownloadError


def check_catalogue(shelf: Shelf, troubles: Sequence[str]) -> Iterator[Finding]:
    """The catalogues, and what could not be read of the user's own; `troubles` is what making the shelf told."""
    for trouble in troubles:
        yield problem("catalogue", trouble, "specchat goes on without it until it is mended")
    models = shelf.catalogue.models
    checked = max((model.checked_on for model in models), default="")
    dated = f", last compared with its sources on {checked}" if checked else ""
    yield ok("catalogue", f"{len(models)} models{dated}", models=len(models), checked_on=checked or None)


def check_models(shelf: Shelf, *, is_full: bool) -> Iterator[Finding]:
    """Each model that is here or half here; with `is_full` every byte of those with a checksum is read."""
    here = [model for model in shelf.catalogue.models if shelf.store.has(model)]
    for model in shelf.catalogue.models:
        if model in here:
            if is_full and (why := _wrong(shelf, model)):
                advice = f"specchat models rm {model.id}; specchat models pull {model.id}"
                yield problem("models", f"{model.id}: {why}", advice)
        elif model.is_linked:
            advice = f"put it back, or forget it: specchat models rm {model.id}"
            yield note("models", f"{model.id} is gone from {shelf.store.path(model)}, where it is linked to", advice)
        elif shelf.store.path(model).exists():
            advice = f"specchat models pull {model.id} fetches it anew"
            yield problem("models", f"{shelf.store.path(model)} has not the size of {model.id}", advice)
        elif shelf.store.begun(model):
            advice = f"specchat models pull {model.id} goes on; specchat models prune forgets it"
            yield note("models", f"{model.id} is not all here yet", advice)
    total = sum(model.file.size for model in here if not model.is_linked)
    if not here:
        yield note("models", "none is here yet", "specchat models pull fetches the starter pair")
        return
    how = "compared with their checksums" if is_full else "looked at by size; --full compares checksums"
    many = "1 is" if len(here) == 1 else f"{len(here)} are"
    yield ok("models", f"{many} here, {size(total)} on the disk, {how}", models=len(here), bytes=total)


def _wrong(shelf: Shelf, model: Model) -> str:
    """Why the file of a model is not the one that it should be; "" where it is."""
    try:
        if model.is_linked:  # nobody has published a checksum of it
            for path in shelf.store.paths(model):
                read_header(path)
        else:
            with Bar(f"verifying {model.id}", "bytes") as bar:
                shelf.store.verify(model, bar)
    except (DownloadError, HeaderError, OSError) as error:
        return str(error)
    return ""
