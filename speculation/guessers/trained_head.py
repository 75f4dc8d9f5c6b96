"""A trained head guesses from the target's own state: Medusa's or EAGLE's (see `speculation.heads.head`).

It knows the state of the row that read the last token but one, which every step leaves behind. Right after a prompt
there is none, so it sits out one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from speculation.accept import Rule
from speculation.context import Bookmark, Context
from speculation.guessers.base import Checked, KeepOn
from speculation.guessers.drafting import TRIES, Drafting, DraftsAtAPrice, fastest
from speculation.heads.head import Head, Rollout
from speculation.sampling import SamplingConfig
from speculation.types import Draft, Row, ShowsHidden


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The state behind a step: what it was made from, and how the context went on."""

    mark: Bookmark
    emitted: tuple[int, ...]
    feature: Row

    def is_of(self, context: Context) -> bool:
        """Whether this is the state that belongs to the context's last token but one."""
        start = self.mark.length
        return (
            len(context) == start + len(self.emitted)
            and context.unchanged_since(self.mark) == start
            and tuple(context.tail(len(self.emitted)).tolist()) == self.emitted
        )


class TrainedHead(DraftsAtAPrice):
    """Guesses with a head that belongs to the target."""

    def __init__(self, head: Head, target: ShowsHidden, sampling: SamplingConfig, min_p: float = 0.0) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this."""
        self.name = str(head.kind)
        self.head = head
        self._target = target
        self._drafting = Drafting(self.name, sampling, min_p, head.ids)
        self._seen: _Seen | None = None
        self._token_s: float | None = None

    def token_s(self, clock: Callable[[], float]) -> float:
        """Seconds of a token, as the fastest of a few tries has it: other load only ever adds."""
        if self._token_s is None:
            tokens = self.head.ids[:TRIES].tolist()
            self._token_s = fastest(clock, (partial(self._try, token) for token in tokens))
        return self._token_s

    def _try(self, token: int) -> None:
        Rollout(self.head, self.head.output[0]).behind([0], [token])

    def knows(self, context: Context) -> bool:
        """Whether there is a state to guess from."""
        return self._seen is not None and self._seen.is_of(context)

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """Up to k tokens drawn as the rule wants; empty where no step has left a state."""
        self._drafting.learn(context.tokens)
        if k <= 0 or self._seen is None or not self._seen.is_of(context):
            return Draft(self.name)
        rollout = Rollout(self.head, self._seen.feature)
        rows = rollout.behind([0], [int(context.tokens[-1])])
        assert rows is not None, "a head guesses one token at least"
        return self._drafting.grow(context, k, rule, keep_on, rows[0], rollout.behind, beside=self.head.beside)

    def watch(self, context: Context, checked: Checked) -> None:
        """Keep the state of the row behind the last accepted guess."""
        rows = self._target.hidden_rows()
        at = checked.path[-1] + 1 if checked.path else 0
        self._seen = _Seen(context.bookmark(), checked.emitted, rows[at].copy()) if len(rows) > at else None
