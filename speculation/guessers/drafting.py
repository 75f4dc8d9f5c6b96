"""Drafts that are written a token at a time by something that knows how sure it is, and is told what it costs.

Where it is not sure of its token and a row costs little, a second one is offered beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from speculation.accept import Rule
from speculation.confidence import Confidence
from speculation.context import Context, recent
from speculation.guessers.base import KeepOn, Widens
from speculation.sampling import SamplingConfig, distribution, leading, probabilities
from speculation.types import Distribution, Draft, Row, Tokens, point_mass

After = Callable[[int], Row | None]  # the row behind one more drafted token; None where there is none


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A draft that was handed out: where in the context it would stand, and how sure its writer was of each token."""

    start: int = 0
    tokens: tuple[int, ...] = ()
    sure: tuple[float, ...] = ()
    seconds: tuple[tuple[int, float] | None, ...] = ()  # the token offered beside each, and how sure it was of that


@dataclass(frozen=True, slots=True)
class _Node:
    """A drafted token in the tree."""

    token: int
    parent: int
    chance: float
    q: Distribution | None


@dataclass(frozen=True, slots=True)
class _Second:
    """A candidate beside the best one."""

    token: int
    p: float
    chance: float


class Drafting:
    """Writes drafts from rows of logits and learns how far their confidence can be trusted."""

    def __init__(self, name: str, sampling: SamplingConfig, min_p: float = 0.0, ids: Tokens | None = None) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this.

        `ids`: the token of each column of a row; None: the columns are the tokens.
        """
        self.name = name
        self.sampling = sampling
        self.confidence = Confidence()
        self.second_confidence = Confidence(least=0.02, slope=0.7)  # of a second candidate
        self._min_p = min_p
        self._ids = ids
        self._columns = {} if ids is None else {int(token): column for column, token in enumerate(ids)}
        self._last = _Drafted()

    def draft(
        self,
        context: Context,
        k: int,
        rule: Rule,
        keep_on: KeepOn | None,
        row: Row,
        after: After,
        n_columns: int | None = None,
    ) -> Draft:
        """Up to k tokens drawn as the rule wants, from `row` and what comes after each of them.

        Of the columns only the first `n_columns` are proposed.
        """
        nodes: list[_Node] = []
        trunk: list[int] = []
        sure: list[float] = []
        seconds: list[tuple[int, float] | None] = []
        together, end = 1.0, -1
        while True:
            seen = self._columns_of(recent(context, trunk, self.sampling.repeat_last_n))
            q = distribution(row[:n_columns], self.sampling, seen)
            # Decided before the draw: to look at the token first would draw the proposed ones from another q than
            # the one that is reported, and the text would no longer follow the target.
            p = float(probabilities(row, q.ids[:1])[0])
            before, chance = together, self.confidence.chance(p)
            together *= chance
            if trunk and not (p >= self._min_p if keep_on is None else keep_on(len(trunk), together)):
                break
            second = None
            if isinstance(keep_on, Widens) and len(nodes) + 2 <= k:
                second = self._second(row, q, 1.0 - chance, n_columns)
                second = second if keep_on.widen(before * second.chance, len(trunk) + 1) else None
            drawn = rule.draw_several(self._named(q), len(context) + len(trunk), 1 if second is None else 2)
            if second is not None and len(drawn) == 1:
                drawn.append((second.token, None if drawn[0][1] is None else point_mass(second.token)))
            parent, end = end, len(nodes)
            for (token, report), each in zip(drawn, (chance, second.chance if second else 0.0), strict=False):
                nodes.append(_Node(token, parent, each, report))
            trunk.append(drawn[0][0])
            sure.append(p)
            seconds.append(None if second is None else (drawn[1][0], second.p))
            following = after(trunk[-1]) if len(nodes) < k else None
            if following is None:
                break
            row = following
        self._last = _Drafted(len(context), tuple(trunk), tuple(sure), tuple(seconds))
        reported = tuple(node.q for node in nodes if node.q is not None)
        parents = tuple(node.parent for node in nodes)
        return Draft(
            self.name,
            tuple(node.token for node in nodes),
            reported or None,
            chances=tuple(node.chance for node in nodes),
            parents=None if len(trunk) == len(nodes) else parents,
        )

    def learn(self, tokens: Tokens) -> None:
        """What became of the last draft, whoever wrote the text since: its tokens stand in the context or others do."""
        last, self._last = self._last, _Drafted()
        for i, (token, p, second) in enumerate(zip(last.tokens, last.sure, last.seconds, strict=True)):
            if last.start + i >= len(tokens):
                return
            written = int(tokens[last.start + i])
            self.confidence.observe(p, written == token)
            if second is not None:
                self.second_confidence.observe(second[1], written == second[0])
            if written != token:
                return

    def _second(self, row: Row, q: Distribution, left: float, n_columns: int | None) -> _Second:
        """What a second candidate would be worth; where q is a point mass, it is the best token but that one."""
        if len(q.ids) > 1:
            column = int(q.ids[1])
        else:
            best, _ = leading(row[:n_columns], 2)
            column = int(best[-1] if best[0] == q.ids[0] else best[0])
        p = float(probabilities(row, [column])[0])
        token = column if self._ids is None else int(self._ids[column])
        return _Second(token, p, min(self.second_confidence.chance(p), left))

    def _columns_of(self, tokens: Tokens) -> Tokens:
        """The columns of tokens; those that have none are left out."""
        if self._ids is None:
            return tokens
        found = (self._columns.get(int(token)) for token in tokens)
        return np.array([column for column in found if column is not None], dtype=np.int32)

    def _named(self, q: Distribution) -> Distribution:
        """A distribution over columns as one over tokens."""
        return q if self._ids is None else Distribution(self._ids[q.ids], q.probs)
