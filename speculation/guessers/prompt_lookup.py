"""Prompt lookup: what followed the last time the context ended like this? (Saxena 2023)

Two continuations are on offer: that of the longest match, and that of a copy which is followed through edits. Where
other tokens followed the match elsewhere, both are also offered together with those, as branches of a tree.
Each token comes with the chance that it is accepted, learned from everything that was emitted, used or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

from speculation.accept import Rule
from speculation.context import Bookmark, Context
from speculation.guessers.base import KeepOn
from speculation.guessers.copying import Copying
from speculation.guessers.growing import ROOT, Growing
from speculation.guessers.suffix_index import SuffixIndex
from speculation.survival import CONTESTED, Kind, Survival, later
from speculation.types import LOOKUP, Draft

_ASKED_FOR = 0.9  # the regime of a reply that was asked to be a copy
_LONGEST = 63  # tokens; longer ones lose at edits what they gain, except where a copy was asked for
_HOPELESS = 0.02  # where the chance of a whole draft falls below this, it ends
_OTHERS = (Kind.SECOND, Kind.THIRD, Kind.THIRD)  # of one position that are offered beside the copy, best first


@dataclass(frozen=True, slots=True)
class Copied:
    """A token that may follow others."""

    token: int
    chance: float  # that it is accepted once all before it are
    source: int  # the index in the context that it is copied from


class PromptLookup:
    """Copies what stands in the prompt, the reply or an earlier turn already."""

    name = LOOKUP

    def __init__(self, min_match: int = 1, survival: Survival | None = None) -> None:
        self.survival = survival or Survival()
        self.allowed: Callable[[int], bool] | None = None  # where a copy may begin, as an index of the context
        self._min_match = min_match
        self._given = -1
        self._seen = Bookmark()
        self._expected: int | None = None
        self._longest = _LONGEST
        self._reset()

    def expect_copy(self, source: int) -> None:
        """The next reply was asked to copy what begins at an index of the context, up to edits: guess so at once."""
        self._expected = source

    def read_along(self, context: Context, n_read: int) -> None:
        """Take up a prompt while it is read, or the first step would wait for that."""
        self._sync(context)

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """The continuation of the longest match; empty when no match is long enough."""
        self._sync(context)
        match, source = self._index.longest_match()
        if k <= 0 or match < self._min_match or not self._may(source):
            return Draft(self.name)
        copied = self._text[source : source + k]
        while len(copied) < k:  # the match overlaps the end: the text repeats itself, so the copy does too
            copied.extend(copied[: k - len(copied)])
        return Draft(self.name, tuple(copied), source=source, match=match)

    def behind(self, context: Context, drafted: Sequence[int]) -> Iterator[Copied]:
        """What would be copied behind tokens that another guesser proposes, as long as there is a match."""
        self._sync(context)
        index, regime = self._index, self.survival.regime
        state, match = index.matched, index.longest_match()[0]
        for token in drafted:
            regime = later(regime, match > 0 and index.latest(state)[0] == token)
            state, match = index.along(state, match, token)
        while match >= max(1, self._min_match):
            token, source = index.latest(state)
            if not self._may(source):
                return
            kind, _ = self._lookup_kind(token, source, state)
            yield Copied(token, self.survival.chance(kind, match, regime), source)
            regime = later(regime)
            state, match = index.along(state, match, token)

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        """The copy that is being followed and the longest match, each up to where there is no hope left."""
        self._sync(context)
        k = min(k, self._longest)
        match, source = self._index.longest_match()
        place = self._copying.place
        found = []
        if k > 0 and place is not None:
            found.append(self._followed(k, least))
        if k > 0 and match >= self._min_match and (place is None or place.at != source or place.new):
            found.append(self._matched(k, match, source, least))
        good = [draft for draft in found if draft.tokens and draft.match >= self._min_match]
        allowed = [draft for draft in good if draft.source is None or self._may(draft.source)]
        tree = self._branched(k, allowed, match) if allowed and match >= self._min_match else None
        return tuple(allowed if tree is None else [*allowed, tree])

    def _branched(self, k: int, chains: Sequence[Draft], match: int) -> Draft | None:
        """All chains, one at least, and what else followed the match; None where that is a chain again."""
        tree = Growing()
        for draft in chains:
            start = draft.source or 0
            tree.add_chain(draft, range(start, start + len(draft.tokens)))
        before = len(tree)
        state: int | None = self._index.matched
        node, depth = ROOT, 0
        for token in chains[0].tokens:
            if not state or tree.left(node) < _HOPELESS:
                break
            for kind, other, source in self._others(state, token):
                chance = self.survival.chance(kind, match + depth, self.survival.regime)
                if chance * tree.reach(node) >= _HOPELESS and self._may(source):
                    self._extend(tree, tree.add(node, other, chance, source), source, match + depth)
            node, depth = tree.add(node, token, 0.0), depth + 1
            state = self._index.continuations(state).get(token)
        if len(tree) == before and len(chains) < 2:
            return None
        return tree.draft(self.name, k, match)

    def _others(self, state: int, token: int) -> list[tuple[Kind, int, int]]:
        """What followed a match beside this token, the latest first, and where it stands."""
        followers = self._index.continuations(state)
        if len(followers) < 2:
            return []
        ends = ((self._index.end(then), other) for other, then in followers.items() if other != token)
        return [(kind, other, end - 1) for kind, (end, other) in zip(_OTHERS, nlargest(3, ends), strict=False)]

    def _extend(self, tree: Growing, node: int, source: int, run: int) -> None:
        """Copy on behind a branch, as far as there is hope."""
        text, regime = self._text, later(self.survival.regime)
        for at in range(source + 1, len(text)):
            kind = Kind.LOOKUP_PROMPT if at < self._given else Kind.LOOKUP_REPLY
            run += 1
            chance = self.survival.chance(kind, run, regime)
            if chance * tree.reach(node) < _HOPELESS:
                break
            node = tree.add(node, text[at], chance, at)
            regime = later(regime)

    def _may(self, source: int) -> bool:
        return self.allowed is None or self.allowed(source)

    def _followed(self, k: int, least: float) -> Draft:
        text, place = self._text, self._copying.place
        assert place is not None
        state: int | None = self._index.matched
        source, match = place.at, max(1, place.run)
        tokens: list[int] = []
        chances: list[float] = []
        together, regime = 1.0, self.survival.regime
        while len(tokens) < k and together >= _HOPELESS:
            guess = self._copying.guess(place, tokens)
            if guess is None:
                break
            kind, state = self._weighed(guess.kind, guess.token, state)
            chance = self.survival.chance(kind, guess.run, regime)
            if not tokens and chance < least:
                break
            tokens.append(guess.token)
            chances.append(chance)
            together *= chance
            regime = later(regime)
            place = guess.then
        return Draft(self.name, tuple(tokens), source=min(source, len(text) - 1), match=match, chances=tuple(chances))

    def _matched(self, k: int, match: int, source: int, least: float) -> Draft:
        text, n = self._text, len(self._text)
        state: int | None = self._index.matched
        tokens: list[int] = []
        chances: list[float] = []
        together, regime = 1.0, self.survival.regime
        while len(tokens) < k and together >= _HOPELESS:
            at = source + len(tokens)
            token = text[at] if at < n else tokens[at - n]
            kind, state = self._lookup_kind(token, at, state)
            chance = self.survival.chance(kind, match + len(tokens), regime)
            if not tokens and chance < least:
                break
            tokens.append(token)
            chances.append(chance)
            together *= chance
            regime = later(regime)
        return Draft(self.name, tuple(tokens), source=source, match=match, chances=tuple(chances))

    def _lookup_kind(self, token: int, at: int, state: int | None) -> tuple[Kind, int | None]:
        """What speaks for a token of the longest match, and the match's state behind it."""
        kind = Kind.LOOKUP_PROMPT if at < self._given else Kind.LOOKUP_REPLY
        if state is None:
            return kind, None
        followers = self._index.continuations(state)
        return (kind if len(followers) == 1 else Kind.LOOKUP_CONTESTED), followers.get(token)

    def _weighed(self, kind: Kind, token: int, state: int | None) -> tuple[Kind, int | None]:
        """What speaks for a token of the copy, once it is known whether others fit."""
        if state is None:
            return kind, None
        followers = self._index.continuations(state)
        if state > 0 and (len(followers) > 1 or token not in followers):
            kind = CONTESTED.get(kind, kind)
        return kind, followers.get(token)

    def _sync(self, context: Context) -> None:
        if context.unchanged_since(self._seen) < len(self._text):
            self._reset()  # a suffix automaton cannot forget; cuts happen between replies only
        if context.given != self._given:
            self._given = self._copying.given = context.given
            self.survival.begin()
            self._longest = _LONGEST
        for token in context.tokens[len(self._text) :].tolist():
            self._append(token)
        self._seen = context.bookmark()
        if self._expected is not None and len(self._text) == self._given:
            self._copying.expect(self._expected)
            self.survival.regime = _ASKED_FOR
            self._longest = context.given
        self._expected = None

    def _append(self, token: int) -> None:
        """Take up one token; learn from it when the model wrote it."""
        text, index, copying, survival = self._text, self._index, self._copying, self.survival
        place = copying.place
        guess = None if place is None else copying.guess(place)
        if len(text) >= self._given:
            match, source = index.longest_match()
            hit = False
            if match:
                hit = text[source] == token
                survival.observe(self._lookup_kind(text[source], source, index.matched)[0], match, hit)
                for kind, other, _ in self._others(index.matched, text[source]):
                    survival.observe(kind, match, other == token)
            if place is not None and guess is not None:
                copied = guess.token == token
                kind, _ = self._weighed(guess.kind, guess.token, index.matched)
                survival.observe(kind, guess.run, copied)
                if match <= place.run + 1 or source == place.at:
                    hit = copied
            survival.follow(hit)
        text.append(token)
        index.append(token)
        copying.follow(token, guess)

    def _reset(self) -> None:
        self._text: list[int] = []
        self._index = SuffixIndex()
        self._copying = Copying(self._text, self._index)
        self._copying.given = self._given
