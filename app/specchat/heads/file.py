"""Heads in files: one for each model and kind, looked at before it is used."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specchat.console import printable
from specchat.errors import Refusal
from specchat.exit_codes import ExitCode
from specchat.folders import heads_folder
from specchat.heads.places import checked
from specchat.partfile import flush
from specchat.rewrite.disk import private_folder
from speculation.heads.head import MEDUSA_DEPTHS, Head, Kind
from speculation.heads.network import shapes

_FORMAT = "specchat head 1"
_MOST_BYTES = 1 << 29  # of a file
_MOST_NUMBERS = 1 << 17  # tokens, or numbers of a state, that a header may claim
_SAMPLE, _SAMPLES = 1 << 12, 64  # bytes of a model, and places, by which it is known

# What reading a file of arrays raises that is damaged, or none; RuntimeError where a bit claims a password.
DAMAGED = (OSError, ValueError, TypeError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


class BadHead(Refusal):
    """A file that is no head, or not one for this model; the text says which and why."""

    exit_code = ExitCode.MODEL


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a head beside its numbers."""

    kind: Kind
    model: str  # a name for people
    weights: str  # which weights it was trained for, see `weights_of`
    n_hidden: int
    width: int
    n_ids: int
    feature_scale: float
    embedding_scale: float
    is_tied: bool
    positions: int  # of text that it was trained with
    epochs: int
    accuracy: tuple[float, ...]  # on texts that it has not learned from, by how many tokens ahead


def path_of(model: str, kind: Kind) -> Path:
    """The file of a head. Raises BadName."""
    return heads_folder() / f"{checked(model)}.{kind}.npz"


def weights_of(path: Path) -> str:
    """Which weights a model file holds: its size, and samples from beginning to end. Raises OSError.

    A wrong head costs guesses and never changes the text, so reading all of a large file would be too dear.
    """
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for i in range(_SAMPLES):
            file.seek(max(0, size - _SAMPLE) * i // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def save(head: Head, about: About) -> Path:
    """Keep a head in place of the one that was there. Raises BadName, OSError."""
    path = path_of(about.model, about.kind)
    arrays: dict[str, NDArray[Any]] = {
        "about": np.frombuffer(json.dumps({"format": _FORMAT, **asdict(about)}).encode(), dtype=np.uint8),
        "ids": head.ids,
        "output": head.output.astype(np.float16),
    }
    if not about.is_tied and about.kind is Kind.EAGLE:
        arrays["embeddings"] = head.embeddings.astype(np.float16)
    for i, weights in enumerate(head.networks):
        arrays |= {f"{i}.{name}": each.astype(np.float16) for name, each in weights.items()}
    with private_folder(path.parent):
        write_arrays(path, arrays)
    return path


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to a file that only the user may read, all or nothing. Raises OSError."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            flush(file)
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a file. Raises one of `DAMAGED` where it is not sound."""
    with zipfile.ZipFile(path) as packed:
        if packed.testzip() is not None:  # or a flipped bit could ask for more memory than there is
            raise ValueError("a wrong checksum")
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def load(path: Path, weights: str | None = None) -> tuple[Head, About]:
    """A head and what is known of it. Raises BadHead; also where it was trained for other `weights`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadHead(f"{printable(path.name)} is too large for a head")
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sum(each.file_size for each in packed.infolist()) > _MOST_BYTES:
                raise BadHead(f"{printable(path.name)} is too large for a head")
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        about = _about(arrays.pop("about"))
        if weights is not None and weights != about.weights:
            raise BadHead(f"{printable(path.name)} was trained for another file of {printable(about.model)}")
        return replace(_head(arrays, about), accuracy=about.accuracy), about
    except (*DAMAGED, MemoryError) as error:  # which a flipped bit in a shape asks for
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged, or no head"
        raise BadHead(f"{printable(path.name)} cannot be used: {reason}") from error


def _about(raw: NDArray[Any]) -> About:
    """Raises ValueError, TypeError, KeyError for what is none."""
    said = json.loads(raw.tobytes().decode())
    if said.pop("format") != _FORMAT:
        raise ValueError("another format")
    about = About(**{**said, "kind": Kind(said["kind"]), "accuracy": tuple(float(each) for each in said["accuracy"])})
    counts = (about.n_hidden, about.width, about.n_ids)
    if not all(isinstance(count, int) and 0 < count < _MOST_NUMBERS for count in counts):
        raise ValueError("wrong sizes")
    if not all(0.0 <= each <= 1.0 for each in about.accuracy):
        raise ValueError("wrong accuracies")
    if not all(0 < float(scale) < 1e6 for scale in (about.feature_scale, about.embedding_scale)):
        raise ValueError("wrong scales")
    return about


def _head(arrays: dict[str, NDArray[Any]], about: About) -> Head:
    """Raises ValueError, KeyError where the arrays are not those that the header promises."""
    is_eagle = about.kind is Kind.EAGLE
    n_in = about.n_hidden * (2 if is_eagle else 1)
    rows = (about.n_ids, about.n_hidden)
    expected: dict[str, tuple[int, ...]] = {"ids": rows[:1], "output": rows}
    if is_eagle and not about.is_tied:
        expected["embeddings"] = rows
    networks = range(1 if is_eagle else MEDUSA_DEPTHS)
    layout = shapes(n_in, about.width, about.n_hidden)
    expected |= {f"{i}.{name}": shape for i in networks for name, shape in layout.items()}
    for name, shape in expected.items():
        kind = "i" if name == "ids" else "f"
        if arrays[name].shape != shape or arrays[name].dtype.kind != kind or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} is not what it should be")
    ids = arrays["ids"].astype(np.int32)
    if len(np.unique(ids)) != len(ids) or ids.min() < 0:
        raise ValueError("wrong tokens")
    output = arrays["output"].astype(np.float32)
    embeddings = arrays["embeddings"].astype(np.float32) if "embeddings" in expected else output
    return Head(
        about.kind,
        tuple({name: arrays[f"{i}.{name}"].astype(np.float32) for name in layout} for i in networks),
        ids,
        output,
        embeddings if is_eagle else output[:0],
        about.feature_scale,
        about.embedding_scale,
    )
