"""A tree of guesses that grows branch by branch, and its most promising part as a draft."""

from __future__ import annotations

from collections.abc import Sequence

from speculation.types import Distribution, Draft

ROOT = -1  # the end of the context


class Growing:
    """Nodes with the chance that each is accepted, given that its parent is."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._chances: list[float] = []
        self._reaches: list[float] = []
        self._sources: list[int | None] = []
        self._qs: list[Distribution | None] = []
        self._child: dict[tuple[int, int], int] = {}
        self._left: dict[int, float] = {}  # chance that none of the children so far is accepted, given the parent

    def __len__(self) -> int:
        return len(self._tokens)

    def reach(self, node: int) -> float:
        """The chance that a node is accepted; 1 for the root."""
        return self._reaches[node] if node >= 0 else 1.0

    def left(self, node: int) -> float:
        """The chance that the node is accepted and none of its children."""
        return self.reach(node) * self._left.get(node, 1.0)

    def add(
        self, parent: int, token: int, chance: float, source: int | None = None, q: Distribution | None = None
    ) -> int:
        """The child of a node with this token, new unless it is there already; siblings share what chance there is."""
        known = self._child.get((parent, token))
        if known is not None:
            return known
        left = self._left.get(parent, 1.0)
        chance = min(chance, left)
        self._left[parent] = left - chance
        node = self._child[parent, token] = len(self._tokens)
        self._tokens.append(token)
        self._parents.append(parent)
        self._chances.append(chance)
        self._reaches.append(chance * self.reach(parent))
        self._sources.append(source)
        self._qs.append(q)
        return node

    def add_chain(self, draft: Draft, sources: Sequence[int | None]) -> list[int]:
        """All tokens of a chain, from the root on; its nodes."""
        node, nodes = ROOT, []
        for token, chance, source in zip(draft.tokens, draft.chances, sources, strict=True):
            node = self.add(node, token, chance, source)
            nodes.append(node)
        return nodes

    def draft(self, guesser: str, k: int, match: int = 0) -> Draft:
        """The k nodes that are most likely to be accepted (Li et al. 2024, 2406.16858, section 4.1), best first."""
        # A node is never likelier than its parent, and the sort is stable, so parents come before children.
        best = sorted(range(len(self._tokens)), key=lambda node: -self._reaches[node])[:k]
        number = {ROOT: ROOT} | {node: i for i, node in enumerate(best)}
        parents = tuple(number[self._parents[node]] for node in best)
        sources = tuple(self._sources[node] for node in best)
        q = tuple(each for node in best if (each := self._qs[node]) is not None)
        return Draft(
            guesser,
            tuple(self._tokens[node] for node in best),
            q or None,
            source=sources[0] if sources else None,
            match=match,
            chances=tuple(self._chances[node] for node in best),
            parents=None if parents == tuple(range(-1, len(best) - 1)) else parents,
            sources=sources,
        )
