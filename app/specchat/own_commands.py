"""`specchat models add, find, info, rm`: the user's own model files, and what a file says of itself."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specchat.catalogue import MODEL_ID, HubSource, Model
from specchat.console import can_ask, confirmed, printable, say, size
from specchat.errors import Declined, UsageError
from specchat.fit import CONTEXT, needs
from specchat.headers import Header, HeaderError, read_header
from specchat.listing import state
from specchat.other_apps import find_models, stores
from specchat.own_models import free_name, linked
from specchat.quantizations import dear_checks
from specchat.shelf import Shelf, is_path

CHECKS = {
    "bytes": "size and sha256 are those of a file that we had",
    "hub": "size and sha256 are those that the hub lists",
    "found": "size and sha256 were found in public sources, not compared with the hub",
}


def add_model(args: Namespace) -> int:
    """Make a file usable by name, where it lies."""
    shelf = Shelf()
    taken = {model.id for model in shelf.catalogue.models}
    alias = args.alias or ""
    if alias and not MODEL_ID.fullmatch(alias):
        raise UsageError(f"--alias {alias}: a name is made of lower-case letters, digits, dots and dashes")
    if alias in taken:
        raise UsageError(f"--alias {alias}: another model has this name; see: specchat models list")
    model = linked(Path(os.path.expanduser(args.path)), alias, taken)
    if (known := _already(shelf, model.place)) is not None and not alias:
        say(f"it is here already, as {known.id}")
        return 0
    shelf.own.put(model)
    print(model.id)
    say(f"linked to {model.place}, {size(model.file.size)}; the file stays where it is")
    return 0


def find_others(args: Namespace) -> int:
    """List, and with --add link, the models that other programs keep here."""
    shelf = Shelf()
    taken = {model.id for model in shelf.catalogue.models}
    found = find_models(os.environ, Path.home())
    if not found:
        places = dict.fromkeys(app for app, _ in stores(os.environ, Path.home(), sys.platform))
        say(f"no model files of other programs are here ({', '.join(places)})")
        return 0
    rows: list[tuple[str, str, str, str]] = []
    left_out = 0
    for each in found:
        known = _already(shelf, each.path)
        if known is None:
            try:
                known = linked(each.path, free_name(each.short_name, taken), taken, called=each.name)
            except HeaderError as error:
                left_out += 1
                say(f"left out: {each.app}, {each.name} {error.problem}")
                continue
            taken.add(known.id)
            said = "-"
            if args.add:
                shelf.own.put(known)
                said = "added"
        else:
            said = "linked"
        rows.append((known.id, size(each.size), said, f"{each.app}, {each.name}"))
    width = max((len(name) for name, *_ in rows), default=0)
    for name, amount, said, where in rows:
        print(f"{name:{width}}  {amount:>7}  {said:6}  {printable(where)}")
    if not args.add and any(said == "-" for _, _, said, _ in rows):
        say("`specchat models find --add` links them where they lie; nothing is copied or moved")
    return 0


def model_info(args: Namespace) -> int:
    """What is known of a model, and what its file says."""
    shelf = Shelf()
    model: Model | None = None
    if is_path(args.name):
        path = Path(os.path.expanduser(args.name))
    else:
        model = shelf.catalogue.find(args.name)
        path = shelf.store.path(model)
    header = read_header(path) if model is None or shelf.store.has(model) else None
    facts = {**(_model_facts(shelf, model) if model else {}), **(_header_facts(header) if header else {})}
    if args.json:
        json.dump(facts, sys.stdout, indent=2)
        print()
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):{width}}  {printable(_shown(name, value))}")
    return 0


def remove_models(args: Namespace) -> int:
    """Delete models that were fetched, forget those that are linked."""
    shelf = Shelf()
    models = [shelf.catalogue.find(name) for name in args.names]
    fetched = [model for model in models if not model.is_linked and shelf.store.begun(model)]
    total = sum(model.file.size for model in fetched)
    if fetched and not args.yes:
        names = ", ".join(model.id for model in fetched)
        if not can_ask():
            raise Declined(f"nothing deleted: no terminal to ask on about {names}; add -y")
        if not confirmed(f"Delete {names} ({size(total)})?"):
            raise Declined("nothing deleted")
    for model in models:
        shelf.store.remove(model)
        if model.origin:
            shelf.own.forget(model.id)
        if model.is_linked:
            say(f"{model.id} is forgotten; its file stays at {model.place}")
        else:
            say(f"{model.id} is deleted" if model in fetched else f"{model.id} was not here")
    return 0


def _already(shelf: Shelf, path: Path | None) -> Model | None:
    for model in shelf.catalogue.models:
        if path is not None and shelf.store.path(model) == Path(os.path.abspath(path)):
            return model
    return None


def _model_facts(shelf: Shelf, model: Model) -> dict[str, Any]:
    hub = next((source for source in model.sources if isinstance(source, HubSource)), model.unpinned)
    pairs = [pair for pair in shelf.catalogue.pairs if pair.target == model.id]
    return {
        "name": model.id,
        "title": model.title,
        "state": state(shelf, model),
        "origin": model.origin or "catalogue",
        "hub": f"{hub.repo} at {hub.revision[:12] or 'no commit that is known'}" if hub else None,
        "path": str(shelf.store.path(model)),
        "size": model.file.size,
        "sha256": [part.sha256 for part in model.file.parts if part.sha256],
        "checked": f"{CHECKS[model.checked]}, {model.checked_on}".removesuffix(", ") if model.checked else None,
        "licence": model.licence,
        "licence_says": shelf.catalogue.warning(model) or None,
        "quantization": model.file.quantization,
        "architecture": model.architecture,
        "context": model.context,
        "cache": model.memory or None,
        "sampling": {name: value for name, value in asdict(model.sampling).items() if value is not None} or None,
        "draft": model.draft,
        "drafts": [f"{each.draft} ({each.evidence}{each.note and f': {each.note}'})" for each in pairs],
        "note": model.note or None,
    }


def _header_facts(header: Header) -> dict[str, Any]:
    parts = [header] + [read_header(path) for path in header.parts() if path != header.path and path.exists()]
    tensors: dict[str, int] = {}
    for each in parts:
        for kind, count in each.tensors.items():
            tensors[kind] = tensors.get(kind, 0) + count
    tokenizer = header.tokenizer
    return {
        "path": str(header.path),
        "size": sum(each.size for each in parts),
        "files": header.split[1] if header.split else 1,
        "made_as": header.name,
        "architecture": header.architecture,
        "kind": header.kind,
        "parameters": sum(each.parameters for each in parts),
        "quantization": header.quantization,
        "tensors": tensors,
        "on_a_cpu": dear_checks(tensors) or None,
        "memory": header.shape.memory if header.shape else None,
        "needs": needs(header.shape, sum(each.weight_bytes for each in parts), CONTEXT).total if header.shape else None,
        "context": header.context,
        "template": header.has_template,
        "tokenizer": f"{tokenizer.model} {tokenizer.pre}".strip() if tokenizer else None,
        "vocabulary": tokenizer.n_tokens if tokenizer else None,
        "vocabulary_sha256": tokenizer.sha256 if tokenizer else None,
    }


def _shown(name: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if name == "needs":
        return f"about {size(value)} with {CONTEXT:,} tokens of context"
    if name == "size":
        return f"{size(value)} ({value:,} bytes)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        if name == "sampling":
            return ", ".join(f"{each.replace('_', '-')} {setting:g}" for each, setting in value.items())
        return ", ".join(f"{count} {kind}" for kind, count in value.items())
    if isinstance(value, list):
        return ("; " if name == "drafts" else ", ").join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
