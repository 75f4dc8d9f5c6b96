"""The simple `auto`: looks up when a match is long enough for the price of a check."""

from __future__ import annotations

import pytest

from speculation.context import Context
from speculation.controllers.threshold import Threshold
from speculation.cost import CostTable
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.types import Step

CPU = CostTable({1: 31.2, 2: 59.1, 4: 102.5, 8: 223.9, 16: 278.6, 32: 455.1, 64: 751.2})
GPU = CostTable({1: 10.0, 2: 10.4, 4: 10.8, 8: 12.0, 16: 15.0, 32: 19.0, 64: 28.0})
FREE = CostTable({1: 1.0, 64: 1.0})
DEAR = CostTable({1: 1.0, 2: 2.0, 64: 64.0})


def context_with_match(length: int) -> Context:
    """A context whose last `length` tokens stood in it before, followed by forty others."""
    return Context([*range(100), *range(100, 100 + length), *range(500, 540), *range(100, 100 + length)])


def planned_k(cost: CostTable, match: int, room: int = 63) -> int:
    return Threshold(cost).plan(context_with_match(match), {"lookup": PromptLookup()}, room).k


@pytest.mark.parametrize("match", [1, 2, 4, 6])
def test_short_matches_are_not_worth_a_check_on_a_cpu(match: int) -> None:
    assert planned_k(CPU, match) == 0


def test_long_matches_are_copied_the_further_the_longer_they_are() -> None:
    lengths = [planned_k(CPU, match) for match in (16, 40, 90)]

    assert 0 < lengths[0] <= lengths[1] <= lengths[2]
    assert lengths[2] >= 31


def test_a_machine_that_checks_nearly_for_free_looks_up_sooner() -> None:
    assert planned_k(GPU, 4) > 0
    assert planned_k(FREE, 1) == 63
    assert planned_k(DEAR, 90) == 0


def test_the_plan_keeps_to_the_room() -> None:
    assert planned_k(FREE, 30, room=5) == 5
    assert planned_k(FREE, 30, room=0) == 0


def test_a_plan_says_why() -> None:
    plan = Threshold(CPU).plan(context_with_match(40), {"lookup": PromptLookup()}, 63)

    assert plan.guesser == "lookup"
    assert "last 40 tokens match" in plan.reason


def test_rejections_make_it_careful_and_copies_that_go_through_trusting_again() -> None:
    controller, lookup = Threshold(CPU), {"lookup": PromptLookup()}
    context = context_with_match(16)
    before = controller.plan(context, lookup, 63).k
    rejected = Step("lookup", 15, 1, 0, (1,), 200, 0.0, 0.0, 0.0)
    accepted = Step("lookup", 15, 15, 15, tuple(range(16)), 200, 0.0, 0.0, 0.0)

    for _ in range(4):
        controller.record(rejected)
    careful = controller.plan(context, lookup, 63).k
    for _ in range(8):
        controller.record(accepted)

    assert careful < before == controller.plan(context, lookup, 63).k
