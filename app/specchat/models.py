"""`specchat models`: what the catalogue knows, what is here, and the way from one to the other."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from specchat.catalogue import Model
from specchat.console import Bar, confirmed, say, size
from specchat.downloads import DownloadError, WrongFile
from specchat.errors import Declined
from specchat.opening import Shelf


def list_models(args: Namespace) -> int:
    """A line a model, or JSON."""
    shelf = Shelf()
    models = shelf.catalogue.models
    if args.json:
        json.dump([_as_json(shelf, model) for model in models], sys.stdout, indent=2)
        print()
        return 0
    width = max(len(model.id) for model in models)
    for model in models:
        state = "here" if shelf.store.has(model) else "-"
        pair = f"draft: {model.draft}" if model.draft else ""
        print(f"{model.id:{width}}  {model.file.quantization:7} {size(model.file.size):>7}  {state:5} {pair}".rstrip())
    return 0


def pull_models(args: Namespace) -> int:
    """Fetch models and verify them; what is here and right is left alone."""
    shelf = Shelf()
    wanted = [shelf.catalogue.find(name) for name in args.names] or [
        shelf.catalogue.find(name) for name in (shelf.catalogue.default_target, shelf.catalogue.default_draft)
    ]
    missing = [model for model in wanted if not shelf.store.has(model)]
    total = sum(model.file.size for model in missing)
    if missing and not args.yes and sys.stdin.isatty() and not confirmed(f"Fetch {size(total)}?"):
        raise Declined("nothing fetched")
    for model in wanted:
        path = shelf.pull(model)
        print(path)
    return 0


def verify_models(args: Namespace) -> int:
    """Check size and sha256 of models that are here. Returns 1 when one is wrong."""
    shelf = Shelf()
    named = [shelf.catalogue.find(name) for name in args.names]
    models = named or [model for model in shelf.catalogue.models if shelf.store.path(model).exists()]
    wrong = 0
    for model in models:
        try:
            with Bar(f"verifying {model.id}", "bytes") as bar:
                shelf.store.verify(model, bar)
            print(f"{model.id}: right")
        except (WrongFile, DownloadError) as error:
            wrong += 1
            say(str(error))
    if not models:
        say("no model is here yet; `specchat models pull` fetches the starter pair")
    return 1 if wrong else 0


def model_path(args: Namespace) -> int:
    """Where a model's file is, or the folder of all."""
    shelf = Shelf()
    if args.name is None:
        print(shelf.store.path(shelf.catalogue.models[0]).parent)
        return 0
    model = shelf.catalogue.find(args.name)
    print(shelf.store.path(model))
    if not shelf.store.has(model):
        say(f"{model.id} is not here yet; `specchat models pull {model.id}` fetches it")
        return 4
    return 0


def _as_json(shelf: Shelf, model: Model) -> dict[str, object]:
    return {
        "id": model.id,
        "title": model.title,
        "quantization": model.file.quantization,
        "size": model.file.size,
        "sha256": model.file.sha256,
        "context": model.context,
        "licence": model.licence,
        "draft": model.draft,
        "here": shelf.store.has(model),
        "path": str(shelf.store.path(model)),
    }
