"""Does it fit? What a model takes in memory, and what gives way where there is too little. Nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specchat.console import size
from specchat.gguf_shape import Shape
from speculation.types import SpeculationError

CONTEXT = 8192  # tokens, where the user names no other
FLOOR = 2048  # tokens that a context is not made shorter than by itself
PADDING = 256  # the engine makes room for a multiple of so many tokens
BATCH = 512  # tokens that are read at once
ROWS = 128  # of logits that are kept at once
CACHE_BYTES = {"f16": (2, 1), "q8_0": (34, 32)}  # so many bytes for so many numbers
STATES_BYTES = 512 << 20  # that the states may take which a hybrid goes back to
LEAST_STATES, MOST_STATES = 3, 7  # the second is speculation.llama.ROLLBACK


class DoesNotFit(SpeculationError):
    """A model that this machine has no memory for; the text says what it needs and what there is."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes that a loaded model takes."""

    weights: int
    cache: int
    buffers: int  # about

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.buffers

    def __add__(self, other: Needs) -> Needs:
        return Needs(self.weights + other.weights, self.cache + other.cache, self.buffers + other.buffers)


@dataclass(frozen=True, slots=True)
class Room:
    """Memory for models: the GPU's where the engine uses one. None: not known."""

    free: int | None
    total: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A context that fits, and what the user should know about it, or ""."""

    n_ctx: int
    notice: str = ""


def needs(shape: Shape, weights: int, n_ctx: int, cache_type: str = "f16") -> Needs:
    """What a model takes with a context of n_ctx tokens; the cache exactly, the buffers about."""
    tokens = -(-n_ctx // PADDING) * PADDING
    number, of = CACHE_BYTES[cache_type]
    cache = shape.per_token * tokens * number // of
    if shape.next_per_token:  # a cache of its own, and a state of the model for each token
        cache += shape.next_per_token * tokens * number // of + n_ctx * shape.width * 4
    states = 1 + (states_kept(shape) if shape.can_guess else 0)
    batch = min(BATCH, n_ctx)
    logits = min(ROWS, batch) * shape.vocabulary * 4
    # The two halves of the gated layer stand side by side; the mask of the attention is made of 16-bit numbers.
    arithmetic = batch * (2 * shape.feed_forward + 2 * shape.width) * 4 + batch * tokens * 2
    buffers = logits + arithmetic * (2 if shape.next_per_token else 1)
    return Needs(weights, cache + shape.state * 4 * states, buffers)


def states_kept(shape: Shape) -> int:
    """How many tokens a hybrid goes back at most: as many as the states before them may take memory."""
    if not shape.state:
        return MOST_STATES
    return max(LEAST_STATES, min(MOST_STATES, STATES_BYTES // (shape.state * 4)))


def plan_context(name: str, of: Callable[[int], Needs], n_ctx: int, room: Room, *, insisted: bool) -> Plan:
    """The context to load a model with: shorter where memory is short, unless the user insists on its length.

    Weights are read from the file's own pages, which the system drops and reads again, so a model that exceeds what
    is free is slow but runs. Raises DoesNotFit where it clearly exceeds the whole machine.
    """
    shorter = n_ctx
    if room.free is not None and not insisted:
        while of(shorter).total > room.free and shorter // 2 >= FLOOR:
            shorter //= 2
    wanted, taken = of(n_ctx), of(shorter)
    if room.total is not None and taken.weights + taken.cache > room.total:
        hint = "; a shorter --ctx needs less" if insisted and taken.weights < room.total else ""
        raise DoesNotFit(
            f"{name} does not fit: it needs about {size(taken.total)} with {shorter} tokens of context, "
            f"this machine has {size(room.total)}{hint}"
        )
    if room.free is None or wanted.total <= room.free:
        return Plan(n_ctx)
    there = f"{size(room.free)} are free"
    if taken.total <= room.free:
        return Plan(shorter, f"the context is {shorter} tokens: with {n_ctx} it needs {size(wanted.total)}, {there}")
    shortened = f", even with {shorter} tokens of context" if shorter < n_ctx else ""
    return Plan(shorter, f"{name} needs about {size(taken.total)}{shortened} and {there}: expect it to be slow")


def too_large(name: str, about: int, room: Room) -> str:
    """What to say of a model before it is fetched, which takes about so many bytes when it is loaded; or ""."""
    if room.free is None or about <= room.free:
        return ""
    return f"{name} needs about {size(about)} with {CONTEXT} tokens of context, {size(room.free)} are free"


def no_room_for_draft(name: str, beside: str, draft: Needs, room: Room, target_pages: int) -> str:
    """Why a draft model has to stay out, or "": it gives way before the target or the context do.

    `target_pages` are bytes of the loaded target that the system counts as free, because it could drop them.
    """
    if room.free is None or draft.total + target_pages <= room.free:
        return ""
    left = max(room.free - target_pages, 0)
    return f"no room for {name} beside {beside}: it needs about {size(draft.total)} and {size(left)} are free"
