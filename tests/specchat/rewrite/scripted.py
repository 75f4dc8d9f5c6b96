"""A real session on a model that reads a file out of its prompt and writes what a test says; a token is a byte."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import cast

import numpy as np

from specchat.conversation import Message, PromptFormat
from specchat.loading import EngineOptions, Engines
from specchat.session import ChatSession, ReplySettings
from speculation.cost import CostTable
from speculation.llama import EngineLog, LlamaModel
from speculation.types import Logits, Tokens

END, REPLY, TURN, N_VOCAB = 256, 257, 258, 259

Script = Callable[[str, str], str]  # the file's text and the closing mark -> the reply behind the opening one


def edited(change: Callable[[str], str]) -> Script:
    """A model that makes a change and copies the rest."""
    return lambda text, closing: change(text) + closing


COPY = edited(lambda text: text)


class ByteVocabulary:
    """A token for each byte."""

    ends = frozenset((END,))

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < END else b""

    def encode(self, text: str) -> Tokens:
        return np.array(list(text.encode("utf-8", "replace")), dtype=np.int32)

    def decode(self, tokens: Sequence[int] | Tokens) -> bytes:
        return b"".join(self.piece(int(token)) for token in tokens)


class ByteWeights:
    name = "scripted"
    size_bytes = 1000
    back_end = "CPU"
    vocabulary = ByteVocabulary()

    def close(self) -> None:
        return


class ByteFormat:
    """Messages with a mark behind each, and the mark of the reply."""

    notice = ""

    def prompt(self, messages: Sequence[Message]) -> Tokens:
        ids = [token for message in messages for token in (*message.text.encode(), TURN)]
        return np.array([*ids, REPLY], dtype=np.int32)


class ScriptedModel:
    """Is certain of the next byte of what it was told to write."""

    n_vocab = N_VOCAB
    max_rows = 64
    can_rewind = True
    weights = ByteWeights()

    def __init__(self, script: Script, n_ctx: int = 20_000) -> None:
        self.script = script
        self.n_ctx = n_ctx
        self.interrupt: Callable[[], bool] | None = None
        self.before_forward: Callable[[int], None] = lambda written: None  # tokens of the reply that are in the cache
        self.doubts = ""  # a text that it nearly writes in the place of its own
        self.prompts: list[str] = []  # all messages that it was asked, in order, each once
        self._cache: list[int] = []

    @property
    def n_past(self) -> int:
        return len(self._cache)

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        self._cache += [int(token) for token in tokens]
        assert len(self._cache) <= self.n_ctx
        rows = np.zeros((n_rows, N_VOCAB), dtype=np.float32)
        if n_rows == 0:
            return rows
        at = self._cache.index(REPLY) + 1  # a guess may hold another one
        self.before_forward(len(self._cache) - at)
        wanted, doubts = self._reply(at)
        for i in range(n_rows):
            written = len(self._cache) - at - (n_rows - 1 - i)
            if written >= 0:
                rows[i, wanted[min(written, len(wanted) - 1)]] = 30.0
                if written < len(doubts) and doubts[written] != wanted[min(written, len(wanted) - 1)]:
                    rows[i, doubts[written]] = 29.9
        return rows

    def rewind(self, n_past: int) -> None:
        del self._cache[n_past:]

    def close(self) -> None:
        return

    def _reply(self, at: int) -> tuple[list[int], list[int]]:
        message = bytes(token for token in self._cache[: at - 1] if token < END).decode()
        if message not in self.prompts:
            self.prompts.append(message)
        found = re.search(r"Begin your reply with the line <([\w-]+)>", message)
        assert found is not None
        tag = found[1]
        text = re.search(rf"^<{tag}>\n(.*?)^</{tag}>$", message, re.DOTALL | re.MULTILINE)
        assert text is not None
        opening, closing = f"<{tag}>\n", f"</{tag}>"
        reply = opening + self.script(text[1], closing)
        return [*reply.encode(), END], [*(opening + self.doubts).encode()] if self.doubts else []


class TimedModel(ScriptedModel):
    """Takes exactly the time of the price list, by a clock of its own."""

    def __init__(self, script: Script, n_ctx: int = 20_000) -> None:
        super().__init__(script, n_ctx)
        self.now_s = 0.0

    def clock(self) -> float:
        return self.now_s

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        self.now_s += COST.forward_s(n_rows) if n_rows else 0.0
        return super().forward(tokens, n_rows=n_rows)


COST = CostTable({1: 1.0, 8: 1.1, 64: 2.0})


def session_on(model: ScriptedModel, **settings: object) -> ChatSession:
    """A session on a scripted model, whose checks cost little."""
    clock = model.clock if isinstance(model, TimedModel) else perf_counter
    engines = Engines(
        target=cast(LlamaModel, model),
        options=EngineOptions(),
        log=cast(EngineLog, None),
        format=cast(PromptFormat, ByteFormat()),
        cost=COST,
        load_s=0.0,
    )
    return ChatSession(engines, ReplySettings(**settings), clock)  # type: ignore[arg-type]
