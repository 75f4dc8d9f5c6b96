"""The user's own models: files that are used where they lie, and what was fetched from the hub by name.

They are kept in a small list beside the models of the catalogue, and are models like those everywhere else.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from specchat.catalogue import (
    COMMIT,
    LINKED,
    MODEL_ID,
    REPOSITORY,
    SHA256,
    SPLIT_NAME,
    FilePart,
    HubSource,
    Model,
    ModelFile,
)
from specchat.headers import BrokenFile, Header, check_usable, read_header
from specchat.hub import Repository
from specchat.partfile import flush, locked, sync_folder
from specchat.repositories import Spec, Variant, is_spec
from specchat.tables import CatalogueError, Table
from speculation.heads.eagle3 import ARCHITECTURE as EAGLE3

LIST_NAME = "own.json"
PATIENCE_S = 5.0  # with another process that changes the list
TITLE_CHARACTERS = 60
ROLES = ("target", "draft")
HEAD_ROLES = ("draft",)  # of an EAGLE-3 head, which is given where a draft model is
UNKNOWN = "unknown"  # the architecture of a model of the hub until its file is here


class OwnModels:
    """The list, in the folder of the models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / LIST_NAME

    def models(self) -> tuple[Model, ...]:
        """All of them. Raises CatalogueError, which names the file and the way out."""
        try:
            content = json.loads(self.file.read_text("utf-8"))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise CatalogueError(self.file, f"cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise CatalogueError(self.file, f"is not valid JSON ({error}); mend it, or move it away") from error
        top = Table(self.file, "", content)
        if not top.values.get("models"):
            return ()
        return tuple(self._model(table) for table in top.tables("models"))

    def put(self, model: Model) -> None:
        """Add a model, in the place of the one with its id. Raises CatalogueError, DownloadError."""
        self._change(lambda models: [*(each for each in models if each.id != model.id), model])

    def forget(self, model_id: str) -> None:
        """Take a model from the list; its files stay. Raises CatalogueError, DownloadError."""
        self._change(lambda models: [each for each in models if each.id != model_id])

    def complete(self, model: Model, path: Path) -> None:
        """Note what the file of a model of the hub says of itself, as soon as it is here. Raises HeaderError.

        Called after each fetch, and before each use: a fetch may have been ended between its last byte and this.
        """
        if is_spec(model.origin) and model.architecture == UNKNOWN:
            self.put(described(model, path))

    def _change(self, change: Callable[[list[Model]], list[Model]]) -> None:
        busy = f"another specchat is changing {self.file}; try again"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.file.with_name(f"{LIST_NAME}.lock"), busy, PATIENCE_S):
                models = change(list(self.models()))
                fresh = self.file.with_name(f"{LIST_NAME}.new")
                with fresh.open("w", encoding="utf-8") as file:
                    json.dump({"models": [self._entry(model) for model in models]}, file, indent=1)
                    flush(file)
                os.replace(fresh, self.file)
                sync_folder(self.folder)
        except OSError as error:
            raise CatalogueError(self.file, f"cannot be written: {error.strerror or error}") from error

    def _entry(self, model: Model) -> dict[str, Any]:
        assert model.place is not None
        place = model.place if model.is_linked else model.place.relative_to(self.folder)
        entry: dict[str, Any] = {
            "id": model.id,
            "title": model.title,
            "origin": model.origin,
            "path": str(place) if model.is_linked else place.as_posix(),
            "architecture": model.architecture,
            "context": model.context,
            "licence": model.licence,
            "quantization": model.file.quantization,
            "files": [{"name": part.name, "size": part.size, "sha256": part.sha256} for part in model.file.parts],
        }
        for source in model.sources:
            if isinstance(source, HubSource):
                entry["hub"] = {"repo": source.repo, "revision": source.revision, "file": source.file}
        return entry

    def _model(self, table: Table) -> Model:
        table = table.named(table.text("id", form=MODEL_ID, want="lower-case letters, digits, dots and dashes"))
        parts = []
        for inner in table.tables("files"):
            sha256 = inner.text("sha256", form=SHA256, want="64 hexadecimal digits") if inner.value("sha256") else ""
            parts.append(FilePart(inner.text("name"), inner.count("size"), sha256))
        sources: tuple[HubSource, ...] = ()
        if "hub" in table.values:
            hub = table.table("hub")
            repo = hub.text("repo", form=REPOSITORY, want="owner/name")
            sources = (HubSource(repo, hub.text("revision", form=COMMIT, want="a commit"), hub.text("file")),)
        context = table.value("context")
        return Model(
            id=str(table.values["id"]),
            title=table.text("title"),
            roles=roles_of(table.text("architecture")),
            draft=None,
            architecture=table.text("architecture"),
            context=context if isinstance(context, int) else 0,
            licence=table.text("licence"),
            file=model_file(table.text("quantization"), parts),
            sources=sources,
            origin=table.text("origin"),
            place=self.folder / table.text("path"),
        )


def roles_of(architecture: str) -> tuple[str, ...]:
    """What a model of the user's own can be."""
    return HEAD_ROLES if architecture == EAGLE3 else ROLES


def model_file(quantization: str, parts: list[FilePart]) -> ModelFile:
    """A model file of one part or of several."""
    if len(parts) == 1:
        return ModelFile(parts[0].name, quantization, parts[0].size, parts[0].sha256)
    return ModelFile(parts[0].name, quantization, sum(part.size for part in parts), "", tuple(parts))


def linked(path: Path, alias: str, taken: Collection[str], *, called: str = "") -> Model:
    """A model whose files stay where they are; `alias` is its name, "" makes one. Raises HeaderError.

    `called` is its title where the file says none and its own name means nothing. Of a split model any part may be
    given; all of them have to be there and sound.
    """
    path = Path(os.path.abspath(path))
    header = read_header(path)
    places = header.parts()
    if header.split is not None and len(places) == 1:  # the engine finds the parts by their names
        problem = f"is part {header.split[0]} of {header.split[1]} under another name than NAME-00001-of-0000N.gguf"
        raise BrokenFile(path, f"{problem}: give all parts such names")
    headers = [header if place == path else _part_header(place, header) for place in places]
    if headers[0].head is None:
        check_usable(headers[0])
    parts = [FilePart(place.name, each.size, "") for place, each in zip(places, headers, strict=True)]
    return Model(
        id=alias or free_name(places[0].name, taken),
        title=title_of(headers[0], called),
        roles=roles_of(headers[0].architecture),
        draft=None,
        architecture=headers[0].architecture,
        context=headers[0].context or 0,
        licence="unknown",
        file=model_file(headers[0].quantization, parts),
        sources=(),
        origin=LINKED,
        place=places[0],
    )


def fetchable(
    own: OwnModels, name: str, spec: Spec, repository: Repository, variant: Variant, taken: Collection[str]
) -> Model:
    """A model of the hub as it will be here, pinned to the commit that is published now."""
    # A folder for each commit: a file may change under its name.
    folder = own.folder / "hub" / f"{spec.repo.replace('/', '--')}@{repository.commit[:12]}"
    parts = [FilePart(file.name.rpartition("/")[2], file.size, file.sha256) for file in variant.files]
    return Model(
        id=free_name(parts[0].name, taken),
        title=parts[0].name.removesuffix(".gguf")[:TITLE_CHARACTERS],
        roles=ROLES,
        draft=None,
        architecture=UNKNOWN,
        context=0,
        licence=repository.licence or "unknown",
        file=model_file(variant.quantization, parts),
        sources=(HubSource(spec.repo, repository.commit, variant.name),),
        origin=name,
        place=folder / parts[0].name,
    )


def described(model: Model, path: Path) -> Model:
    """A fetched model with what its file says of itself. Raises HeaderError."""
    header = read_header(path)
    if header.head is None:
        check_usable(header)
    return replace(
        model,
        title=title_of(header),
        roles=roles_of(header.architecture),
        architecture=header.architecture,
        context=header.context or 0,
    )


def free_name(file_name: str, taken: Collection[str]) -> str:
    """A name for a model, made from that of its file, that no other model has."""
    match = SPLIT_NAME.fullmatch(file_name)
    stem = match["stem"] if match else re.sub(r"\.gguf$", "", file_name, flags=re.IGNORECASE)
    name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._") or "model"
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def title_of(header: Header, called: str = "") -> str:
    """The name that its makers gave a model, short and harmless, or what it is called, or the name of its file."""
    words = "".join(letter if letter.isprintable() else " " for letter in header.name or called)
    return " ".join(words.split())[:TITLE_CHARACTERS] or header.path.stem[:TITLE_CHARACTERS]


def _part_header(place: Path, first: Header) -> Header:
    if not place.exists():
        assert first.split is not None
        problem = f"is part {first.split[0]} of {first.split[1]}, and {place.name} is not beside it"
        raise BrokenFile(first.path, problem)
    return read_header(place)
