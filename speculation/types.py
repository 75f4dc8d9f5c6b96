"""The nouns of guessing and checking: tokens, distributions, drafts, verdicts, steps.

Token ids only: no text, no models, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]  # (n,)
Logits = NDArray[np.float32]  # (n, V)
Row = NDArray[np.float32]  # (V,), the logits of one position
State = NDArray[np.uint8]  # (n,), what a cache holds, in the engine's own bytes


PLAIN = "plain"  # the guesser named by a step without a draft


class SpeculationError(Exception):
    """Base of every error that this library raises on purpose; its text is fit to be shown to a person."""


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A distribution over tokens that lists only the tokens it can yield, most probable first."""

    ids: Tokens  # (m,), distinct
    probs: NDArray[np.float64]  # (m,), each > 0, sum 1, not increasing

    def prob(self, token: int) -> float:
        """The probability of one token; 0.0 for a token that is not listed."""
        at = np.flatnonzero(self.ids == token)
        return float(self.probs[at[0]]) if at.size else 0.0


def point_mass(token: int) -> Distribution:
    """All probability on one token: what greedy decoding and a deterministic guesser draw from."""
    return Distribution(np.array([token], dtype=np.int32), np.array([1.0]))


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The k tokens proposed for a step, and what is known about where they come from."""

    guesser: str
    tokens: tuple[int, ...] = ()
    q: tuple[Distribution, ...] | None = None  # q[i] is what tokens[i] was drawn from; None: point masses
    source: int | None = None  # index in the context of the token that tokens[0] was copied from
    match: int = 0  # how many tokens before `source` equal the end of the context
    chances: tuple[float, ...] = ()  # of each token to be accepted, given that those before it are; (): not known

    def cut(self, k: int) -> Draft:
        """The same draft, at most k tokens long."""
        if k >= len(self.tokens):
            return self
        q = None if self.q is None else self.q[:k]
        return Draft(self.guesser, self.tokens[:k], q, self.source, self.match, self.chances[:k])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule said of a draft."""

    accepted: int  # n, 0..k
    token: int  # the residual draw if n < k, the bonus token if n == k


class Finish(StrEnum):
    """Why a reply ended."""

    END = "stop"  # the model's own end token
    STOP = "stop_string"
    LENGTH = "length"  # the caller's token limit
    CONTEXT = "context"  # the model's context is full


@dataclass(frozen=True, slots=True)
class Step:
    """One round of draft and verify. The only thing that leaves the loop."""

    guesser: str  # who made the draft; "plain" when there was none
    drafted: int  # k
    examined: int  # min(n + 1, k): tokens behind the first rejection were never looked at
    accepted: int  # n; tokens[:n] came from the guesser
    tokens: tuple[int, ...]  # emitted: accepted + 1, or fewer when cut at an end
    context: int  # tokens of context before this step
    draft_s: float  # seconds spent proposing, lookups and planning included
    verify_s: float  # seconds in the target's forward
    accept_s: float  # seconds in sampling, the rule and the rewind
    source: int | None = None  # context index of the first copied token
    match: int = 0
    p_rejected: float | None = None  # the target's probability of the first rejected token, nothing cut
    p_chosen: float | None = None  # and of the token that it emitted instead
    finish: Finish | None = None
    probe: bool = False  # taken to learn a price, not because it looked best


class Model(Protocol):
    """A language model with a cache of one sequence."""

    @property
    def n_vocab(self) -> int: ...

    @property
    def n_ctx(self) -> int:
        """Tokens that the cache can hold."""
        ...

    @property
    def n_past(self) -> int:
        """Tokens in the cache."""
        ...

    @property
    def max_rows(self) -> int:
        """The most rows of logits that one forward returns."""
        ...

    @property
    def can_rewind(self) -> bool:
        """Whether the cache can drop its last tokens; without that there is no guessing."""
        ...

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        """Append tokens; return the logits after each of the last n_rows of them, shape (n_rows, V).

        The array is valid until the next call. Raises SpeculationError and leaves the cache as it was, or empty
        where it cannot rewind.
        """
        ...

    def rewind(self, n_past: int) -> None:
        """Forget everything from position n_past on; 0 is always possible. Raises CannotRewind."""
        ...


class CannotRewind(SpeculationError):
    """The cache of this model cannot drop its last tokens."""


class CannotLoad(SpeculationError):
    """A model file that the engine refuses; the text gives the engine's own reason."""


class EngineFailure(SpeculationError):
    """A decode that the engine refused."""


class Interrupted(SpeculationError):
    """A long forward was stopped on request; the cache is as it was before."""
