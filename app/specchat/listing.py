"""`specchat models list`: what can be used, what is here first, each target with the draft that goes with it."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict

from specchat.catalogue import HubSource, Model
from specchat.console import printable, say, size
from specchat.machine import free_memory
from specchat.recommended import memory_bytes
from specchat.shelf import Shelf

HEADINGS = ("NAME", "QUANT", "SIZE", "STATE", "CTX", "LICENCE", "DRAFT")
NAME_WIDTH = 20  # beyond it a line is longer than the others, and than 80 columns
TERMS = {"open": "open", "conditions": "terms", "non-commercial": "research"}


def list_models(args: Namespace) -> int:
    """A line a model, or JSON."""
    shelf = Shelf()
    models = shelf.catalogue.offered(shelf.store.has)
    if args.fits:
        models = fitting(models)
    if args.json:
        json.dump([_as_json(shelf, model) for model in models], sys.stdout, indent=2)
        print()
        return 0
    rows = [HEADINGS, *(_row(shelf, model) for model in models)]
    widths = [min(NAME_WIDTH, max(len(row[at]) for row in rows)) for at in range(len(HEADINGS))]
    for name, quantization, amount, *rest in rows:
        cells = [f"{name:{widths[0]}}", f"{quantization:{widths[1]}}", f"{amount:>{widths[2]}}"]
        cells += [f"{cell:{width}}" for cell, width in zip(rest, widths[3:], strict=True)]
        print("  ".join(cells).rstrip())
    if any(row[5] == TERMS["non-commercial"] for row in rows):
        say("research: the licence forbids commercial use; `specchat models info NAME` says more")
    if better := shelf.suggestion():
        say(better)
    return 0


def state(shelf: Shelf, model: Model) -> str:
    """What there is of a model: here, linked, gone, part, - for nothing, and no pin where nothing can be fetched."""
    if shelf.store.has(model):
        return "linked" if model.is_linked else "here"
    if model.is_linked:
        return "gone"
    if model.why_not_fetched:
        return "no pin"
    return "part" if shelf.store.begun(model) else "-"


def context_words(tokens: int) -> str:
    """A length as people say it: 32k; "-" where it is not known."""
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens or "-")


def fitting(models: Sequence[Model]) -> list[Model]:
    """What fits into the memory that is free here; all, where that is not known."""
    free = free_memory()
    if free is None:
        say("how much memory is free here is not known, so all models are listed")
        return list(models)
    say(f"what fits into {size(free)} of free memory, with a context of 8192 tokens")
    return [model for model in models if memory_bytes(model) <= free]


def _row(shelf: Shelf, model: Model) -> tuple[str, ...]:
    licence = shelf.catalogue.licence(model)
    return (
        model.id,
        printable(model.file.quantization),
        size(model.file.size),
        state(shelf, model),
        context_words(model.context),
        "-" if licence is None else TERMS[licence.terms],
        model.draft or ("(draft)" if "target" not in model.roles else "-"),
    )


def _as_json(shelf: Shelf, model: Model) -> dict[str, object]:
    licence = shelf.catalogue.licence(model)
    hub = next((source for source in model.sources if isinstance(source, HubSource)), model.unpinned)
    pairs = [pair for pair in shelf.catalogue.pairs if pair.target == model.id]
    return {
        "id": model.id,
        "title": model.title,
        "roles": list(model.roles),
        "quantization": model.file.quantization,
        "size": model.file.size,
        "sha256": model.file.sha256,
        "parts": [asdict(part) for part in model.file.split],
        "architecture": model.architecture,
        "memory": model.memory or None,
        "tokenizer": model.tokenizer or None,
        "parameters": model.parameters or None,
        "context": model.context,
        "kv_bytes_per_token": model.kv_bytes_per_token or None,
        "memory_bytes": memory_bytes(model),
        "sampling": {name: value for name, value in asdict(model.sampling).items() if value is not None},
        "licence": model.licence,
        "terms": None if licence is None else licence.terms,
        "draft": model.draft,
        "pairs": [{"draft": pair.draft, "evidence": pair.evidence, "note": pair.note} for pair in pairs],
        "hub": None if hub is None else {"repo": hub.repo, "revision": hub.revision or None, "file": hub.file},
        "checked": model.checked or None,
        "checked_on": model.checked_on or None,
        "note": model.note,
        "origin": model.origin or "catalogue",
        "state": state(shelf, model),
        "here": shelf.store.has(model),
        "path": str(shelf.store.path(model)),
    }
