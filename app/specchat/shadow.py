"""A draft model that sat idle while a reply was written reads it in the next pause, and tells what it would have given.

So `auto` need not try it in the middle of a reply to know what it is worth, and its cache is warm for the next turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from speculation.accept import Coupled
from speculation.controllers.adaptive import Adaptive
from speculation.guessers.draft_model import DraftModel
from speculation.sampling import SamplingConfig
from speculation.types import Interrupted, SpeculationError, Step, Tokens

_HARDLY = 0.1  # of a reply's tokens that a draft model may have been asked for and still counts as idle
_LONGEST_REST = 15  # replies


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A reply behind its prompt, as the draft model may read it."""

    tokens: Tokens
    first: int  # the index of the reply's first token
    own: frozenset[int]  # the tokens that no guess brought: only there a draft would have been wanted
    sampling: SamplingConfig
    rule: Coupled  # draws as the reply's seed did


def written(tokens: Tokens, first: int, steps: Sequence[Step], sampling: SamplingConfig, seed: int) -> Written:
    """A reply that these steps wrote behind the first tokens of a text."""
    own: list[int] = []
    at = first
    for step in steps:
        own += range(at + step.accepted, at + len(step.tokens))
        at += len(step.tokens)
    return Written(tokens, first, frozenset(own), sampling, Coupled(seed))


def was_idle(guesser: str, steps: Sequence[Step]) -> bool:
    """Whether a guesser had next to no part in the steps of a reply."""
    asked = sum(step.examined for step in steps if step.guesser == guesser)
    return asked <= _HARDLY * sum(len(step.tokens) for step in steps)


@dataclass
class Shadow:
    """Keeps the last such reply until it is read. Where that shows no hope, the next ones go by, ever more of them."""

    left: Written | None = None
    _passed: int = field(default=0, init=False)  # since one was read
    _rest: int = field(default=0, init=False)  # replies to let pass

    def take(self, reply: Written | None) -> None:
        """The reply that was written last; None: one that cannot be read, or need not be."""
        self.left = None
        if reply is not None:
            self._passed += 1
            if self._passed > self._rest:
                self.left = reply

    def read(self, draft: DraftModel, auto: Adaptive) -> Iterator[int]:
        """Let the draft model read what is left, a batch between two yields of how many tokens were compared.

        It may be left after any batch, and goes on there the next time. Raises SpeculationError.
        """
        reply = self.left
        if reply is None or draft.sampling != reply.sampling:
            return
        try:
            for batch in draft.listen(reply.tokens, reply.first, reply.rule):
                auto.take_up(draft.name, [each.held for each in batch if each.at in reply.own])
                yield len(batch)
        except Interrupted:
            return
        except SpeculationError:
            self.left = None
            raise
        self.left = None
        self._passed = 0
        self._rest = 0 if auto.promises(draft.name) else min(2 * self._rest + 1, _LONGEST_REST)
