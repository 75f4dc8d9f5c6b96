"""What is known of a guesser whose tokens have a price: what they take, how often they hold, whether it answers."""

from __future__ import annotations

from collections import deque
from statistics import median

from speculation.types import Step

_ALPHA = 0.7  # of a draft model that has not been seen at work: the chance that a token of its is accepted
_ALPHA_STRENGTH = 8.0  # examined tokens that this weighs
_ALPHA_KEEP = 0.97  # of what was seen, at each step of any kind, so that a draft model gets another try
_LONGEST_REST = 31  # steps


class Drafter:
    """A guesser whose tokens have a price, as its steps show it."""

    def __init__(self, token_s: float, alpha: float | None = None) -> None:
        """`token_s`: seconds of a token, roughly; `alpha`: as elsewhere, where it is known beforehand."""
        self.rest = 0  # steps in which it need not be asked
        self._next_rest = 0  # the same, once it is asked in vain again
        self._seconds: deque[float] = deque([token_s] * 3, maxlen=9)
        self._prior = _ALPHA if alpha is None else alpha
        self._accepted = self._examined = 0.0  # discounted

    @property
    def token_s(self) -> float:
        """Seconds of a token."""
        return median(self._seconds)

    @property
    def alpha(self) -> float:
        """The chance that a token is accepted when those before it were."""
        return (self._accepted + self._prior * _ALPHA_STRENGTH) / (self._examined + _ALPHA_STRENGTH)

    def fade(self) -> None:
        """A step went by."""
        self.rest = max(0, self.rest - 1)
        self._accepted *= _ALPHA_KEEP
        self._examined *= _ALPHA_KEEP

    def proposed_nothing(self) -> None:
        """It was asked for a draft in vain. Once happens to many; where it goes on, it is asked ever more seldom."""
        self.rest = self._next_rest
        self._next_rest = min(2 * self._next_rest + 1, _LONGEST_REST)

    def observe(self, step: Step, drafted: float, longest: int | None) -> None:
        """Learn from a step of this guesser, in which drafting took the time of so many tokens.

        `longest`: tokens in a row that were drafted, where copies may stand behind them.
        """
        self._next_rest = 0
        longest = step.drafted if longest is None else longest
        self.count(min(step.accepted, longest), min(step.examined, longest))
        self._seconds.append(step.draft_s / drafted)

    def count(self, accepted: int, examined: int) -> None:
        """Learn that so many tokens were accepted of those that were looked at."""
        self._accepted += accepted
        self._examined += examined
