"""What a guesser is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from speculation.accept import Rule
from speculation.context import Context
from speculation.types import Draft


class Guesser(Protocol):
    """Anything that proposes tokens. Whatever it proposes, the text stays the target's."""

    @property
    def name(self) -> str: ...

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        """Drafts of at most k tokens that cost next to nothing to show, best evidence first; () if they would."""
        ...

    def propose(self, context: Context, k: int, rule: Rule) -> Draft:
        """At most k tokens to follow the context. An empty draft is an answer."""
        ...
