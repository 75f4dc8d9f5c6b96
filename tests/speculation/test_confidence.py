"""The draft model's confidence, made into chances, and the stopping rule at today's prices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.confidence import Confidence
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.engine import EndTokens, Engine
from speculation.guessers.draft_model import DraftModel
from speculation.sampling import GREEDY
from speculation.testing import AlwaysWidens, HistoryModel
from tests.speculation.copying_world import Clocked
from tests.speculation.test_adaptive import CPU, GPU

N_VOCAB = 60
RULE = rule_named("coupled", 3)


def test_a_draft_model_is_believed_nearly_until_it_is_known() -> None:
    confidence = Confidence()
    assert [round(confidence.chance(p), 2) for p in (0.0, 0.5, 1.0)] == [0.05, 0.5, 0.95]


def test_what_it_is_sure_of_in_vain_is_believed_no_longer_and_the_rest_still_is() -> None:
    confidence = Confidence()
    for _ in range(300):
        confidence.observe(0.995, False)
    assert confidence.chance(0.995) < 0.1
    assert confidence.chance(0.5) == 0.5


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=200), st.floats(0, 1))
def test_a_chance_stays_a_chance(seen: list[tuple[float, bool]], p: float) -> None:
    confidence = Confidence()
    for one, accepted in seen:
        confidence.observe(one, accepted)
    assert 0.0 < confidence.chance(p) < 1.0


def world(controller: Controller, cost: CostTable, share: float, blur: float, tokens: int = 900) -> Clocked:
    """Write with a draft model that is `blur` apart from its target and takes a share of its time."""
    clocked = Clocked(controller, cost, share * cost.forward_s(1))
    target = HistoryModel(N_VOCAB, 1, spread=3.0)
    draft = DraftModel(HistoryModel(N_VOCAB, 1, spread=3.0, blur=blur), GREEDY, N_VOCAB)
    engine = Engine(target, {"draft": draft}, clocked, RULE, GREEDY)  # type: ignore[arg-type]
    for _ in engine.read(np.array([1, 2, 3], dtype=np.int32)):
        pass
    for _ in engine.steps(limit=tokens, ends=EndTokens()):
        pass
    return clocked


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("blur", [0.7, 1.5, 3.0])
def test_stopping_by_price_is_no_slower_than_the_best_fixed_length(share: float, blur: float) -> None:
    best = min(world(Fixed("draft", k), GPU, share, blur).seconds for k in (1, 2, 4, 8))
    plain = world(Fixed(), GPU, share, blur).seconds

    taken = world(Adaptive(GPU, share * GPU.forward_s(1)), GPU, share, blur).seconds

    assert taken < 1.03 * min(best, plain)


def test_drafts_end_earlier_where_a_check_is_dear() -> None:
    def lengths(cost: CostTable) -> float:
        steps = world(Adaptive(cost, 0.05 * cost.forward_s(1), insist="draft"), cost, 0.05, 0.7).steps
        return float(np.mean([step.drafted for step in steps]))

    assert lengths(GPU) > 1.5 * lengths(CPU)


def test_a_draft_says_what_its_tokens_are_worth_and_learns_from_what_came() -> None:
    """Over many drafts the promised chances add up to what is accepted."""
    target = HistoryModel(N_VOCAB, 1, spread=3.0)
    draft = DraftModel(HistoryModel(N_VOCAB, 1, spread=3.0, blur=1.5), GREEDY, N_VOCAB)
    context = Context([1, 2, 3])
    promised, accepted = 0.0, 0
    for i in range(900):
        proposed = draft.propose(context, 1, RULE)
        best = int(np.argmax(target.row_after(context.tokens.tolist())))
        if i >= 300:
            promised += proposed.chances[0]
            accepted += proposed.tokens[0] == best
        context.extend([best])
    assert promised == pytest.approx(accepted, rel=0.1)


class Until(AlwaysWidens):
    """So many tokens one behind the other, whatever they are worth."""

    def __init__(self, length: int) -> None:
        super().__init__(candidates=1)
        self.left = length

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        self.left -= 1
        return 1 if self.left else 0


@pytest.mark.parametrize("length", [1, 3, 7])
def test_the_stopping_rule_is_asked_before_each_token_after_the_first(length: int) -> None:
    draft = DraftModel(HistoryModel(N_VOCAB, 1), GREEDY, N_VOCAB, min_p=0.99)
    proposed = draft.propose(Context([1, 2, 3]), 16, RULE, Until(length))
    assert len(proposed.tokens) == length
    assert len(proposed.chances) == length
