"""What a guesser is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from speculation.accept import Rule
from speculation.context import Context
from speculation.types import Draft, Logits

# How many tokens are drafted, the chance that all of them and the next one are accepted -> whether that is worth it.
KeepOn = Callable[[int, float], bool]


@runtime_checkable
class Widens(Protocol):
    """A `KeepOn` that also prices candidates beside one that is drafted anyway."""

    def widen(self, reach: float, drafted: int) -> bool:
        """Whether a second candidate that is accepted with this chance is worth its row, beside the last of so many.

        Asked before either is drawn.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """What the target said in a step, while the context still ends with the pending token."""

    draft: Draft
    rows: Logits  # after the pending token and after each node of the draft; only valid during the call
    path: tuple[int, ...]  # the accepted nodes
    emitted: tuple[int, ...]  # the accepted tokens and the one that the target added


@runtime_checkable
class Watches(Protocol):
    """A guesser that learns from rows which were computed anyway."""

    def watch(self, context: Context, checked: Checked) -> None:
        """See a step, whoever guessed in it, before the context grows."""
        ...


class Guesser(Protocol):
    """Anything that proposes tokens. Whatever it proposes, the text stays the target's."""

    @property
    def name(self) -> str: ...

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        """Drafts of at most k tokens that cost next to nothing to show, best evidence first; () if they would."""
        ...

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """At most k tokens to follow the context. An empty draft is an answer.

        A guesser whose tokens have a price asks `keep_on` before each one after the first; others ignore it.
        """
        ...


class Chains:
    """A guesser whose trees are cut to their trunks: for a target or a rule that cannot judge branches."""

    def __init__(self, guesser: Guesser) -> None:
        self._guesser = guesser
        self.name = guesser.name

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        return tuple(draft.trunk() for draft in self._guesser.candidates(context, k))

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        narrow = None if keep_on is None else lambda drafted, together: keep_on(drafted, together)  # never widens
        return self._guesser.propose(context, k, rule, narrow).trunk()
