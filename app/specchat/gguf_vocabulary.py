"""The vocabulary of a GGUF file without loading it, told as the engine tells that of a loaded one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specchat.gguf_reader import BrokenFile, Reader
from speculation.vocabulary import VocabularyFacts, VocabularyKind

# tokenizer.ggml.model -> the kind, the tokens that begin and end a text where the file names none, and whether these
# are added where it does not say
_MODELS: dict[str, tuple[VocabularyKind, int | None, int | None, bool, bool]] = {
    "llama": (VocabularyKind.SPM, 1, 2, True, False),
    "gpt2": (VocabularyKind.BPE, 11, 11, False, False),
    "hybriddna": (VocabularyKind.BPE, 11, 11, False, False),
    "whitespace": (VocabularyKind.BPE, 11, 11, False, False),
    "gemma4": (VocabularyKind.BPE, None, None, True, False),
    "bert": (VocabularyKind.WPM, 101, None, True, False),
    "t5": (VocabularyKind.UGM, None, 1, False, True),
    "rwkv": (VocabularyKind.RWKV, None, None, False, False),
    "plamo2": (VocabularyKind.PLAMO2, 1, 2, False, False),
    "test": (VocabularyKind.TEST, None, None, False, False),
}
# tokenizer.ggml.pre of BPE vocabularies that begin a text with a token all the same
_BEGINNING = frozenset(
    ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken",
     "chameleon")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What has to be equal between a target and its draft, and where the texts of the tokens are."""

    model: str  # "gpt2", "llama", ...
    pre: str  # how text is cut into words; "" where the file does not say
    n_tokens: int
    sha256: str  # of the texts of all tokens, each followed by NUL
    kind: str = ""  # "BPE", "SPM", ...; "" for one that the engine does not know
    bos: int | None = None  # added in front of a text; None: not added
    eos: int | None = None  # added behind one; None: not added
    at: int = 0  # in the file


def tokenizer_of(reader: Reader) -> Tokenizer | None:
    """The tokenizer that a header describes; None where it has none."""
    if not reader.vocabulary:
        return None
    model, pre = reader.words("tokenizer.ggml.model"), reader.words("tokenizer.ggml.pre")
    kind, bos, eos, adds_bos, adds_eos = _MODELS.get(model, (None, None, None, False, False))
    adds_bos = bool(_number(reader, "add_bos_token", adds_bos or (model == "gpt2" and pre in _BEGINNING)))
    adds_bos = adds_bos or model == "gemma4" or (model == "gpt2" and pre == "gemma4")  # whatever the file says
    adds_eos = bool(_number(reader, "add_eos_token", adds_eos))
    return Tokenizer(
        model=model,
        pre=pre,
        n_tokens=reader.n_tokens,
        sha256=reader.vocabulary,
        kind="" if kind is None else kind.name,
        bos=_token(reader, "bos_token_id", bos) if adds_bos else None,
        eos=_token(reader, "eos_token_id", eos) if adds_eos else None,
        at=reader.tokens_at,
    )


def vocabulary_facts(name: str, path: Path, tokenizer: Tokenizer) -> VocabularyFacts:
    """What `speculation.vocabulary.why_incompatible` compares. The file is read when a text is asked for."""
    return VocabularyFacts(
        name, tokenizer.kind, tokenizer.n_tokens, tokenizer.bos, tokenizer.eos, _texts(path, tokenizer)
    )


def _texts(path: Path, tokenizer: Tokenizer) -> Callable[[int], bytes]:
    @cache
    def read() -> list[bytes]:
        texts = []
        try:
            with path.open("rb", buffering=1 << 20) as file:
                file.seek(tokenizer.at)
                for token in range(tokenizer.n_tokens):
                    (length,) = struct.unpack("<Q", file.read(8))
                    text = file.read(length).partition(b"\0")[0]  # where the engine takes it to end
                    texts.append(text or b"[EMPTY_%d]" % token)  # as the engine calls it
        except (OSError, struct.error, OverflowError) as error:
            raise BrokenFile(path, "changed while it was read") from error
        return texts

    return lambda token: read()[token]


def _token(reader: Reader, key: str, default: int | None) -> int:
    found = _number(reader, key, -1 if default is None else default)
    if not 0 <= found < reader.n_tokens:  # the engine keeps its own where that is a token
        found = -1 if default is None or default >= reader.n_tokens else default
    return found


def _number(reader: Reader, key: str, default: int) -> int:
    found = reader.numbers(f"tokenizer.ggml.{key}")
    return found[0] if len(found) == 1 else default
