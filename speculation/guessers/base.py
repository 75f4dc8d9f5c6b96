"""What a guesser is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from speculation.accept import Rule
from speculation.context import Context
from speculation.types import Draft

# How many tokens are drafted, the chance that all of them and the next one are accepted -> whether that is worth it.
KeepOn = Callable[[int, float], bool]


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
        return self._guesser.propose(context, k, rule, keep_on).trunk()
