"""The text that a head learns from: the model asks itself questions in its own template, and answers them.

Several texts grow at once, because a row beside others is cheaper than one alone. What comes out are the tokens of the
replies with the model's state at each; no file is needed, and no prompt of ours decides what the text is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from specchat.conversation import Message, Role
from specchat.errors import Refusal
from specchat.exit_codes import ExitCode
from speculation.context import common_prefix
from speculation.llama import Part, Read
from speculation.sampling import SamplingConfig, distribution
from speculation.types import Row, Tokens

LENGTH = 320  # tokens of a text, question included, what the template writes left out
_LONGEST_QUESTION, _SHORTEST_QUESTION = 48, 4  # tokens
_SHORTEST_REPLY = 24  # tokens
_ELSE = "--from-chats learns from its replies in your kept chats instead"
_ASKING = SamplingConfig(temperature=1.0, top_k=50, top_p=1.0, min_p=0.0)


class NoFrame(Refusal):
    """A template in which the model cannot ask itself questions; the text says why and what else can be done."""

    exit_code = ExitCode.MODEL


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
    def keep(self, text: int, n: int) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What a template writes around a question."""

    before: Tokens
    after: Tokens  # begins with what ends the question
    ends: frozenset[int]  # of replies

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A reply, and the state that the model had at each token of it."""

    tokens: Tokens  # (n,)
    hidden: NDArray[np.float16]  # (n, n_hidden)


def frame_of(prompt: Callable[[Sequence[Message]], Tokens], ends: frozenset[int]) -> Frame:
    """The frame that two different questions share. Raises NoFrame, and what `prompt` does."""
    one, other = (prompt([Message(Role.USER, text)]) for text in ("Why", "\n\n3"))
    before = common_prefix(one, other)
    after = common_prefix(one[before:][::-1], other[before:][::-1])
    if not before or not after:
        where = "before" if not before else "behind"
        raise NoFrame(
            f"the template of this model writes nothing {where} a question, so it cannot ask itself any; {_ELSE}"
        )
    return Frame(one[:before], one[len(one) - after :], ends)


def room_for(frame: Frame, most: int) -> int:
    """Tokens that a text takes at most, its frame included, in a model that can take `most`. Raises NoFrame."""
    if most < len(frame) + _LONGEST_QUESTION + _SHORTEST_REPLY:
        raise NoFrame(
            f"the template of this model writes {len(frame)} tokens around a question, which leaves too few "
            f"of {most}; {_ELSE}"
        )
    return min(LENGTH + len(frame), most)


@dataclass
class _Growing:
    """One of the texts."""

    pending: list[int]
    read: int = 0  # tokens
    asked: int = 0  # tokens of the question
    answers: bool = False
    tokens: list[int] = field(default_factory=list)  # of the reply, and of what the template writes before it
    hidden: list[NDArray[np.float16]] = field(default_factory=list)


class Replies:
    """Texts that grow without end; iterating goes on with all of them and gives those that ended, often none."""

    def __init__(self, model: Texts, frame: Frame, rng: Generator) -> None:
        self._model, self._frame, self._rng = model, frame, rng
        self._texts = [self._fresh() for _ in range(model.n_texts)]
        self._length = min(LENGTH + len(frame), model.n_ctx)
        self._first = 0  # whose turn it is where not all fit into a batch

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Written]:
        """Raises EngineFailure."""
        parts = self._parts()
        finished = []
        for part, seen in zip(parts, self._model.read(parts), strict=True):
            text = self._texts[part.text]
            _take(text, part, seen)
            if text.pending:
                continue
            if text.answers:
                ended = _answered(text, seen.row, self._frame, self._length)
            else:
                ended = _asked(text, seen.row, self._frame, self._rng)
            if ended:
                finished += _written([text])
                self._model.forget(part.text)
                self._texts[part.text] = self._fresh()
        return finished

    @property
    def growing(self) -> int:
        """Tokens of the replies that have not ended and are long enough to learn from."""
        return sum(len(text.tokens) for text in self._texts if len(text.tokens) >= _SHORTEST_REPLY)

    def unfinished(self) -> list[Written]:
        """The replies that have not ended, as far as they are."""
        return _written(self._texts)

    def _parts(self) -> list[Part]:
        parts, room = [], self._model.n_batch
        for number in [*range(self._first, len(self._texts)), *range(self._first)]:
            if room == 0:
                self._first = number
                break
            text = self._texts[number]
            piece = text.pending[:room]  # the frame of a long template takes several batches
            parts.append(Part(number, text.read, piece))
            room -= len(piece)
        return parts

    def _fresh(self) -> _Growing:
        return _Growing(self._frame.before.tolist())


def read_again(model: Texts, given: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Iterator[list[Written]]:
    """The same of replies that are there already, each with the prompt before it; those too long are left out.

    What a prompt shares with the text before it, as in one chat, is not read again. Yields after each batch.
    """
    there: Tokens = np.empty(0, dtype=np.int32)
    states: NDArray[np.float16] | None = None  # of these
    for prompt, reply in given:
        whole = np.array([*prompt, *reply], dtype=np.int32)
        if len(whole) > model.n_texts * model.n_ctx:
            continue
        shared = model.keep(0, common_prefix(there, whole))
        there = whole[:shared]
        states = None if states is None else states[:shared]
        while len(there) < len(whole):
            part = whole[len(there) : len(there) + model.n_batch]
            read = model.read([Part(0, len(there), part)])[0].hidden.astype(np.float16)
            states = read if states is None else np.concatenate([states, read])
            there = whole[: len(there) + len(part)]
            yield []
        if states is not None:
            yield [Written(whole[len(prompt) :], states[len(prompt) :])]


def _take(text: _Growing, part: Part, seen: Read) -> None:
    """Note what was read of a text."""
    piece, text.pending = text.pending[: len(part.tokens)], text.pending[len(part.tokens) :]
    text.read += len(piece)
    if text.answers:
        text.tokens += piece
        text.hidden.append(seen.hidden.astype(np.float16))


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


def _answered(text: _Growing, row: Row, frame: Frame, length: int) -> bool:
    """Another token of the reply; True where it has ended."""
    token = int(row.argmax())
    text.pending = [token]
    return token in frame.ends or text.read + 1 >= length


def _written(texts: Sequence[_Growing]) -> list[Written]:
    """Replies that are long enough to learn from."""
    return [
        Written(np.array(text.tokens, dtype=np.int32), np.concatenate(text.hidden))
        for text in texts
        if len(text.tokens) >= _SHORTEST_REPLY
    ]
