"""The longest end of a text that occurred before, and what followed it: a suffix automaton over token ids."""

from __future__ import annotations

from collections.abc import Mapping

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

    @property
    def matched(self) -> int:
        """The state of the longest suffix that occurred before; 0 when there is none."""
        return max(self._link[self._last], 0)

    def continuations(self, state: int) -> Mapping[int, int]:
        """Every token that has followed this state, and the state that it leads to."""
        return self._next[state]

    def along(self, state: int, match: int, token: int) -> tuple[int, int]:
        """The longest end of a match and one more token that was continued somewhere: its state and its length."""
        while state >= 0 and token not in self._next[state]:
            state = self._link[state]
            match = self._longest[state] if state >= 0 else -1
        state, match = (self._next[state][token], match + 1) if state >= 0 else (0, 0)
        while state > 0 and not self._next[state]:
            state = self._link[state]
            match = self._longest[state]
        return state, match

    def latest(self, state: int) -> tuple[int, int]:
        """The token that followed this state last, and where it stands; there must have been one."""
        end, token = max((self._end[then], token) for token, then in self._next[state].items())
        return token, end - 1

    def end(self, state: int) -> int:
        """The index behind the most recent place where a state's strings end, its text's own end not counted."""
        return self._end[state]
