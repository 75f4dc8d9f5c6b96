"""The vocabulary of a GGUF file."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import llama_cpp
import numpy as np

from speculation.types import SpeculationError, Tokens
from speculation.vocabulary import VocabularyFacts, VocabularyKind


class Loaded(Protocol):
    """A file whose vocabulary this is."""

    @property
    def handle(self) -> Any: ...

    @property
    def name(self) -> str: ...


class Vocabulary:
    """Text to token ids and back, byte for byte."""

    def __init__(self, weights: Loaded) -> None:
        self._weights = weights
        self._pointer = llama_cpp.llama_model_get_vocab(weights.handle)
        self._pieces: dict[int, bytes] = {}
        self.n_tokens = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self.kind = VocabularyKind(llama_cpp.llama_vocab_type(self._vocab))
        self.bos = int(llama_cpp.llama_vocab_bos(self._vocab))
        self.eos = int(llama_cpp.llama_vocab_eos(self._vocab))
        self.adds_bos = bool(llama_cpp.llama_vocab_get_add_bos(self._vocab))

    @property
    def _vocab(self) -> Any:
        return self._weights.handle and self._pointer

    @cached_property
    def ends(self) -> frozenset[int]:
        """Every token that ends a reply, by llama.cpp's own list for this file."""
        return frozenset(t for t in range(self.n_tokens) if llama_cpp.llama_vocab_is_eog(self._vocab, t))

    @cached_property
    def controls(self) -> dict[str, int]:
        """Text and id of each control token: what a template writes and a user must not."""
        ids = (t for t in range(self.n_tokens) if llama_cpp.llama_vocab_is_control(self._vocab, t))
        return {text.decode("utf-8", "replace"): t for t in ids if (text := self.text(t))}

    def text(self, token: int) -> bytes:
        """The token as it stands in the file, which for byte-level vocabularies is not its text."""
        return bytes(llama_cpp.llama_vocab_get_text(self._vocab, self._known(token)) or b"")

    def encode(self, text: str) -> Tokens:
        """Token ids of text in which control tokens have no meaning, shape (n,)."""
        data = text.encode("utf-8", "replace")
        ids = np.empty(len(data) + 8, dtype=np.int32)  # a byte or more a token, and a space put in front
        pointer = ids.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token))
        n = llama_cpp.llama_tokenize(self._vocab, data, len(data), pointer, len(ids), False, False)
        if n < 0:
            raise SpeculationError(f"cannot turn {len(data)} bytes into tokens of {self._weights.name}")
        return ids[:n].copy()

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; empty for control tokens."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(self._known(token))
        return known

    def _known(self, token: int) -> int:
        if not 0 <= token < self.n_tokens:
            raise ValueError(f"token {token}: there are {self.n_tokens}")  # the engine would abort the process
        return token

    def decode(self, tokens: Sequence[int] | Tokens) -> bytes:
        """The bytes that tokens stand for."""
        return b"".join(self.piece(int(token)) for token in tokens)

    def facts(self, name: str) -> VocabularyFacts:
        """What has to agree with another model's vocabulary."""
        adds_eos = bool(llama_cpp.llama_vocab_get_add_eos(self._vocab))
        bos, eos = self.bos if self.adds_bos else None, self.eos if adds_eos else None
        return VocabularyFacts(name, self.kind.name, self.n_tokens, bos, eos, self.text)

    def _read_piece(self, token: int) -> bytes:
        size = 32
        while True:
            buffer = ctypes.create_string_buffer(size)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if n >= 0:
                return buffer.raw[:n]
            size = -n  # the engine's way of asking for a bigger buffer
