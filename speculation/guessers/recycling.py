"""Token recycling: every row of logits says what else might have followed its token (Luo et al. 2024, 2408.08696).

Rows that were computed anyway, also those behind a rejected guess, are kept as a few best followers of their last two
tokens and of the last one. Where the text comes by these tokens again, the followers are a tree of guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from speculation.accept import Rule
from speculation.confidence import Confidence
from speculation.context import Context
from speculation.guessers.base import Checked, KeepOn
from speculation.guessers.growing import ROOT, Growing
from speculation.sampling import leading
from speculation.types import Draft

_FOLLOWERS = 4  # of a key that are kept
_AMONG = 8  # tokens of a row among which their shares are taken
_MOST_ROWS = 8  # of a step that are looked at: those where the text left the draft say most
_MOST_KEYS = 100_000
_MOST_NODES = 31
_HOPELESS = 0.02  # nodes that are accepted less often are not grown
_ANY = -1

Key = tuple[int, int]  # the last two tokens, or _ANY and the last one
Followers = tuple[tuple[int, float], ...]  # tokens and their shares, best first


class Recycling:
    """Guesses with followers that the target itself gave in earlier rows."""

    name = "recycling"

    def __init__(self) -> None:
        self._known: dict[Key, Followers] = {}
        # What a share was worth, by how many tokens of the key agree and by the place among the followers.
        self._worth = {
            (agree, place): Confidence(0.02, 0.65 if agree == 2 else 0.35)
            for agree in (1, 2)
            for place in range(_FOLLOWERS)
        }

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """The k likeliest nodes of the tree of followers."""
        return self._tree(context, k)

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        draft = self._tree(context, min(k, _MOST_NODES))
        return (draft,) if draft.tokens else ()

    def watch(self, context: Context, checked: Checked) -> None:
        """Learn what the followers of the emitted tokens were worth, then what the rows say."""
        end = _last_two(context)
        before, last = end
        for token in checked.emitted:
            for cell, (follower, share) in self._places(before, last):
                self._worth[cell].observe(share, follower == token)
            before, last = last, token
        tokens = checked.draft.tokens
        stop = checked.path[-1] if checked.path else ROOT
        first = max(ROOT, min(stop, len(tokens) - _MOST_ROWS))
        for node in range(first, min(len(tokens), first + _MOST_ROWS)):
            before, last = [*end, *(tokens[each] for each in checked.draft.path(node))][-2:]
            ids, shares = leading(checked.rows[node + 1], _AMONG)
            found = tuple(zip(ids[:_FOLLOWERS].tolist(), shares[:_FOLLOWERS].tolist(), strict=True))
            self._keep((before, last), found)
            self._keep((_ANY, last), found)

    def _tree(self, context: Context, k: int) -> Draft:
        tree = Growing()
        waiting = [(-1.0, ROOT, *_last_two(context))]  # the likeliest node first
        while waiting and len(tree) < 2 * k:
            _, parent, before, last = heappop(waiting)
            for token, chance in self._followers(before, last):
                if chance * tree.reach(parent) >= _HOPELESS:
                    node = tree.add(parent, token, chance)
                    heappush(waiting, (-tree.reach(node), node, last, token))
        return tree.draft(self.name, k)

    def _followers(self, before: int, last: int) -> Iterator[tuple[int, float]]:
        """The tokens that may come next, each with its chance."""
        for (agree, place), (token, share) in self._places(before, last):
            yield token, self._worth[agree, place].chance(share)

    def _places(self, before: int, last: int) -> Iterator[tuple[tuple[int, int], tuple[int, float]]]:
        known, agree = self._known.get((before, last)), 2
        if known is None:
            known, agree = self._known.get((_ANY, last), ()), 1
        for place, follower in enumerate(known):
            yield (agree, place), follower

    def _keep(self, key: Key, found: Followers) -> None:
        self._known.pop(key, None)  # the latest last
        self._known[key] = found
        if len(self._known) > _MOST_KEYS:
            del self._known[next(iter(self._known))]


def _last_two(context: Context) -> Key:
    before, last = (_ANY, _ANY, *context.tail(2).tolist())[-2:]
    return before, last
