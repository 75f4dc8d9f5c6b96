"""What a GGUF file says of itself, read without loading it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specchat.catalogue import SPLIT_NAME
from specchat.gguf_head import head_of
from specchat.gguf_names import ARCHITECTURES, FILE_TYPES, NOT_FOR_CHAT
from specchat.gguf_reader import BrokenFile, HeaderError, Reader, UnsupportedFile
from specchat.gguf_shape import Shape, shape_of
from specchat.gguf_vocabulary import Tokenizer, tokenizer_of
from speculation.heads.eagle3 import ARCHITECTURE as EAGLE3
from speculation.heads.eagle3 import HeadFacts
from speculation.next_layers import tensors_of_next_layer

__all__ = [
    "BrokenFile",
    "Header",
    "HeaderError",
    "UnsupportedFile",
    "brings_next_layer",
    "check_usable",
    "read_header",
    "weight_bytes",
]


@dataclass(frozen=True, slots=True)
class Header:
    """A sound GGUF file, or the first part of a split one."""

    path: Path
    size: int  # bytes, of this file
    architecture: str  # "" in the later parts of a split model
    kind: str  # "model", "adapter", "mmproj", ...
    name: str  # as the makers call it
    quantization: str  # "Q4_K_M", or the commonest type of its tensors
    tensors: Mapping[str, int]  # tensors of each type, the commonest first
    parameters: int  # in this file
    weight_bytes: int  # in this file
    context: int | None  # tokens it was trained on
    has_template: bool
    tokenizer: Tokenizer | None
    shape: Shape | None  # None where the file does not say
    split: tuple[int, int] | None  # number of this part, from 1, and how many there are
    names: frozenset[str] = frozenset()  # of the tensors in this file
    layers: int = 0  # of the model itself
    next_layers: int = 0  # behind them, which guess the token after the next one
    head: HeadFacts | None = None  # where it is no model, but an EAGLE-3 head for one

    def parts(self) -> list[Path]:
        """All files of the model, in order, there or not."""
        match = SPLIT_NAME.fullmatch(self.path.name)
        if self.split is None or match is None:
            return [self.path]
        count = self.split[1]
        return [self.path.with_name(f"{match['stem']}-{n:05}-of-{count:05}.gguf") for n in range(1, count + 1)]


def read_header(path: Path) -> Header:
    """Reads the header of a file. Raises BrokenFile, UnsupportedFile."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):  # reading a pipe could wait for ever
            raise BrokenFile(path, f"is a {'folder' if stat.S_ISDIR(state.st_mode) else 'device or a pipe'}, no file")
        with path.open("rb", buffering=1 << 20) as file:
            size = os.fstat(file.fileno()).st_size
            reader = Reader(path, file, size)
            reader.read()
            return _summary(path, size, reader)
    except OSError as error:
        raise BrokenFile(path, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a NUL in the name
        raise BrokenFile(path, f"cannot be read: {error}") from error


def weight_bytes(header: Header) -> int:
    """Bytes of all weights of a model, in all its parts. Raises BrokenFile, UnsupportedFile."""
    others = (path for path in header.parts() if path != header.path)
    return header.weight_bytes + sum(read_header(path).weight_bytes for path in others)


def brings_next_layer(header: Header) -> bool:
    """Whether the engine can run a layer of the file that guesses. Raises BrokenFile, UnsupportedFile."""
    needed = tensors_of_next_layer(header.architecture, header.layers, header.next_layers)
    if needed is None:
        return False
    others = (path for path in header.parts() if path != header.path)
    return needed <= header.names.union(*(read_header(path).names for path in others))


def check_usable(header: Header) -> None:
    """Whether the engine can chat with the model. Raises UnsupportedFile."""
    problem = ""
    if header.head is not None:
        problem = "is an EAGLE-3 head: give it with --draft to the model that it was made for"
    elif header.kind != "model" or header.architecture in NOT_FOR_CHAT:
        what = header.kind if header.kind != "model" else header.architecture
        problem = f"is sound, but holds no model that writes text (it is a {what})"
    elif header.split is not None and header.split[0] != 1:
        problem = f"is part {header.split[0]} of {header.split[1]}; the model is loaded by its first part"
    elif header.architecture not in ARCHITECTURES:
        problem = f'is sound, but its architecture "{header.architecture}" is unknown to the engine of this specchat'
    elif not header.tensors and header.split is None:
        problem = "is sound, but holds no weights"
    elif header.tokenizer is None:
        problem = "is sound, but holds no vocabulary"
    if problem:
        raise UnsupportedFile(header.path, problem)


def _summary(path: Path, size: int, reader: Reader) -> Header:
    count, number = reader.whole_number("split.count", 0), reader.whole_number("split.no", 0)
    if not (count == 0 or 0 <= number < count <= 99999):
        raise reader.broken(f"is part {number + 1} of {count}")
    architecture = reader.words("general.architecture")
    if not architecture and number == 0:
        raise reader.broken("does not say its architecture")
    common = dict(reader.tensors.most_common())
    file_type = FILE_TYPES.get(reader.whole_number("general.file_type", 999) & 1023)
    context = reader.whole_number(f"{architecture}.context_length", 0)
    blocks, next_layers = (
        max(reader.numbers(f"{architecture}.{key}"), default=0) for key in ("block_count", "nextn_predict_layers")
    )
    return Header(
        path=path,
        size=size,
        architecture=architecture,
        kind=reader.words("general.type") or "model",
        name=reader.words("general.name"),
        quantization=file_type or next(iter(common), "unknown"),
        tensors=common,
        parameters=reader.parameters,
        weight_bytes=reader.weight_bytes,
        context=context or None,
        has_template=bool(reader.words("tokenizer.chat_template")),
        tokenizer=tokenizer_of(reader),
        shape=shape_of(reader, architecture),
        split=(number + 1, count) if count > 1 else None,
        names=frozenset(reader.rows),
        layers=max(blocks - next_layers, 0),
        next_layers=next_layers,
        head=head_of(reader, path.stem) if architecture == EAGLE3 else None,
    )
