"""Reads what stands before the weights in a GGUF file, without trusting any of it.

The reader of the `gguf` package takes seconds for a large vocabulary, has no limits, and accepts some damaged files;
llama.cpp itself may end the process over one. So this one is small, and every count and size is checked against the
limits below and against the bytes that are really there before anything is read or kept.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from specchat.exit_codes import ExitCode
from specchat.gguf_names import REMOVED_TENSOR_TYPES, TENSOR_TYPES

MAGIC = b"GGUF"
VERSIONS = (2, 3)
KEYS = TENSORS = 1 << 16
ELEMENTS = 1 << 24  # of an array
TEXTS = 1 << 21  # in all arrays together
KEY_BYTES = 1 << 10
KEPT_BYTES = 1 << 12  # of a value that is a text
KEPT_NUMBERS = 1 << 10  # of an array: one for each layer
HEADER_BYTES = 1 << 28
NEWEST_VERSION = 100  # beyond it, nobody counts versions, and the number is noise
NAME_BYTES = 63  # of a tensor, as llama.cpp has it
DIMENSIONS = 4

Value = int | float | bool | str

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"
}  # fmt: skip
_TRUTH, _TEXT, _ARRAY = 7, 8, 9
_INTEGERS = (0, 1, 2, 3, 4, 5, 10, 11)


class HeaderError(Exception):
    """A file that cannot be loaded; the text names it and says why."""

    exit_code = ExitCode.MODEL

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.problem = problem


class BrokenFile(HeaderError):
    """The file is damaged, incomplete or no GGUF file."""


class UnsupportedFile(HeaderError):
    """The file is sound as far as can be told, and the engine cannot use it."""


class Reader:
    """Reads the keys and the table of tensors of one file, forward and never beyond what is there."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self._path = path
        self._file = file
        self._size = size
        self._at = 0
        self._texts = 0
        self._values: dict[str, Value] = {}
        self._types: dict[str, int] = {}
        self._lengths: dict[str, tuple[int, int]] = {}  # of arrays: type and number of their elements
        self._numbers: dict[str, tuple[int, ...]] = {}  # the short arrays of whole numbers
        self.n_tokens = 0
        self.tokens_at = 0  # where in the file the texts of the tokens begin
        self.vocabulary = ""  # sha256 of the texts of all tokens, each followed by NUL
        self.tensors: Counter[str] = Counter()  # of each type
        self.rows: dict[str, int] = {}  # of each tensor, by name; the numbers of one without rows
        self.parameters = 0
        self.weight_bytes = 0

    def read(self) -> None:
        """Read it all. Raises BrokenFile, UnsupportedFile, OSError."""
        magic = self._take(min(len(MAGIC), self._size), "its beginning")
        if magic != MAGIC:
            raise self.broken(f"is no GGUF file ({f'it begins with {magic!r}' if magic else 'it is empty'})")
        version = self._number("<I", "the version")
        if version and version & 0xFFFF == 0:
            raise UnsupportedFile(self._path, "is written for machines of the other byte order")
        if not 1 <= version <= NEWEST_VERSION:
            raise self.broken(f"is no GGUF file (of version {version})")
        if version not in VERSIONS:
            problem = "needs a newer engine" if version > max(VERSIONS) else "was made for engines of 2023"
            raise UnsupportedFile(self._path, f"is a GGUF file of version {version}, which {problem}")
        n_tensors, n_keys = self._number("<Q", "the count of tensors"), self._number("<Q", "the count of keys")
        if n_tensors > TENSORS or n_keys > KEYS:
            raise self.broken(f"claims {n_keys} keys and {n_tensors} tensors")
        for _ in range(n_keys):
            self._key()
        self._check_arrays()
        self._check_tensors(n_tensors)

    def _key(self) -> None:
        key = self._text("a key", KEY_BYTES)
        if not key:
            raise self.broken("has a key without a name")
        if key in self._types:
            raise self.broken(f"has the key {key!r} twice")
        kind = self._types[key] = self._number("<I", f"the type of {key!r}")
        if kind in _SCALARS:
            self._values[key] = self._number(_SCALARS[kind], key)
        elif kind == _TEXT:
            self._values[key] = self._bytes(key)[:KEPT_BYTES].decode("utf-8", "replace")
        elif kind == _ARRAY:
            self._array(key)
        else:
            raise self.broken(f"gives {key!r} the type {kind}, which does not exist")

    def _array(self, key: str) -> None:
        kind, count = self._number("<I", key), self._number("<Q", key)
        if kind not in _SCALARS and kind != _TEXT:
            raise self.broken(f"gives the elements of {key!r} the type {kind}, which arrays do not have")
        least = 8 if kind == _TEXT else struct.calcsize(_SCALARS[kind])
        if count > ELEMENTS or count * least > self._size - self._at:
            raise self.broken(f"claims {count} elements for {key!r}, more than the file has room for")
        self._lengths[key] = kind, count
        if kind in (*_INTEGERS, _TRUTH) and count <= KEPT_NUMBERS:
            self._numbers[key] = tuple(int(self._number(_SCALARS[kind], key)) for _ in range(count))
            return
        if kind != _TEXT:
            self._skip(count * least, key)
            return
        self._texts += count
        if self._texts > TEXTS:
            raise self.broken(f"claims {self._texts} texts in its arrays")
        digest = hashlib.sha256() if key == "tokenizer.ggml.tokens" else None
        self.tokens_at = self.tokens_at if digest is None else self._at
        for _ in range(count):
            text = self._bytes(key)
            if digest is not None:
                digest.update(text + b"\0")
        if digest is not None:
            self.n_tokens, self.vocabulary = count, digest.hexdigest()

    def _check_arrays(self) -> None:
        """The engine reads these without looking."""
        tokens = self._lengths.get("tokenizer.ggml.tokens")
        if tokens is None and "tokenizer.ggml.tokens" not in self._types:
            return
        if tokens is None or tokens[0] != _TEXT:
            raise self.broken("has a vocabulary that is no list of texts")
        for key, kinds in (("scores", (6,)), ("token_type", (4, 5))):
            name = f"tokenizer.ggml.{key}"
            if name in self._types and (
                name not in self._lengths or self._lengths[name][0] not in kinds or self._lengths[name][1] < tokens[1]
            ):
                raise self.broken(f"has {tokens[1]} tokens, and a {key} list that is shorter or no list of numbers")
        if "tokenizer.ggml.merges" in self._types and self._lengths.get("tokenizer.ggml.merges", (0, 0))[0] != _TEXT:
            raise self.broken("has merges that are no list of texts")

    def _check_tensors(self, count: int) -> None:
        alignment = self.whole_number("general.alignment", 32)
        if alignment <= 0 or alignment & (alignment - 1):
            raise self.broken(f"aligns its data to {alignment} bytes, which is no power of two")
        end = padded = 0  # of the data, which begins behind this table
        for _ in range(count):
            name = self._text("the name of a tensor", NAME_BYTES)
            if name in self.rows:
                raise self.broken(f"has the tensor {name!r} twice")
            n_elements, n_bytes, type_name, offset = self._tensor(name)
            # Each begins where the one before it ends: nothing overlaps and nothing is hidden in between.
            if offset != padded:
                raise self.broken(f"has the tensor {name!r} at {offset} of its data, expected {padded}")
            end = offset + n_bytes
            padded = -(-end // alignment) * alignment
            self.parameters += n_elements
            self.weight_bytes += n_bytes
            self.tensors[type_name] += 1
        start = -(-self._at // alignment) * alignment
        if count and start + end > self._size:
            raise self.broken(f"is incomplete: {self._size} of {start + end} bytes are here")
        self._check_joined(start + padded)

    def _tensor(self, name: str) -> tuple[int, int, str, int]:
        n_dimensions = self._number("<I", name)
        if n_dimensions > DIMENSIONS:
            raise self.broken(f"gives the tensor {name!r} {n_dimensions} dimensions")
        n_elements, row, length = 1, 1, 1
        for at in range(n_dimensions):
            length = self._number("<Q", name)
            row = length if at == 0 else row
            n_elements *= length
            if n_elements >= 1 << 63:
                raise self.broken(f"gives the tensor {name!r} more elements than can be counted")
        self.rows[name] = length
        kind, offset = self._number("<I", name), self._number("<Q", name)
        if kind not in TENSOR_TYPES:
            age = "a quantization that engines no longer read" if kind in REMOVED_TENSOR_TYPES else "an unknown type"
            raise UnsupportedFile(self._path, f"stores the tensor {name!r} in {age} (number {kind})")
        type_name, block, block_bytes = TENSOR_TYPES[kind]
        if row % block:
            raise self.broken(f"gives the tensor {name!r} rows of {row} elements, no multiple of {block}")
        return n_elements, n_elements // block * block_bytes, type_name, offset

    def _check_joined(self, end: int) -> None:
        if self.whole_number("split.count", 0) > 1 and end < self._size:
            self._file.seek(end)
            if self._file.read(4) == MAGIC:
                problem = "is made of the parts of a split model, joined end to end: use the parts, or join them with"
                raise self.broken(f"{problem} llama-gguf-split --merge")

    def whole_number(self, key: str, default: int) -> int:
        """The value of a key. Raises BrokenFile where it is no whole number."""
        if key not in self._types:
            return default
        value = self._values.get(key)
        if self._types[key] not in _INTEGERS or not isinstance(value, int) or value < 0:
            raise self.broken(f"has no whole number under {key!r}")
        return value

    def numbers(self, key: str) -> tuple[int, ...]:
        """The whole numbers of a short array, or of a key that has one of them; empty where there is none."""
        value = self._values.get(key)
        return (value,) if isinstance(value, int) else self._numbers.get(key, ())

    def words(self, key: str) -> str:
        """The value of a key, "" where there is none. Raises BrokenFile where it is no text."""
        if key in self._types and self._types[key] != _TEXT:
            raise self.broken(f"has no text under {key!r}")
        return str(self._values.get(key, ""))

    def _text(self, what: str, most: int) -> str:
        text = self._bytes(what, most)
        return text.decode("utf-8", "replace")

    def _bytes(self, what: str, most: int = HEADER_BYTES) -> bytes:
        length = self._number("<Q", what)
        if length > most:
            raise self.broken(f"claims {length} bytes for {what}, at most {most} are sensible")
        return self._take(length, what)

    def _number(self, form: str, what: str) -> int:
        (value,) = struct.unpack(form, self._take(struct.calcsize(form), what))
        return value  # type: ignore[no-any-return] # or a float or a bool, where the file says so

    def _take(self, count: int, what: str) -> bytes:
        self._room(count, what)
        data = self._file.read(count)
        if len(data) != count:  # the file became shorter just now
            raise self.broken(f"ends in the middle of {what}")
        self._at += count
        return data

    def _skip(self, count: int, what: str) -> None:
        self._room(count, what)
        self._at += count
        self._file.seek(self._at)

    def _room(self, count: int, what: str) -> None:
        if count > self._size - self._at:
            raise self.broken(f"ends in the middle of {what}")
        if self._at + count > HEADER_BYTES:
            raise self.broken(f"has more than {HEADER_BYTES} bytes before its weights")

    def broken(self, problem: str) -> BrokenFile:
        """The refusal of this file."""
        return BrokenFile(self._path, problem)
