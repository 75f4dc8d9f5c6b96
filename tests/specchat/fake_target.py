"""A session on the history-sensitive fake: every token of the cache counts, and two runs are equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from specchat.conversation import Message, PromptFormat, Role
from specchat.loading import EngineOptions, Engines
from specchat.session import ChatSession, ReplySettings
from speculation.cost import CostTable
from speculation.llama import EngineLog, LlamaModel
from speculation.testing import FakeClock, HistoryModel
from speculation.types import EngineFailure, State, Tokens

LETTERS = "abcdefghijklmnopqrstuvwxyz .?"
END, REPLY, TURN = len(LETTERS), len(LETTERS) + 1, len(LETTERS) + 2
N_VOCAB = len(LETTERS) + 3


class LetterVocabulary:
    """A token for each letter."""

    ends = frozenset((END,))

    def piece(self, token: int) -> bytes:
        return LETTERS[token].encode() if token < END else b""

    def encode(self, text: str) -> Tokens:
        return np.array([LETTERS.index(letter) for letter in text if letter in LETTERS], dtype=np.int32)

    def decode(self, tokens: Sequence[int] | Tokens) -> bytes:
        return b"".join(self.piece(int(token)) for token in tokens)


class LetterFormat:
    """Messages with a mark behind each, and the mark of the reply; counts as the real one does."""

    notice = ""
    vocabulary = LetterVocabulary()

    def prompt(self, messages: Sequence[Message]) -> Tokens:
        ids: list[int] = []
        for message in messages:
            if message.text or message.tokens or message.role is not Role.ASSISTANT:
                said = self.vocabulary.encode(message.text) if message.tokens is None else message.tokens
                ids += [*([REPLY] if message.role is Role.ASSISTANT else []), *map(int, said), TURN]
        return np.array([*ids, REPLY], dtype=np.int32)

    def costs(self, messages: Sequence[Message]) -> list[int]:
        return [len(self.prompt([message])) - 1 for message in messages]


class FakeWeights:
    size_bytes = 1000
    back_end = "CPU"

    def __init__(self, path: Path, n_ctx_train: int) -> None:
        self.path = path
        self.name = path.stem
        self.n_ctx_train = n_ctx_train
        self.vocabulary = LetterVocabulary()


class FakeTarget(HistoryModel):
    """The fake with a state that can be saved."""

    def __init__(self, path: Path, n_ctx: int, *, can_rewind: bool = True) -> None:
        super().__init__(N_VOCAB, seed=3, n_ctx=n_ctx)
        self.can_rewind = self.rewinds_freely = can_rewind
        self.interrupt: Callable[[], bool] | None = None
        self.weights = FakeWeights(path, n_ctx_train=4096)
        self.state_kind = "f16"

    def save_state(self) -> State:
        return np.array(self._hashes, dtype=np.uint64).view(np.uint8)

    def restore_state(self, state: State, n_past: int) -> None:
        self.rewind(0)
        found = state.view(np.uint64)
        if len(found) != n_past:
            raise EngineFailure("not a state")
        self._hashes = [int(each) for each in found]


def session_on(target: FakeTarget, **settings: object) -> ChatSession:
    """A session on a fake, whose checks cost little and whose reading is slow."""
    engines = Engines(
        target=cast(LlamaModel, target),
        options=EngineOptions(),
        log=cast(EngineLog, None),
        format=cast(PromptFormat, LetterFormat()),
        cost=CostTable({1: 1.0, 8: 1.1, 64: 2.0}) if target.can_rewind else None,
        load_s=0.0,
    )
    return ChatSession(engines, ReplySettings(**settings), FakeClock())  # type: ignore[arg-type]


def model_on(folder: Path, n_ctx: int = 4096, *, can_rewind: bool = True, name: str = "fake") -> FakeTarget:
    """A fake with a model file of its own."""
    path = folder / f"{name}.gguf"
    if not path.exists():
        path.write_bytes(name.encode() * 1000)
    return FakeTarget(path, n_ctx, can_rewind=can_rewind)
