"""The text that a head learns from: the model asks itself questions in its own template, and answers them.

Several texts grow at once, because a row beside others is cheaper than one alone. What comes out are the tokens of the
replies with the model's state at each; no file is needed, and no prompt of ours decides what the text is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from specchat.conversation import Message, Role
from speculation.context import common_prefix
from speculation.llama import Part, Read
from speculation.sampling import SamplingConfig, distribution
from speculation.types import Row, Tokens

LENGTH = 320  # tokens of a text, question included
_LONGEST_QUESTION, _SHORTEST_QUESTION = 48, 4  # tokens
_SHORTEST_REPLY = 24  # tokens
_ASKING = SamplingConfig(temperature=1.0, top_k=50, top_p=1.0, min_p=0.0)


class Texts(Protocol):
    """Several texts of one model, see `ParallelTexts`."""

    @property
    def n_texts(self) -> int: ...
    @property
    def n_ctx(self) -> int: ...
    @property
    def n_batch(self) -> int: ...
    def read(self, parts: Sequence[Part]) -> list[Read]: ...
    def forget(self, text: int) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What a template writes around a question."""

    before: Tokens
    after: Tokens  # begins with what ends the question
    ends: frozenset[int]  # of replies


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A reply, and the state that the model had at each token of it."""

    tokens: Tokens  # (n,)
    hidden: NDArray[np.float16]  # (n, n_hidden)


def frame_of(prompt: Callable[[Sequence[Message]], Tokens], ends: frozenset[int]) -> Frame:
    """The frame that two different questions share. Raises what `prompt` does."""
    one, other = (prompt([Message(Role.USER, text)]) for text in ("Why", "\n\n3"))
    before = common_prefix(one, other)
    after = common_prefix(one[before:][::-1], other[before:][::-1])
    return Frame(one[:before], one[len(one) - after :], ends)


@dataclass
class _Growing:
    """One of the texts."""

    pending: list[int]
    read: int = 0  # tokens
    asked: int = 0  # tokens of the question
    answers: bool = False
    tokens: list[int] = field(default_factory=list)  # of the reply, and of what the template writes before it
    hidden: list[NDArray[np.float16]] = field(default_factory=list)


def replies(model: Texts, frame: Frame, rng: Generator) -> Iterator[list[Written]]:
    """For ever the replies that ended in each round, often none. Raises EngineFailure."""
    texts = [_Growing(frame.before.tolist()) for _ in range(model.n_texts)]
    length = min(LENGTH, model.n_ctx)
    first = 0
    while True:
        parts: list[Part] = []
        room = model.n_batch
        for number in [*range(first, len(texts)), *range(first)]:  # so that nobody waits for ever
            text = texts[number]
            if len(text.pending) > room:
                first = number
                break
            parts.append(Part(number, text.read, text.pending))
            room -= len(text.pending)
        finished = []
        for part, seen in zip(parts, model.read(parts), strict=True):
            text = texts[part.text]
            text.read += len(text.pending)
            ended = _answered(text, seen, frame, length) if text.answers else _asked(text, seen.row, frame, rng)
            if ended:
                if len(text.tokens) >= _SHORTEST_REPLY:
                    finished.append(_written(text))
                model.forget(part.text)
                texts[part.text] = _Growing(frame.before.tolist())
        yield finished


def read_again(model: Texts, given: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Iterator[list[Written]]:
    """The same of replies that are there already, each with the prompt before it; those too long are left out."""
    for prompt, reply in given:
        whole = [*prompt, *reply]
        if len(whole) > model.n_texts * model.n_ctx:
            continue
        rows = []
        for start in range(0, len(whole), model.n_batch):
            part = Part(0, start, whole[start : start + model.n_batch])
            rows.append(model.read([part])[0].hidden.astype(np.float16))
        model.forget(0)
        yield [Written(np.array(reply, dtype=np.int32), np.concatenate(rows)[len(prompt) :])]


def _asked(text: _Growing, row: Row, frame: Frame, rng: Generator) -> bool:
    """Another token of the question; True where it came to nothing."""
    q = distribution(row, _ASKING)
    token = int(rng.choice(q.ids, p=q.probs / q.probs.sum()))
    if token in frame.ends or token == frame.after[0] or text.asked >= _LONGEST_QUESTION:
        text.answers = True
        text.pending = frame.after.tolist()
        return text.asked < _SHORTEST_QUESTION
    text.asked += 1
    text.pending = [token]
    return False


def _answered(text: _Growing, seen: Read, frame: Frame, length: int) -> bool:
    """Another token of the reply; True where it has ended."""
    text.tokens += text.pending
    text.hidden.append(seen.hidden.astype(np.float16))
    token = int(seen.row.argmax())
    text.pending = [token]
    return token in frame.ends or text.read + 1 >= length


def _written(text: _Growing) -> Written:
    return Written(np.array(text.tokens, dtype=np.int32), np.concatenate(text.hidden))
