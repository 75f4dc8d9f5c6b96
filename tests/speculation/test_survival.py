"""What copies are worth, by their evidence: feed outcomes, compare chances."""

from __future__ import annotations

import json

import pytest

from speculation.survival import CONTESTED, Kind, Survival


def test_a_longer_run_and_a_copying_text_promise_more() -> None:
    survival = Survival()

    by_run = [survival.chance(Kind.COPY, run, 0.6) for run in (1, 4, 16, 64)]
    by_regime = [survival.chance(Kind.LOOKUP_PROMPT, 4, regime) for regime in (0.1, 0.5, 0.9)]

    assert by_run == sorted(by_run)
    assert by_regime == sorted(by_regime)
    assert by_run[0] < 0.8
    assert by_run[-1] > 0.95


@pytest.mark.parametrize("kind", CONTESTED)
def test_a_match_that_went_on_differently_elsewhere_promises_less(kind: Kind) -> None:
    survival = Survival()

    assert survival.chance(CONTESTED[kind], 2, 0.5) < survival.chance(kind, 2, 0.5)


def test_outcomes_move_their_own_cell() -> None:
    survival = Survival()
    prior = survival.chance(Kind.LOOKUP_REPLY, 3, survival.regime)
    other = survival.chance(Kind.LOOKUP_REPLY, 30, survival.regime)

    for _ in range(200):
        survival.observe(Kind.LOOKUP_REPLY, 3, hit=True)

    assert survival.chance(Kind.LOOKUP_REPLY, 3, survival.regime) > max(prior, 0.85)
    assert survival.chance(Kind.LOOKUP_REPLY, 30, survival.regime) == other


def test_breaks_of_likely_copies_strain_all_of_them_until_the_next_reply() -> None:
    survival = Survival()
    before = survival.chance(Kind.COPY, 40, 0.9)

    for _ in range(6):
        survival.observe(Kind.NEAR_LONG, 3, hit=False)

    assert survival.chance(Kind.COPY, 40, 0.9) < before - 0.02
    survival.begin()
    assert survival.chance(Kind.COPY, 40, 0.9) == before


def test_the_regime_follows_the_last_tokens() -> None:
    survival = Survival()
    start = survival.regime

    for _ in range(60):
        survival.follow(hit=True)
    copying = survival.regime
    for _ in range(60):
        survival.follow(hit=False)

    assert copying > 0.9 > start
    assert survival.regime < 0.1


def test_what_was_learned_survives_a_file() -> None:
    survival, restored = Survival(), Survival()
    for _ in range(30):
        survival.observe(Kind.LOOKUP_PROMPT, 2, hit=False)

    restored.load(json.loads(json.dumps(survival.export())))

    assert restored.chance(Kind.LOOKUP_PROMPT, 2, 0.1) == survival.chance(Kind.LOOKUP_PROMPT, 2, 0.1)
    assert restored.export() == survival.export()


@pytest.mark.parametrize(
    "learned",
    [
        {},
        {"version": 2, "cells": {"0": [1.0, 2.0]}},
        {"version": 1, "cells": [1]},
        {"version": 1, "cells": {"x": [1.0, 2.0], "-1": [1.0, 2.0], "99999": [1.0, 2.0], "0": [3.0, 2.0], "1": 5}},
        {"version": 1, "cells": {"0": [float("nan"), 2.0], "1": ["a", "b"], "2": []}},
    ],
)
def test_a_file_that_is_something_else_is_ignored(learned: dict[str, object]) -> None:
    survival = Survival()

    survival.load(learned)

    assert survival.export() == Survival().export()
