"""The nouns of guessing and checking: tokens, distributions, drafts, verdicts, steps.

Token ids only: no text, no models, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from operator import mul
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]  # (n,)
Logits = NDArray[np.float32]  # (n, V)
Row = NDArray[np.float32]  # (V,), the logits of one position
State = NDArray[np.uint8]  # (n,), what a cache holds, in the engine's own bytes


PLAIN = "plain"  # the guesser named by a step without a draft
LOOKUP = "lookup"  # the one that copies from the context, also behind what others drafted


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
    """The k tokens proposed for a step, a chain or a tree, and what is known about where they come from.

    The tokens are the nodes of a tree whose root is the end of the context. Those that are worth most come first, each
    behind its parent, so that the first few of them are the best smaller draft. A chain is a tree without branches.
    """

    guesser: str
    tokens: tuple[int, ...] = ()
    q: tuple[Distribution, ...] | None = None  # q[i] is what tokens[i] was drawn from; None: point masses
    source: int | None = None  # index in the context of the token that tokens[0] was copied from
    match: int = 0  # how many tokens before `source` equal the end of the context
    chances: tuple[float, ...] = ()  # of each token to be accepted, given that its parent is; (): not known
    parents: tuple[int, ...] | None = None  # the node before each, -1 for none; None: a chain
    sources: tuple[int | None, ...] | None = None  # of each node, where they differ from one run behind `source`

    def cut(self, k: int) -> Draft:
        """The same draft, at most k tokens long."""
        return self if k >= len(self.tokens) else self._of(range(k))

    def trunk(self) -> Draft:
        """The chain of first children, which is a draft of the same guesser."""
        return self if self.parents is None else self._of(self.trunk_nodes())

    def trunk_nodes(self) -> list[int]:
        """The nodes of that chain."""
        nodes, end = [], -1
        for node in range(len(self.tokens)):
            if self.parent(node) == end:
                nodes.append(node)
                end = node
        return nodes

    def parent(self, node: int) -> int:
        return node - 1 if self.parents is None else self.parents[node]

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the first token to this one; () for -1."""
        if self.parents is None:
            return tuple(range(node + 1))
        path = []
        while node >= 0:
            path.append(node)
            node = self.parents[node]
        return tuple(reversed(path))

    def children(self) -> list[list[int]]:
        """The nodes behind the end of the context and behind each node, in order; k + 1 lists."""
        if self.parents is None:
            return [*([i] for i in range(len(self.tokens))), []]
        found: list[list[int]] = [[] for _ in range(len(self.tokens) + 1)]
        for node, parent in enumerate(self.parents):
            found[parent + 1].append(node)
        return found

    def reaches(self) -> list[float]:
        """The chance that each token is accepted; [] where the chances are not known."""
        if self.parents is None:
            return list(accumulate(self.chances, mul))
        found: list[float] = []
        for parent, chance in zip(self.parents, self.chances, strict=False):
            found.append(chance * (1.0 if parent < 0 else found[parent]))
        return found

    def source_of(self, path: Sequence[int]) -> int | None:
        """Where the first token of a path was copied from; of the first token of all where the path is empty."""
        return self.sources[path[0]] if self.sources is not None and path else self.source

    def sources_of(self, path: Sequence[int]) -> tuple[int | None, ...] | None:
        """Where each token of a path was copied from; None where they are one run behind the first, or no copies."""
        if self.sources is None:
            return None
        found = tuple(self.sources[node] for node in path)
        run = tuple(None if found[0] is None else found[0] + i for i in range(len(found)))
        return None if found == run else found

    def _of(self, nodes: Sequence[int]) -> Draft:
        """The draft of these nodes alone; each needs its parent among those before it."""
        number = {-1: -1} | {node: i for i, node in enumerate(nodes)}
        parents = tuple(number[self.parent(node)] for node in nodes)
        return Draft(
            self.guesser,
            tuple(self.tokens[node] for node in nodes),
            None if self.q is None else tuple(self.q[node] for node in nodes),
            self.source,
            self.match,
            tuple(self.chances[node] for node in nodes) if self.chances else (),
            None if parents == tuple(range(-1, len(parents) - 1)) else parents,
            None if self.sources is None else tuple(self.sources[node] for node in nodes),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule said of a draft."""

    path: tuple[int, ...]  # the accepted nodes, from the first token on
    token: int  # the residual draw if a child of the last of them was rejected, else the bonus token

    @property
    def accepted(self) -> int:
        """n, 0..k."""
        return len(self.path)


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
    drafted: int  # k, the nodes of a tree
    # Positions: the accepted ones, and the first where no guess held if there was one. min(n + 1, k) for a chain, where
    # tokens behind the first rejection were never looked at.
    examined: int
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
    sources: tuple[int | None, ...] | None = None  # of each accepted token, where they are no run behind `source`

    def source_of(self, i: int) -> int | None:
        """The context index that an accepted token was copied from; None for no copy."""
        if self.sources is not None:
            return self.sources[i]
        return None if self.source is None else self.source + i


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


@runtime_checkable
class TreeModel(Model, Protocol):
    """A model that may check a whole tree of guesses in one forward."""

    @property
    def can_tree(self) -> bool:
        """Whether several texts can share the cache, which `forward_tree` needs."""
        ...

    def forward_tree(self, pending: int, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Append a token and grow a tree behind it; the logits after it and after each node, shape (k + 1, V).

        Until `keep` or the next forward or rewind the nodes are in the cache, but do not count towards n_past. The
        array is valid until the next call. Raises SpeculationError and leaves the cache as it was.
        """
        ...

    def keep(self, path: Sequence[int]) -> None:
        """Append the nodes of one path of the tree to the cache and forget the others."""
        ...


def grows_trees(model: Model) -> TypeGuard[TreeModel]:
    """Whether a model is a `TreeModel`; asked at every step, where `isinstance` of a protocol takes too long."""
    return hasattr(model, "forward_tree")


@runtime_checkable
class ShowsHidden(Protocol):
    """A model that shows the states which its logits are made from."""

    keeps_hidden: bool  # whether it does: the rows of a step take a little longer then

    @property
    def n_hidden(self) -> int:
        """The numbers of a state."""
        ...

    def hidden_rows(self) -> Logits:
        """The states after the final norm of the rows of the last forward, shape (n_rows, n_hidden).

        (0, n_hidden) where none were kept, as after a forward that left out the rows of some tokens. Valid until the
        next forward.
        """
        ...


class CannotRewind(SpeculationError):
    """The cache of this model cannot drop its last tokens."""


class CannotLoad(SpeculationError):
    """A model file that the engine refuses; the text gives the engine's own reason."""


class EngineFailure(SpeculationError):
    """A decode that the engine refused."""


class Interrupted(SpeculationError):
    """A long forward was stopped on request; the cache is as it was before."""
