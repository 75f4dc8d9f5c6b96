"""A draft that goes on with a copy: what a lookup finds behind the context and the draft costs no drafting, only rows.

Cascade Speculative Drafting (Chen et al. 2023, 2312.11462) calls this the horizontal cascade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from speculation.accept import Rule
from speculation.context import Context
from speculation.guessers.base import Checked, Guesser, KeepOn, Lengthens, reads_along, watches
from speculation.guessers.prompt_lookup import Copied, PromptLookup
from speculation.types import Draft, point_mass

_HOPELESS = 0.02  # where the chance of a whole draft falls below this, it ends


class Extending:
    """A guesser whose tokens have a price, and a lookup that goes on where it stops. Where nobody prices, it does not.

    It has the guesser's name; `sources` of a draft tell which tokens are copies.
    """

    def __init__(self, drafter: Guesser, lookup: PromptLookup) -> None:
        self.name = drafter.name
        self._drafter = drafter
        self._lookup = lookup

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return self._drafter.candidates(context, k, least)

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        """The guesser's draft, and behind the end of its trunk as much of a copy as is worth its rows."""
        draft = self._drafter.propose(context, k, rule, keep_on)
        room = k - len(draft.tokens)
        if room <= 0 or not draft.chances or not isinstance(keep_on, Lengthens):
            return draft
        trunk = draft.trunk_nodes()
        end = trunk[-1]
        drafted = [draft.tokens[node] for node in trunk]
        copied, reaches = self._behind(context, drafted, draft.reaches()[end], room)
        copied = copied[: keep_on.lengthen(reaches, len(trunk))]
        if not copied:
            return draft
        first, n = len(draft.tokens), len(copied)
        parents = None
        if draft.parents is not None:
            parents = (*draft.parents, end, *range(first, first + n - 1))
        reported = None if draft.q is None else (*draft.q, *(point_mass(each.token) for each in copied))
        return replace(
            draft,
            tokens=(*draft.tokens, *(each.token for each in copied)),
            q=reported,
            chances=(*draft.chances, *(each.chance for each in copied)),
            parents=parents,
            sources=(*(draft.sources or (None,) * first), *(each.source for each in copied)),
        )

    def _behind(
        self, context: Context, drafted: Sequence[int], reach: float, room: int
    ) -> tuple[list[Copied], list[float]]:
        """What would be copied behind a trunk of this reach, up to where there is no hope, and the reach of each."""
        copied: list[Copied] = []
        reaches: list[float] = []
        for each in islice(self._lookup.behind(context, drafted), room):
            reach *= each.chance
            if reach < _HOPELESS:
                break
            copied.append(each)
            reaches.append(reach)
        return copied, reaches

    def watch(self, context: Context, checked: Checked) -> None:
        """Let the guesser see a step, if it learns from any."""
        if watches(self._drafter):
            self._drafter.watch(context, checked)

    def read_along(self, context: Context, n_read: int) -> None:
        """Let the guesser take up a prompt, if it does that while the prompt is read."""
        if reads_along(self._drafter):
            self._drafter.read_along(context, n_read)
