"""What a guesser is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

from speculation.accept import Rule
from speculation.context import Context
from speculation.types import Draft, Logits


class KeepOn(Protocol):
    """Says what is worth its price while a draft grows, depth by depth. A reach is a node's chance to be accepted."""

    def rows(self, reaches: Sequence[float]) -> int:
        """How many of these candidates to propose, the likeliest first. Asked before any of them is drawn."""
        ...

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        """Behind how many of these nodes to guess on, all at once, the likeliest first.

        `beside`: what each after the first adds to the time of drafting, as a share of the first one's.
        """
        ...


class _OneByOne:
    """Never more than one candidate, by the prices of another."""

    def __init__(self, keep_on: KeepOn) -> None:
        self._keep_on = keep_on

    def rows(self, reaches: Sequence[float]) -> int:
        return self._keep_on.rows(reaches[:1])

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        return self._keep_on.behind(reaches[:1], beside)


@runtime_checkable
class Lengthens(KeepOn, Protocol):
    """One that also prices tokens which cost their rows alone."""

    def lengthen(self, reaches: Sequence[float], drafted: int) -> int:
        """How many of a chain of tokens, given by their reaches, are worth their rows behind so many drafted ones."""
        ...


class _OneByOneLengthening(_OneByOne):
    """The same where drafts may be lengthened."""

    def __init__(self, keep_on: Lengthens) -> None:
        super().__init__(keep_on)
        self.lengthen = keep_on.lengthen


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """What the target said in a step, while the context still ends with the pending token."""

    draft: Draft
    rows: Logits  # after the pending token and after each node of the draft; only valid during the call
    path: tuple[int, ...]  # the accepted nodes
    emitted: tuple[int, ...]  # the accepted tokens and the one that the target added


class Watches(Protocol):
    """A guesser that learns from rows which were computed anyway."""

    def watch(self, context: Context, checked: Checked) -> None:
        """See a step, whoever guessed in it, before the context grows."""
        ...


class ReadsAlong(Protocol):
    """A guesser that takes up a prompt while the target reads it, so that its first guess does not have to."""

    def read_along(self, context: Context, n_read: int) -> None:
        """See the prompt, of which the target has read so many tokens. Raises SpeculationError."""
        ...


class Guesser(Protocol):
    """Anything that proposes tokens. Whatever it proposes, the text stays the target's."""

    @property
    def name(self) -> str: ...

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        """Drafts of at most k tokens that cost next to nothing to show, best evidence first; () if they would.

        None is wanted whose first token is accepted with a chance below `least`: such may be left out.
        """
        ...

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """At most k tokens to follow the context. An empty draft is an answer.

        A guesser whose tokens have a price asks `keep_on` how far and how wide to go; others ignore it.
        """
        ...


# To ask `isinstance` of a protocol takes as long as a lookup does, and that is asked at every step.
def watches(guesser: Guesser) -> TypeGuard[Watches]:
    """Whether a guesser is one that `Watches`."""
    return hasattr(guesser, "watch")


def reads_along(guesser: Guesser) -> TypeGuard[ReadsAlong]:
    """Whether a guesser is one that `ReadsAlong`."""
    return hasattr(guesser, "read_along")


class Chains:
    """A guesser whose trees are cut to their trunks: for a target or a rule that cannot judge branches."""

    def __init__(self, guesser: Guesser) -> None:
        self._guesser = guesser
        self.name = guesser.name

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return tuple(draft.trunk() for draft in self._guesser.candidates(context, k, least))

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        narrow = _OneByOneLengthening(keep_on) if isinstance(keep_on, Lengthens) else keep_on and _OneByOne(keep_on)
        return self._guesser.propose(context, k, rule, narrow).trunk()
