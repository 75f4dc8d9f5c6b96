"""`specchat models pull, verify, path`: from the catalogue into the folder of the models, and what is there."""

from __future__ import annotations

from argparse import Namespace

from specchat.catalogue import HubSource, Model
from specchat.console import Bar, can_ask, confirmed, say, size
from specchat.downloads import DownloadError, WrongFile
from specchat.errors import Declined, NotHere
from specchat.exit_codes import ExitCode
from specchat.headers import HeaderError, read_header
from specchat.repositories import Ambiguous, is_spec
from specchat.shelf import Shelf


def pull_models(args: Namespace) -> int:
    """Fetch models and verify them; what is here and right is left alone."""
    shelf = Shelf()
    names = args.names or (shelf.catalogue.default_target, shelf.catalogue.default_draft)
    wanted = [_named(shelf, name) for name in names]
    missing = [model for model in wanted if not shelf.store.has(model)]
    for model in missing:
        if model.why_not_fetched:
            raise NotHere(model.why_not_fetched)
    total = sum(model.file.size for model in missing)
    for model in missing:
        if not is_spec(model.origin) and not shelf.catalogue.warning(model):
            continue
        files = f", {len(model.file.parts)} files" if model.file.split else ""
        hub = next((f", from {s.repo} at {s.revision[:12]}" for s in model.sources if isinstance(s, HubSource)), "")
        named = f", as {model.id}" if is_spec(model.origin) else ""
        say(f"{model.title}: {size(model.file.size)}{files}, licence {model.licence}{hub}{named}")
    shelf.warn(missing)
    if not args.names and (better := shelf.suggestion()):
        say(better)
    if missing and not args.yes:
        if can_ask():
            if not confirmed(f"Fetch {size(total)}?"):
                raise Declined("nothing fetched")
        elif any(is_spec(model.origin) for model in missing):
            raise Declined("nothing fetched: no terminal to ask on; add -y")
        elif any(shelf.catalogue.warning(model) for model in missing):
            raise Declined("nothing fetched: no terminal to ask on about the licence; add -y to agree to it")
    for model in wanted:
        print(shelf.pull(model))
    return 0


def _named(shelf: Shelf, name: str) -> Model:
    if not is_spec(name):
        return shelf.catalogue.find(name)
    try:
        return shelf.hub_model(name)
    except Ambiguous as error:
        for variant in error.variants:
            say(f"{variant.quantization:12} {size(variant.size):>7}  {variant.name}")
        raise


def verify_models(args: Namespace) -> int:
    """Check size and sha256 of models that are here. Returns 1 when one is wrong."""
    shelf = Shelf()
    named = [shelf.catalogue.find(name) for name in args.names]
    models = named or [model for model in shelf.catalogue.models if shelf.store.path(model).exists()]
    wrong = 0
    for model in models:
        try:
            if model.is_linked:  # nobody has published a checksum of it
                for path in shelf.store.paths(model):
                    read_header(path)
                print(f"{model.id}: header sound, no checksum to compare with")
                continue
            with Bar(f"verifying {model.id}", "bytes") as bar:
                shelf.store.verify(model, bar)
            print(f"{model.id}: right")
        except (WrongFile, DownloadError, HeaderError) as error:
            wrong += 1
            say(str(error))
    if not models:
        say("no model is here yet; `specchat models pull` fetches the starter pair")
    return ExitCode.CHECK_FAILED if wrong else ExitCode.DONE


def model_path(args: Namespace) -> int:
    """Where a model's file is, or the folder of all."""
    shelf = Shelf()
    if args.name is None:
        print(shelf.store.folder)
        return 0
    model = shelf.catalogue.find(args.name)
    print(shelf.store.path(model))
    if not shelf.store.has(model):
        way = f"`specchat models pull {model.id}` fetches it"
        say(f"{model.id} is {'gone' if model.is_linked else f'not here yet; {way}'}")
        return ExitCode.MODEL
    return 0
