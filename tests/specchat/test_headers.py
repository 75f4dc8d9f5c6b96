"""What is read out of GGUF files, and that nothing a file claims is believed."""

from __future__ import annotations

import hashlib
import os
import random
import re
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf.constants import GGML_QUANT_SIZES

from specchat import gguf_reader
from specchat.gguf_names import ARCHITECTURES, NOT_FOR_CHAT, TENSOR_TYPES
from specchat.headers import BrokenFile, HeaderError, UnsupportedFile, check_usable, read_header
from tests.gguf import tiny
from tests.gguf.tiny import VOCABULARY

U32, TEXT, ARRAY = 4, 8, 9


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_attention(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


def text(words: str | bytes) -> bytes:
    data = words.encode() if isinstance(words, str) else words
    return struct.pack("<Q", len(data)) + data


def number(key: str, value: int) -> bytes:
    return text(key) + struct.pack("<II", U32, value)


def words(key: str, value: str) -> bytes:
    return text(key) + struct.pack("<I", TEXT) + text(value)


def array(key: str, kind: int, count: int, data: bytes) -> bytes:
    return text(key) + struct.pack("<IIQ", ARRAY, kind, count) + data


def tensor(name: str, *shape: int, kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


LLAMA = words("general.architecture", "llama")


def gguf(
    *keys: bytes,
    tensors: tuple[bytes, ...] = (),
    data: bytes = b"",
    version: int = 3,
    n_keys: int | None = None,
    n_tensors: int | None = None,
) -> bytes:
    """A file made by hand, with counts that need not be true."""
    counts = struct.pack("<IQQ", version, n_tensors if n_tensors is not None else len(tensors),
                         n_keys if n_keys is not None else len(keys))  # fmt: skip
    head = b"GGUF" + counts + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data if tensors else head


def test_a_header_says_what_the_model_is(model: Path) -> None:
    header = read_header(model)

    assert (header.architecture, header.kind, header.name) == ("llama", "model", "tiny-llama")
    assert (header.context, header.has_template, header.split) == (tiny.CONTEXT_LENGTH, True, None)
    assert header.quantization == "F32"
    assert set(header.tensors) == {"F32"}
    assert header.size == model.stat().st_size
    assert header.parameters * 4 == pytest.approx(header.size, rel=0.2)
    tokens = b"".join(token.encode() + b"\0" for token in VOCABULARY.tokens)
    assert header.tokenizer is not None
    assert header.tokenizer.sha256 == hashlib.sha256(tokens).hexdigest()
    assert (header.tokenizer.model, header.tokenizer.pre) == ("gpt2", "qwen2")
    assert header.tokenizer.n_tokens == len(VOCABULARY.tokens)
    check_usable(header)


@pytest.mark.parametrize("write", [tiny.write_sliding_window, tiny.write_recurrent, tiny.write_hybrid])
def test_all_kinds_of_models_are_read(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    header = read_header(write(tmp_path / "x.gguf"))

    check_usable(header)
    assert header.parameters > 0


def test_one_edited_token_changes_the_hash_of_the_vocabulary(tmp_path: Path, model: Path) -> None:
    other = read_header(tiny.write_attention(tmp_path / "x.gguf", replace_token=(100, "odd one")))
    same = read_header(tiny.write_attention(tmp_path / "y.gguf", seed=7))

    hashes = [header.tokenizer and header.tokenizer.sha256 for header in (read_header(model), same, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_file_without_a_template_says_so(tmp_path: Path) -> None:
    assert not read_header(tiny.write_attention(tmp_path / "x.gguf", chat_template=None)).has_template


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "half a mark": (b"GG", "it begins with b'GG'"),
    "page": (b"<!DOCTYPE html><html>", "it begins with b'<!DO'"),
    "mark alone": (b"GGUF", "ends in the middle of the version"),
    "version zero": (gguf(LLAMA, version=0), "version 0"),
    "version noise": (gguf(LLAMA, version=0x01020304), "of version 16909060"),
    "no counts": (b"GGUF" + struct.pack("<I", 3), "the count of tensors"),
    "no keys": (gguf(), "does not say its architecture"),
    "huge key count": (gguf(LLAMA, n_keys=2**63), "claims 9223372036854775808 keys"),
    "all ones": (b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 2**64 - 1), "claims 18446744073709551615 keys"),
    "huge tensor count": (gguf(LLAMA, n_tensors=2**40), "1099511627776 tensors"),
    "one key too few": (gguf(LLAMA, n_keys=2), "ends in the middle of a key"),
    "empty key": (gguf(LLAMA, words("", "x")), "a key without a name"),
    "twice": (gguf(LLAMA, LLAMA), "the key 'general.architecture' twice"),
    "huge key": (gguf(LLAMA, struct.pack("<Q", 2**40) + b"x"), "claims 1099511627776 bytes for a key"),
    "key that wraps": (gguf(LLAMA, struct.pack("<Q", 2**64 - 8) + b"x"), "claims 18446744073709551608 bytes"),
    "huge value": (gguf(text("general.name") + struct.pack("<IQ", TEXT, 2**62)), "bytes for general.name"),
    "value beyond the end": (gguf(text("general.name") + struct.pack("<IQ", TEXT, 999)), "middle of general.name"),
    "value that wraps": (gguf(text("general.name") + struct.pack("<IQ", TEXT, 2**64 - 24)), "general.name"),
    "type thirteen": (gguf(LLAMA, text("k") + struct.pack("<II", 13, 1)), "the type 13, which does not exist"),
    "negative type": (gguf(LLAMA, text("k") + struct.pack("<iI", -1, 1)), "type 4294967295"),
    "array of arrays": (gguf(LLAMA, array("k", ARRAY, 1, bytes(12))), "which arrays do not have"),
    "array of nothing": (gguf(LLAMA, array("k", 77, 1, bytes(8))), "type 77, which arrays"),
    "huge array": (gguf(LLAMA, array("k", U32, 2**50, b"")), "claims 1125899906842624 elements"),
    "array that wraps": (gguf(LLAMA, array("k", U32, 2**62, bytes(8))), "more than the file has room for"),
    "array beyond the end": (gguf(LLAMA, array("k", U32, 3, bytes(8))), "claims 3 elements"),
    "texts beyond the end": (gguf(LLAMA, array("k", TEXT, 2, text("a"))), "claims 2 elements"),
    "text of an array beyond": (gguf(LLAMA, array("k", TEXT, 1, struct.pack("<Q", 9))), "in the middle of k"),
    "text of an array that wraps": (gguf(LLAMA, array("k", TEXT, 1, struct.pack("<Q", 2**64 - 8))), "bytes for k"),
    "architecture a number": (gguf(number("general.architecture", 1)), "no text under 'general.architecture'"),
    "architecture empty": (gguf(words("general.architecture", "")), "does not say its architecture"),
    "context a text": (gguf(LLAMA, words("llama.context_length", "x")), "no whole number under"),
    "vocabulary a number": (gguf(LLAMA, number("tokenizer.ggml.tokens", 9)), "a vocabulary that is no list of texts"),
    "vocabulary of numbers": (gguf(LLAMA, array("tokenizer.ggml.tokens", U32, 1, bytes(4))), "no list of texts"),
    "scores too short": (
        gguf(LLAMA, array("tokenizer.ggml.tokens", TEXT, 2, text("a") * 2),
             array("tokenizer.ggml.scores", 6, 1, bytes(4))), "a scores list that is shorter"),
    "types of texts": (
        gguf(LLAMA, array("tokenizer.ggml.tokens", TEXT, 1, text("a")),
             array("tokenizer.ggml.token_type", TEXT, 1, text("b"))), "a token_type list"),
    "merges of numbers": (
        gguf(LLAMA, array("tokenizer.ggml.tokens", TEXT, 1, text("a")),
             array("tokenizer.ggml.merges", U32, 1, bytes(4))), "merges that are no list of texts"),
    "template a number": (gguf(LLAMA, number("tokenizer.chat_template", 1)), "under 'tokenizer.chat_template'"),
    "alignment zero": (gguf(LLAMA, number("general.alignment", 0)), "aligns its data to 0 bytes"),
    "alignment three": (gguf(LLAMA, number("general.alignment", 3)), "no power of two"),
    "alignment a text": (gguf(LLAMA, words("general.alignment", "32")), "no whole number under 'general.alignment'"),
    "long tensor name": (gguf(LLAMA, tensors=(tensor("x" * 64, 1),), data=bytes(4)), "bytes for the name of a tensor"),
    "tensor twice": (
        gguf(LLAMA, tensors=(tensor("x", 8), tensor("x", 8, offset=32)), data=bytes(64)), "the tensor 'x' twice"),
    "five dimensions": (gguf(LLAMA, tensors=(tensor("x", 1, 1, 1, 1, 1),), data=bytes(4)), "5 dimensions"),
    "many dimensions": (gguf(LLAMA, tensors=(text("x") + struct.pack("<I", 2**31),)), "2147483648 dimensions"),
    "shape that wraps": (gguf(LLAMA, tensors=(tensor("x", 2**32, 2**32),), data=bytes(4)), "than can be counted"),
    "negative shape": (gguf(LLAMA, tensors=(tensor("x", 2**64 - 1),), data=bytes(4)), "than can be counted"),
    "half a block": (gguf(LLAMA, tensors=(tensor("x", 33, kind=2),), data=bytes(64)), "no multiple of 32"),
    "no data": (gguf(LLAMA, tensors=(tensor("x", 2**40),)), "is incomplete"),
    "one byte short": (gguf(LLAMA, tensors=(tensor("x", 8),), data=bytes(31)), "is incomplete"),
    "overlap": (
        gguf(LLAMA, tensors=(tensor("x", 8), tensor("y", 8)), data=bytes(64)), "'y' at 0 of its data, expected 32"),
    "circle": (
        gguf(LLAMA, tensors=(tensor("x", 8, offset=32), tensor("y", 8, offset=0)), data=bytes(64)), "'x' at 32"),
    "offset that wraps": (gguf(LLAMA, tensors=(tensor("x", 8, offset=2**64 - 32),), data=bytes(64)), "expected 0"),
    "part five of three": (gguf(LLAMA, number("split.no", 4), number("split.count", 3)), "is part 5 of 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    content, said = BROKEN[name]
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)

    with pytest.raises(BrokenFile, match=re.escape(said)) as caught:
        read_header(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.exit_code == 4


def test_there_are_fifty_broken_files() -> None:
    assert len(BROKEN) >= 50


def test_a_file_cut_anywhere_is_refused_and_never_taken_for_a_whole_one(tmp_path: Path, model: Path) -> None:
    content = model.read_bytes()
    rng = random.Random(4)
    cuts = {*range(0, 64), *(rng.randrange(len(content)) for _ in range(300)), len(content) - 1}
    path = tmp_path / "cut.gguf"
    path.write_bytes(content)

    for cut in sorted(cuts, reverse=True):
        os.truncate(path, cut)
        with pytest.raises(BrokenFile):
            read_header(path)


def test_bytes_changed_anywhere_in_a_header_end_in_a_header_or_a_reason(tmp_path: Path, model: Path) -> None:
    content = model.read_bytes()
    rng = random.Random(5)
    path = tmp_path / "flipped.gguf"
    refused = 0

    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(24, 30_000)] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        path.write_bytes(damaged)
        try:
            read_header(path)
        except HeaderError:
            refused += 1

    assert refused > 50


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gguf(LLAMA, version=1), "version 1, which was made for engines of 2023"),
        (gguf(LLAMA, version=4), "version 4, which needs a newer engine"),
        (gguf(LLAMA, version=0x03000000), "machines of the other byte order"),
        (gguf(LLAMA, tensors=(tensor("x", 32, kind=31),), data=bytes(64)), "a quantization that engines no longer"),
        (gguf(LLAMA, tensors=(tensor("x", 32, kind=99),), data=bytes(64)), "an unknown type (number 99)"),
    ],
)
def test_what_another_engine_could_read_is_not_called_broken(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)

    with pytest.raises(UnsupportedFile, match=re.escape(said)):
        read_header(path)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ((words("general.architecture", "tiny-unknown"),), 'its architecture "tiny-unknown" is unknown to the engine'),
        ((words("general.architecture", "clip"),), "holds no model that writes text (it is a clip)"),
        ((words("general.architecture", "nomic-bert"),), "(it is a nomic-bert)"),
        ((LLAMA, words("general.type", "mmproj")), "(it is a mmproj)"),
        ((LLAMA, words("general.type", "adapter")), "(it is a adapter)"),
        ((LLAMA, number("split.no", 1), number("split.count", 2)), "is part 2 of 2; the model is loaded by its first"),
        ((LLAMA,), "holds no vocabulary"),
    ],
)
def test_a_sound_file_that_is_no_chat_model_is_told_apart(tmp_path: Path, keys: tuple[bytes, ...], said: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf(*keys, tensors=(tensor("x", 8),), data=bytes(32)))
    header = read_header(path)

    with pytest.raises(UnsupportedFile, match=re.escape(said)):
        check_usable(header)


def test_a_vocabulary_alone_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf(LLAMA, array("tokenizer.ggml.tokens", TEXT, 1, text("a"))))

    with pytest.raises(UnsupportedFile, match="holds no weights"):
        check_usable(read_header(path))


def test_the_unknown_architecture_of_a_real_file_is_not_called_broken(tmp_path: Path) -> None:
    header = read_header(tiny.write_unknown_architecture(tmp_path / "x.gguf"))

    with pytest.raises(UnsupportedFile, match="tiny-unknown"):
        check_usable(header)


def test_a_split_model_names_all_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "m-00001-of-00003.gguf"
    path.write_bytes(gguf(LLAMA, number("split.no", 0), number("split.count", 3)))

    header = read_header(path)

    assert header.split == (1, 3)
    assert [each.name for each in header.parts()] == [f"m-0000{n}-of-00003.gguf" for n in (1, 2, 3)]


def test_parts_joined_end_to_end_are_told_what_to_do(tmp_path: Path) -> None:
    first = gguf(LLAMA, number("split.count", 2), tensors=(tensor("x", 8),), data=bytes(32))
    (tmp_path / "x.gguf").write_bytes(first + gguf(LLAMA))

    with pytest.raises(BrokenFile, match="joined end to end: use the parts, or join them with llama-gguf-split"):
        read_header(tmp_path / "x.gguf")


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="is a folder"):
        read_header(tmp_path)
    with pytest.raises(BrokenFile, match="No such file"):
        read_header(tmp_path / "missing.gguf")
    with pytest.raises(BrokenFile, match="cannot be read"):
        read_header(Path("a\0b.gguf"))
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe.gguf")
        with pytest.raises(BrokenFile, match="a device or a pipe"):
            read_header(tmp_path / "pipe.gguf")


def test_a_large_vocabulary_is_read_in_a_moment(tmp_path: Path) -> None:
    texts = b"".join(text(f"token{number}") for number in range(300_000))
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf(LLAMA, array("tokenizer.ggml.tokens", TEXT, 300_000, texts)))
    began = time.perf_counter()

    read_header(path)

    assert time.perf_counter() - began < 5  # it takes 0.2 s; the reader of the gguf package takes 20 times longer


def test_the_texts_of_a_header_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_reader, "HEADER_BYTES", 1000)
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf(LLAMA, words("a", "x" * 600), words("b", "x" * 600)))

    with pytest.raises(BrokenFile, match="more than 1000 bytes before its weights"):
        read_header(path)


def test_the_sizes_of_tensor_types_are_those_of_the_gguf_package() -> None:
    theirs = {int(kind): (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}

    assert {kind: TENSOR_TYPES[kind] for kind in theirs} == theirs


def test_the_known_architectures_are_in_the_installed_engine() -> None:
    import llama_cpp

    libraries = [path for path in (Path(llama_cpp.__file__).parent / "lib").iterdir() if "llama" in path.name]
    content = b"".join(path.read_bytes() for path in libraries)

    missing = [name for name in ARCHITECTURES if name.encode() + b"\0" not in content]
    # Linkers share the ends of texts, and short names may be kept inside the code.
    assert len(missing) < 8, missing
    assert NOT_FOR_CHAT <= ARCHITECTURES
