"""The rules that decide which draft tokens survive; all but `typical` leave the text distributed as the target alone.

Temperature 0 is a point-mass p and a deterministic guesser a point-mass q, so neither needs a branch. A draft may be a
tree: where a position has several candidates, they are tried in order. A chain is a tree with one candidate for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from speculation.accept.base import Drawn, Rows, Rule, acceptance, residual
from speculation.accept.block import Block
from speculation.accept.coupled import Coupled, gumbel
from speculation.accept.rejection import Rejection
from speculation.accept.typical import Typical

_RULES: Mapping[str, Callable[[int], Rule]] = {
    "coupled": Coupled,
    "rejection": lambda seed: Rejection(np.random.default_rng(seed)),
    "block": lambda seed: Block(np.random.default_rng(seed)),
    "typical": Typical,
}
RULE_NAMES = tuple(_RULES)


def rule_named(name: str, seed: int) -> Rule:
    """The rule that a setting names. Raises KeyError with the known names."""
    if name not in _RULES:
        raise KeyError(f"no rule is named {name!r}; there are {', '.join(sorted(_RULES))}")
    return _RULES[name](seed)


__all__ = [
    "RULE_NAMES",
    "Block",
    "Coupled",
    "Drawn",
    "Rejection",
    "Rows",
    "Rule",
    "Typical",
    "acceptance",
    "gumbel",
    "residual",
    "rule_named",
]
