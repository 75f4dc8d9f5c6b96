"""Step records and token ids as bytes, column by column, which compresses to about 30 bytes a step.

Times and chances are kept as 32-bit floats.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from speculation.types import Finish, Step

VERSION = 1
_HEAD = struct.Struct("<BBII")  # version, 1 where what follows is compressed, steps, bytes of the guessers' names
_FINISHES: tuple[Finish | None, ...] = (None, *Finish)
_PROBE = 8  # beside the number of the finish
_INTEGERS = 9
_FLOATS = 5


def pack_steps(steps: Sequence[Step]) -> bytes:
    """Steps as bytes."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(step.guesser for step in steps))}
    names = "\n".join(numbers).encode()
    integers = [
        (
            numbers[step.guesser],
            _FINISHES.index(step.finish) + (_PROBE if step.probe else 0),
            step.drafted,
            step.examined,
            step.accepted,
            len(step.tokens),
            step.context,
            -1 if step.source is None else step.source,
            step.match,
        )
        for step in steps
    ]
    floats = [
        (step.draft_s, step.verify_s, step.accept_s, _or_nan(step.p_rejected), _or_nan(step.p_chosen)) for step in steps
    ]
    tokens = [token for step in steps for token in step.tokens]
    for i, step in enumerate(steps):  # the few of trees, behind all tokens: how many, of which step
        if step.sources is not None:
            tokens += [i, len(step.sources), *(-1 if source is None else source for source in step.sources)]
    body = b"".join(
        (
            names,
            np.array(integers, dtype="<i4").reshape(-1, _INTEGERS).T.tobytes(),
            np.array(floats, dtype="<f4").reshape(-1, _FLOATS).T.tobytes(),
            np.array(tokens, dtype="<i4").tobytes(),
        )
    )
    packed = zlib.compress(body) if len(steps) > 1 else body
    pays = len(packed) < len(body)
    return _HEAD.pack(VERSION, pays, len(steps), len(names)) + (packed if pays else body)


NO_STEPS = pack_steps(())


def unpack_steps(packed: bytes) -> tuple[Step, ...]:
    """The steps that were packed. Raises ValueError for bytes that are none."""
    try:
        return tuple(_unpacked(packed))
    except (struct.error, zlib.error, IndexError) as error:
        raise ValueError(f"these are no steps: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class StepColumns:
    """What steps count, a number a step, without making the steps."""

    names: list[str]  # of guessers
    guesser: NDArray[np.int32]  # indices of names
    drafted: NDArray[np.int32]
    examined: NDArray[np.int32]
    accepted: NDArray[np.int32]
    emitted: NDArray[np.int32]
    seconds: NDArray[np.float64]  # drafting, checking and accepting together


def step_columns(packed: bytes) -> StepColumns:
    """The counts of steps that were packed. Raises ValueError for bytes that are none."""
    try:
        names, integers, floats, _ = _columns(packed)
    except (struct.error, zlib.error, IndexError) as error:
        raise ValueError(f"these are no steps: {error}") from error
    guesser, _, drafted, examined, accepted, emitted = integers[:6]
    seconds = floats[:3].sum(axis=0, dtype=np.float64)
    return StepColumns(names, guesser, drafted, examined, accepted, emitted, seconds)


def _columns(packed: bytes) -> tuple[list[str], NDArray[np.int32], NDArray[np.float32], NDArray[np.int32]]:
    """Names of guessers, integers, floats, tokens."""
    version, pays, count, names_bytes = _HEAD.unpack_from(packed)
    if version != VERSION:
        raise ValueError(f"steps of version {version} were written by a newer specchat")
    body = zlib.decompress(packed[_HEAD.size :]) if pays else packed[_HEAD.size :]
    names = body[:names_bytes].decode().split("\n")
    at = names_bytes + 4 * count * _INTEGERS
    end = at + 4 * count * _FLOATS
    integers = np.frombuffer(body[names_bytes:at], dtype="<i4").reshape(_INTEGERS, count)
    floats = np.frombuffer(body[at:end], dtype="<f4").reshape(_FLOATS, count)
    return names, integers, floats, np.frombuffer(body[end:], dtype="<i4")


def _unpacked(packed: bytes) -> Iterator[Step]:
    names, integers, floats, all_tokens = _columns(packed)
    tokens, taken = all_tokens.tolist(), 0
    sources = _sources(tokens[int(integers[5].sum()) :])
    for i, (guesser, how, drafted, examined, accepted, emitted, context, source, match, *times) in enumerate(
        zip(*integers.tolist(), *floats.tolist(), strict=True)
    ):
        yield Step(
            guesser=names[guesser],
            drafted=drafted,
            examined=examined,
            accepted=accepted,
            tokens=tuple(tokens[taken : taken + emitted]),
            context=context,
            draft_s=times[0],
            verify_s=times[1],
            accept_s=times[2],
            source=None if source < 0 else source,
            match=match,
            p_rejected=_or_none(times[3]),
            p_chosen=_or_none(times[4]),
            finish=_FINISHES[how % _PROBE],
            probe=how >= _PROBE,
            sources=sources.get(i),
        )
        taken += emitted


def _sources(found: Sequence[int]) -> dict[int, tuple[int | None, ...]]:
    """Where the tokens of some steps were copied from, by the number of the step."""
    sources: dict[int, tuple[int | None, ...]] = {}
    at = 0
    while at < len(found):
        step, size = found[at], found[at + 1]
        if size < 0:
            raise IndexError("a list is shorter than nothing")
        at += 2 + size
        sources[step] = tuple(None if source < 0 else source for source in found[at - size : at])
    return sources


class PackedSteps(Sequence[Step]):
    """Steps that are unpacked when somebody looks at them."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._steps: tuple[Step, ...] | None = None

    def __len__(self) -> int:
        count: int = _HEAD.unpack_from(self._packed)[2]
        return count

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, at: int | slice) -> Step | tuple[Step, ...]:
        return self._all()[at]

    def __iter__(self) -> Iterator[Step]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedSteps | tuple) and self._all() == tuple(other)

    __hash__ = None  # type: ignore[assignment] # equal to a tuple that has another hash

    def _all(self) -> tuple[Step, ...]:
        if self._steps is None:
            self._steps = unpack_steps(self._packed)
        return self._steps


def pack_tokens(tokens: Iterable[int]) -> bytes:
    """Token ids as bytes, compressed where that pays."""
    body = np.array(list(tokens), dtype="<i4").tobytes()
    packed = zlib.compress(body)
    return b"\1" + packed if len(packed) < len(body) else b"\0" + body


def unpack_tokens(packed: bytes) -> tuple[int, ...]:
    """The token ids that were packed. Raises ValueError for bytes that are none."""
    try:
        body = zlib.decompress(packed[1:]) if packed[:1] == b"\1" else packed[1:]
    except zlib.error as error:
        raise ValueError(f"these are no tokens: {error}") from error
    return tuple(np.frombuffer(body, dtype="<i4").tolist())


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
