"""Evidence of a guess -> the chance that its next token is accepted, learned from every token that is emitted.

The evidence for a copied token is a kind (where the copy comes from, what was edited lately, whether something else
followed here before), a run (how many tokens matched in a row) and a regime (the share of the last tokens that
copying would have got right). Each cell of the three holds discounted counts over a prior. What one text does to
all cells alike, more or fewer breaks than they say, is kept apart as a strain and forgotten with the reply.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from enum import IntEnum
from math import exp, log, log2
from typing import Any


class Kind(IntEnum):
    """What speaks for a copied token. CONTESTED: other tokens followed this match elsewhere, or none did."""

    LOOKUP_PROMPT = 0  # the longest match, in what was given
    LOOKUP_REPLY = 1  # the longest match, in the reply itself
    LOOKUP_CONTESTED = 2
    COPY = 3  # a copy that is being followed
    COPY_CONTESTED = 4
    REPLACED = 5  # right behind a token that differed, as if it had been replaced
    NEAR = 6  # found again after an edit of a few tokens
    NEAR_CONTESTED = 7
    NEAR_LONG = 8  # the same, and the copy was long before the edit
    NEAR_LONG_CONTESTED = 9
    FAR = 10  # found again after a longer insertion or omission
    FAR_CONTESTED = 11
    FAR_LONG = 12
    FAR_LONG_CONTESTED = 13
    INSERTED = 14  # found again exactly where it was left, behind a longer insertion
    INSERTED_CONTESTED = 15
    INSERTED_LONG = 16
    INSERTED_LONG_CONTESTED = 17
    EDIT = 18  # what replaced these tokens before; the run counts how often
    EDIT_DISPUTED = 19  # it did not always
    TORN = 20  # the original token, where an edit is known that is not trusted; the run is larger with trust
    SECOND = 21  # what followed the longest match at another place, the latest but for the one that is copied
    THIRD = 22  # the same, at a place before that


CONTESTED = {
    Kind.LOOKUP_PROMPT: Kind.LOOKUP_CONTESTED,
    Kind.LOOKUP_REPLY: Kind.LOOKUP_CONTESTED,
    Kind.COPY: Kind.COPY_CONTESTED,
    Kind.NEAR: Kind.NEAR_CONTESTED,
    Kind.NEAR_LONG: Kind.NEAR_LONG_CONTESTED,
    Kind.FAR: Kind.FAR_CONTESTED,
    Kind.FAR_LONG: Kind.FAR_LONG_CONTESTED,
    Kind.INSERTED: Kind.INSERTED_CONTESTED,
    Kind.INSERTED_LONG: Kind.INSERTED_LONG_CONTESTED,
}

# Log-odds of a hit: constant, per log2(1 + run), per log-odds of the regime. Fitted to 643 texts (137,000 tokens):
# reference answers of EditEval (without its first 60 tasks) and Spec-Bench (without the first 10 of a group), and
# Python's standard library and prose with docstrings added, parameters renamed, lines edited, words replaced. None of
# the texts of the replays is among them.
PRIORS: dict[Kind, tuple[float, float, float]] = {
    Kind.LOOKUP_PROMPT: (0.24, 0.57, 0.20),
    Kind.LOOKUP_REPLY: (-0.89, 0.53, 0.23),
    Kind.LOOKUP_CONTESTED: (-1.61, 0.11, 0.07),
    Kind.COPY: (-0.48, 0.71, 0.11),
    Kind.COPY_CONTESTED: (-1.67, 0.51, 0.78),
    Kind.REPLACED: (-1.01, -0.11, 0.47),
    Kind.NEAR: (1.99, -0.25, 0.60),
    Kind.NEAR_CONTESTED: (0.31, -0.06, 1.06),
    Kind.NEAR_LONG: (1.53, 0.38, 0.35),
    Kind.NEAR_LONG_CONTESTED: (-0.55, 0.83, 0.84),
    Kind.FAR: (-1.05, 1.19, -0.04),
    Kind.FAR_CONTESTED: (-2.06, 0.48, 0.14),
    Kind.FAR_LONG: (0.56, 0.39, 0.23),
    Kind.FAR_LONG_CONTESTED: (-1.86, 0.70, 0.32),
    Kind.INSERTED: (-1.05, 1.28, 0.36),
    Kind.INSERTED_CONTESTED: (-1.39, 0.33, 0.43),
    Kind.INSERTED_LONG: (1.46, 1.12, 0.85),
    Kind.INSERTED_LONG_CONTESTED: (-0.18, 1.34, 0.55),
    Kind.EDIT: (-1.21, 0.46, 0.77),
    Kind.EDIT_DISPUTED: (-0.21, -0.31, 0.81),
    Kind.TORN: (1.27, -0.44, 0.68),
    Kind.SECOND: (-1.67, 0.19, 0.20),
    Kind.THIRD: (-1.89, -0.12, 0.18),
}
_SURE = 0.993  # no prior is surer
_RUNS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
_RUN_MIDDLES = (0.0, 1.0, 2.0, 3.0, 4.5, 6.5, 9.5, 13.5, 19.5, 27.5, 39.5, 55.5, 90.0, 200.0)
_REGIMES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96)
_REGIME_MIDDLES = (0.1, 0.27, 0.42, 0.57, 0.72, 0.85, 0.93, 0.98)
_N_RUNS, _N_REGIMES = len(_RUN_MIDDLES), len(_REGIME_MIDDLES)
_RUN_BIN = [bisect_right(_RUNS, run) * _N_REGIMES for run in range(_RUNS[-1] + 1)]

_STRENGTH = 20.0  # observations that a prior weighs
_KEEP = 0.995  # of the counts of a cell at each observation
_REGIME_KEEP = 0.95  # about the last twenty tokens
_REGIME_START = 0.1
_STRAIN_KEEP = 0.97
_STRAIN_STRENGTH = 3.0  # breaks that "as the cells say" weighs
_LIKELY = 0.5  # only what was likely strains the text when it breaks


class Survival:
    """What copies have been worth, by their evidence."""

    def __init__(self) -> None:
        self._prior = [
            _prior(PRIORS[kind], run, regime) for kind in Kind for run in _RUN_MIDDLES for regime in _REGIME_MIDDLES
        ]
        self._right = [prior * _STRENGTH for prior in self._prior]
        self._seen = [_STRENGTH] * len(self._prior)
        self.begin()

    def begin(self) -> None:
        """A new reply: forget what only the last one was like."""
        self.regime = _REGIME_START
        self._broken = self._expected = 0.0
        self._strain = 1.0

    def chance(self, kind: Kind, run: float, regime: float) -> float:
        """The chance of a token, given that all before it in the draft are accepted."""
        cell = _cell(kind, run, regime)
        chance = self._right[cell] / self._seen[cell]
        return chance if chance <= _LIKELY else max(0.0, 1.0 - (1.0 - chance) * self._strain)

    def observe(self, kind: Kind, run: float, hit: bool) -> None:
        """Learn whether a token that this evidence spoke for was emitted; the guess need not have been used."""
        cell = _cell(kind, run, self.regime)
        chance = self._right[cell] / self._seen[cell]
        if chance > _LIKELY:
            self._broken = self._broken * _STRAIN_KEEP + (not hit)
            self._expected = self._expected * _STRAIN_KEEP + 1.0 - chance
            # One-sided: that nothing broke so far is what a text looks like before its first edit.
            self._strain = max(1.0, (self._broken + _STRAIN_STRENGTH) / (self._expected + _STRAIN_STRENGTH))
        forgotten = (1.0 - _KEEP) * _STRENGTH
        self._right[cell] = self._right[cell] * _KEEP + forgotten * self._prior[cell] + hit
        self._seen[cell] = self._seen[cell] * _KEEP + forgotten + 1.0

    def follow(self, hit: bool) -> None:
        """Count a token towards the regime: whether copying would have got it right."""
        self.regime = later(self.regime, hit)

    def export(self) -> dict[str, Any]:
        """What was learned, for a file; only cells that moved."""
        cells = {str(i): [self._right[i], self._seen[i]] for i, seen in enumerate(self._seen) if seen != _STRENGTH}
        return {"version": 1, "cells": cells}

    def load(self, learned: Mapping[str, Any]) -> None:
        """Take up what `export` gave; anything that does not look like it is ignored."""
        cells = learned.get("cells")
        if learned.get("version") != 1 or not isinstance(cells, Mapping):
            return
        for key, counts in cells.items():
            try:
                cell, right, seen = int(key), float(counts[0]), float(counts[1])
            except (TypeError, ValueError, LookupError):
                continue
            if 0 <= cell < len(self._prior) and 0.0 < right < seen < 1e6:
                self._right[cell], self._seen[cell] = right, seen


def later(regime: float, hit: bool = True) -> float:
    """The regime one token on."""
    return regime * _REGIME_KEEP + (1.0 - _REGIME_KEEP) * hit


def _cell(kind: Kind, run: float, regime: float) -> int:
    at = _RUN_BIN[int(run)] if run < _RUNS[-1] else _RUN_BIN[-1]
    return kind * (_N_RUNS * _N_REGIMES) + at + bisect_right(_REGIMES, regime)


def _prior(weights: tuple[float, float, float], run: float, regime: float) -> float:
    constant, by_run, by_regime = weights
    odds = constant + by_run * log2(1.0 + run) + by_regime * log(regime / (1.0 - regime))
    return min(_SURE, 1.0 / (1.0 + exp(-odds)))
