"""Prompt lookup: what followed the last time the context ended like this? (Saxena 2023)

The whole context is indexed by a suffix automaton, one token at a time, so the longest match is found in a
time that does not grow with the context.
"""

from __future__ import annotations

from collections.abc import Sequence

from speculation.accept import Rule
from speculation.context import Bookmark, Context
from speculation.types import Draft

# In a run of one repeated token every suffix is a state, and refreshing them all at each token would make a
# long run quadratic. Beyond this depth an occurrence may be reported that is not the most recent one.
_MAX_REFRESHED = 64


class SuffixIndex:
    """A suffix automaton over a growing list of tokens (Blumer et al. 1985), with the last end of each state."""

    def __init__(self) -> None:
        self._next: list[dict[int, int]] = [{}]  # transitions of each state
        self._link = [-1]  # the state of the longest suffix that ends in more places
        self._longest = [0]  # length of the longest string of the state
        self._end = [-1]  # index behind the most recent occurrence, not counting the one being added
        self._last = 0
        self._match = (0, -1)
        self.size = 0

    def append(self, token: int) -> None:
        """Add one token at the end."""
        following, link, longest, end = self._next, self._link, self._longest, self._end
        self.size += 1
        state = len(following)
        following.append({})
        link.append(0)
        longest.append(longest[self._last] + 1)
        end.append(self.size)
        at = self._last
        while at != -1 and token not in following[at]:
            following[at][token] = state
            at = link[at]
        if at != -1:
            reached = following[at][token]
            if longest[reached] == longest[at] + 1:
                link[state] = reached
            else:
                copy = len(following)
                following.append(following[reached].copy())
                link.append(link[reached])
                longest.append(longest[at] + 1)
                end.append(end[reached])
                link[reached] = link[state] = copy
                while at != -1 and following[at].get(token) == reached:
                    following[at][token] = copy
                    at = link[at]
        self._last = state
        found = link[state]
        self._match = (longest[found], end[found])
        for _ in range(_MAX_REFRESHED):
            if found <= 0:
                break
            end[found] = self.size
            found = link[found]

    def longest_match(self) -> tuple[int, int]:
        """Length of the longest suffix that occurred before and the index behind its latest place; (0, -1) if none."""
        return self._match


class PromptLookup:
    """Copies what stands in the prompt, the reply or an earlier turn already."""

    name = "lookup"

    def __init__(self, min_match: int = 1) -> None:
        self._min_match = min_match
        self._index = SuffixIndex()
        self._seen = Bookmark()

    def propose(self, context: Context, k: int, rule: Rule) -> Draft:
        """The continuation of the longest match; empty when no match is long enough."""
        found = self.candidates(context, k)
        return found[0] if found else Draft(self.name)

    def candidates(self, context: Context, k: int) -> Sequence[Draft]:
        self._sync(context)
        match, source = self._index.longest_match()
        if k <= 0 or match < self._min_match:
            return ()
        copied = context.tokens[source : source + k].tolist()
        while len(copied) < k:  # the match overlaps the end: the text repeats itself, so the copy does too
            copied.extend(copied[: k - len(copied)])
        return (Draft(self.name, tuple(copied), source=source, match=match),)

    def _sync(self, context: Context) -> None:
        if context.unchanged_since(self._seen) < self._index.size:
            self._index = SuffixIndex()  # a suffix automaton cannot forget; cuts happen between replies only
        for token in context.tokens[self._index.size :].tolist():
            self._index.append(token)
        self._seen = context.bookmark()
