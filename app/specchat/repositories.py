"""What `hf:owner/name:QUANT` means: which of the files of a repository make up the model that is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from specchat.catalogue import REPOSITORY, SPLIT_NAME
from specchat.errors import UsageError
from specchat.hub import HubFile, Repository
from specchat.model_names import PREFIX as PREFIX
from specchat.model_names import is_spec as is_spec

FORM = "hf:owner/name:QUANTIZATION, for example hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"
_SPEC = re.compile(rf"hf:(?P<repo>{REPOSITORY.pattern})(?:@(?P<revision>[A-Za-z0-9._/-]+))?(?::(?P<choice>.+))?")
_QUANTIZATION = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d(?:_[0-9A-Z]+)*|TQ\d_\d|BF16|FP?16|F32|MXFP4(?:_MOE)?|NVFP4))(?=$|[-._])",
    re.IGNORECASE,
)
# A name of the hub becomes a name on this disk: no folders, nothing hidden, nothing that some system cannot spell.
_FILE_NAME = re.compile(r"[A-Za-z0-9][\w .+()\[\]-]*\.gguf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spec:
    """A model of the hub as people name it."""

    repo: str
    revision: str | None  # a branch or a commit; None: what is published now
    choice: str | None  # a quantization or a file; None: the only one


@dataclass(frozen=True, slots=True)
class Variant:
    """One model of a repository: a file, or the parts of a split one in order."""

    quantization: str  # in capitals, or the file's name where it says none
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)

    @property
    def name(self) -> str:
        """The (first) file, with its folders."""
        return self.files[0].name


class Ambiguous(UsageError):
    """No single model of a repository is meant; `variants` are those to choose from."""

    def __init__(self, spec: Spec, variants: Sequence[Variant]) -> None:
        asked = f"{spec.choice} fits {len(variants)} models" if spec.choice else f"it holds {len(variants)} models"
        # Quantizations tell them apart, unless two files have the same.
        labels = [variant.quantization for variant in variants]
        example = labels[0] if labels.count(labels[0]) == 1 else variants[0].name
        super().__init__(f"{spec.repo}: {asked}; name one, for example {PREFIX}{spec.repo}:{example}")
        self.variants = tuple(variants)


def parse_spec(text: str) -> Spec:
    """The parts of such a name. Raises UsageError."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no model of the hub; the form is {FORM}")
    return Spec(match["repo"], match["revision"], match["choice"])


def variants(files: Iterable[HubFile]) -> list[Variant]:
    """The models among the files of a repository, the smallest first; projectors and broken sets are left out."""
    groups: dict[tuple[str, str, int], dict[int, HubFile]] = {}
    for file in files:
        path = PurePosixPath(file.name)
        # What has no checksum could not be told from something else; such files are small and no models.
        if not _FILE_NAME.fullmatch(path.name) or ".." in path.parts or path.is_absolute() or not file.sha256:
            continue
        if "mmproj" in path.name.lower():
            continue
        split = SPLIT_NAME.fullmatch(path.name)
        stem, number, count = (split["stem"], int(split["number"]), int(split["count"])) if split else (path.stem, 1, 1)
        groups.setdefault((str(path.parent), stem, count), {})[number] = file
    found = [
        Variant(quantization(stem), tuple(parts[number] for number in sorted(parts)))
        for (_, stem, count), parts in groups.items()
        if sorted(parts) == list(range(1, count + 1))
    ]
    return sorted(found, key=lambda variant: (variant.size, variant.name))


def quantization(stem: str) -> str:
    """The quantization that a file's name ends in or holds; the name itself where it says none."""
    found = _QUANTIZATION.findall(stem)
    return found[-1].upper() if found else stem


def choose(spec: Spec, repository: Repository) -> Variant:
    """The model that is meant. Raises Ambiguous, UsageError."""
    known = variants(repository.files)
    if not known:
        raise UsageError(f"{spec.repo} holds no GGUF model; look for a repository whose name ends in GGUF")
    if spec.choice is None:
        fitting = known
    else:
        wanted = spec.choice.lower().removesuffix(".gguf")
        fitting = [each for each in known if wanted in _names(each)]
        # Unsloth's dynamic quantizations are asked for with and without their prefix.
        fitting = fitting or [each for each in known if each.quantization.lower() == f"ud-{wanted}"]
        if not fitting:
            here = ", ".join(dict.fromkeys(each.quantization for each in known))
            raise UsageError(f"{spec.repo} has no {spec.choice}; it has {here}")
    if len(fitting) > 1:
        raise Ambiguous(spec, fitting)
    return fitting[0]


def _names(variant: Variant) -> set[str]:
    path = PurePosixPath(variant.name.lower())
    return {variant.quantization.lower(), str(path).removesuffix(".gguf"), path.stem}
