"""Drafts that are written by something that knows how sure it is of each token, and is told what tokens cost.

They grow depth by depth. Where a row costs little, less likely candidates are offered beside the best one, and where
drafting costs little, guesses go on behind several of them at once (Li et al. 2024, 2406.16858, with measured prices).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from speculation.accept import Drawn, Rule
from speculation.confidence import Confidence
from speculation.context import Context, recent
from speculation.guessers.base import KeepOn
from speculation.guessers.growing import ROOT, Growing
from speculation.sampling import SamplingConfig, distribution, leading, probabilities
from speculation.types import Distribution, Draft, Logits, Row, Tokens, point_mass

After = Callable[[int], Row | None]  # the row behind one more drafted token; None where there is none
# Which rows of the last call some drafted tokens were taken from, and the tokens -> the rows behind them, one for each
# or one for all; None where there are none.
Behind = Callable[[Sequence[int], Sequence[int]], Logits | None]

TRIES = 4  # of drafting a token, to see what it takes
_CANDIDATES = 12  # of a row that are looked at


@dataclass(frozen=True, slots=True)
class _Look:
    """What a row offers: candidates by rank, before any of them is drawn."""

    q: Distribution
    foreseen: tuple[int, ...]  # what the rule will draw, where it may be looked at beforehand
    others: tuple[int, ...]  # the best tokens that q cannot yield
    ps: tuple[float, ...]  # how sure the writer is of the best tokens,
    chances: tuple[float, ...]  # and what that is worth


@dataclass(frozen=True, slots=True)
class _Open:
    """A node with what may follow it."""

    node: int
    path: tuple[int, ...]  # the tokens up to it
    look: _Look


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A draft that was handed out: where in the context it would stand, and how sure its writer was of each token."""

    start: int = 0
    candidates: Mapping[int, Sequence[tuple[int, int, float]]] = field(default_factory=dict)  # node, token, p; by rank


class Drafting:
    """Writes drafts from rows of logits and learns how far their confidence can be trusted."""

    def __init__(self, name: str, sampling: SamplingConfig, min_p: float = 0.0, ids: Tokens | None = None) -> None:
        """`min_p`: where nobody gives a price, stop where the best token is less probable than this.

        `ids`: the token of each column of a row; None: the columns are the tokens.
        """
        self.name = name
        self.sampling = sampling
        self.confidence = Confidence()
        self._worth = (self.confidence, Confidence(least=0.02, slope=0.7), Confidence(least=0.01, slope=0.6))  # by rank
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
    ) -> Draft:
        """As `grow`, for a writer that goes on behind one token at a time: the likeliest."""

        def behind(at: Sequence[int], tokens: Sequence[int]) -> Logits | None:
            following = after(tokens[0])
            return None if following is None else following[np.newaxis]

        return self.grow(context, k, rule, keep_on, row, behind, most=1)

    def grow(
        self,
        context: Context,
        k: int,
        rule: Rule,
        keep_on: KeepOn | None,
        row: Row,
        behind: Behind,
        *,
        most: int | None = None,
        beside: float = 1.0,
    ) -> Draft:
        """Up to k tokens drawn as the rule wants, from `row` and from what comes behind them; a chain without prices.

        `most`: tokens that are gone on behind at a time; `beside`: what each after the first adds, as for `KeepOn`.
        """
        tree = Growing()
        written: dict[int, list[tuple[int, int, float]]] = {}
        nodes: list[tuple[int, tuple[int, ...]]] = [(ROOT, ())]
        rows: Logits | None = row[np.newaxis]
        while rows is not None:
            n_looked_at = 1 if keep_on is None else min(k - len(tree), _CANDIDATES)
            level = self._opened(rule, context, nodes, rows, n_looked_at)
            offers = [
                (tree.reach(each.node) * chance, i) for i, each in enumerate(level) for chance in each.look.chances
            ]
            offers = sorted(offers, key=lambda offer: -offer[0])[: k - len(tree)]
            # How many a node gets is settled before the draw, unless the rule foresees it: to look at the tokens first
            # would draw the proposed ones from another q than is reported, and the text would not be the target's.
            if keep_on is None:
                worth = int(not len(tree) or level[0].look.ps[0] >= self._min_p)
            else:
                worth = keep_on.rows([reach for reach, _ in offers])
            counts = [0] * len(level)
            for _, i in offers[:worth]:
                counts[i] += 1
            new: list[tuple[int, int, int]] = []  # node, its place in the level before, token
            for i, each in enumerate(level):
                drawn = self._drawn(rule, each.look, len(context) + len(each.path), counts[i]) if counts[i] else []
                for (token, q), chance, p in zip(drawn, each.look.chances, each.look.ps, strict=False):
                    node = tree.add(each.node, token, chance, q=q)
                    new.append((node, i, token))
                    written.setdefault(each.node, []).append((node, token, p))
            if not new or len(tree) >= k:
                break
            new = sorted(new, key=lambda one: -tree.reach(one[0]))[:most]
            new = new[: 1 if keep_on is None else keep_on.behind([tree.reach(node) for node, _, _ in new], beside)]
            rows = behind([i for _, i, _ in new], [token for _, _, token in new]) if new else None
            nodes = [(node, (*level[i].path, token)) for node, i, token in new]
        self._last = _Drafted(len(context), written)
        return tree.draft(self.name, k)

    def learn(self, tokens: Tokens) -> None:
        """What became of the last draft, whoever wrote the text since: its tokens stand in the context or others do."""
        last, self._last = self._last, _Drafted()
        node: int | None = ROOT
        for at in range(last.start, len(tokens)):
            candidates = () if node is None else last.candidates.get(node, ())
            if not candidates:
                return
            token = int(tokens[at])
            for rank, (_, drafted, p) in enumerate(candidates):
                self._worth[min(rank, len(self._worth) - 1)].observe(p, drafted == token)
            node = next((child for child, drafted, _ in candidates if drafted == token), None)

    def _opened(
        self,
        rule: Rule,
        context: Context,
        nodes: Sequence[tuple[int, tuple[int, ...]]],
        rows: Logits,
        n_candidates: int,
    ) -> list[_Open]:
        """Nodes, given by their number and path, with what their rows offer: up to so many candidates each."""
        found: list[_Open] = []
        seen: Tokens = np.empty(0, dtype=np.int32)
        penalises = self.sampling.repeat_penalty != 1.0
        for i, (node, path) in enumerate(nodes):
            if i and len(rows) == 1 and not penalises:
                look = found[0].look  # it is the same behind all of them
            else:
                if penalises:
                    seen = self._columns_of(recent(context, path, self.sampling.repeat_last_n))
                look = self._look(rule, rows[min(i, len(rows) - 1)], len(context) + len(path), seen, n_candidates)
            found.append(_Open(node, path, look))
        return found

    def _look(self, rule: Rule, row: Row, position: int, seen: Tokens, n: int) -> _Look:
        columns = distribution(row, self.sampling, seen)
        q = self._named(columns)
        foreseen = rule.foreseen(q, position, n)
        best = [] if foreseen else columns.ids[:n].tolist()
        others: list[int] = []
        if len(best) + len(foreseen) < n:
            there = columns.ids.tolist()
            others = [each for each in leading(row, n)[0].tolist() if each not in there][: n - len(there)]
        p_best, *ps = probabilities(row, [int(columns.ids[0]), *best, *others]).tolist()
        ps = [*(sureness(share, p_best, columns) for _, share in foreseen), *ps]
        chances: list[float] = []
        left = 1.0
        for rank, p in enumerate(ps):
            chance = self._worth[min(rank, len(self._worth) - 1)].chance(p)
            chances.append(min(chance, left, *chances[-1:]))  # no candidate is likelier than the one before it
            left -= chances[-1]
        foreseen_tokens = tuple(token for token, _ in foreseen)
        return _Look(q, foreseen_tokens, tuple(self._name(each) for each in others), tuple(ps), tuple(chances))

    def _drawn(self, rule: Rule, look: _Look, position: int, n: int) -> list[Drawn]:
        """n candidates; where q cannot yield so many, the best of the other tokens follow."""
        drawn: list[Drawn] = [(token, None) for token in look.foreseen[:n]]
        drawn = drawn or rule.draw_several(look.q, position, n)
        for token in look.others[: n - len(drawn)]:
            drawn.append((token, None if drawn[0][1] is None else point_mass(token)))
        return drawn

    def _columns_of(self, tokens: Tokens) -> Tokens:
        """The columns of tokens; those that have none are left out."""
        if self._ids is None:
            return tokens
        found = (self._columns.get(int(token)) for token in tokens)
        return np.array([column for column in found if column is not None], dtype=np.int32)

    def _named(self, q: Distribution) -> Distribution:
        """A distribution over columns as one over tokens."""
        return q if self._ids is None else Distribution(self._ids[q.ids], q.probs)

    def _name(self, column: int) -> int:
        return int(column) if self._ids is None else int(self._ids[column])


def sureness(share: float, p_best: float, q: Distribution) -> float:
    """How sure a writer is of a token that a rule foresees, from its share and from what q leaves out of the row.

    `p_best`: the row's own probability of the best token of q. The root is halfway between leaving that out of account
    and taking it whole, each of which foretells less (packaging/decisions.md, "The chooser").
    """
    return share * min(1.0, math.sqrt(p_best / float(q.probs[0])))


def fastest(clock: Callable[[], float], tries: Iterable[Callable[[], object]]) -> float:
    """Seconds of the fastest of a few tries: other load only ever adds."""
    seconds = []
    for attempt in tries:
        started = clock()
        attempt()
        seconds.append(clock() - started)
    return min(seconds)


class DraftsAtAPrice:
    """What guessers have in common whose tokens take time: nothing to show for free, and rows cut as the target's."""

    _drafting: Drafting

    @property
    def sampling(self) -> SamplingConfig:
        """How the target's rows are cut, and with them those of this guesser."""
        return self._drafting.sampling

    @sampling.setter
    def sampling(self, sampling: SamplingConfig) -> None:
        self._drafting.sampling = sampling

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return ()
