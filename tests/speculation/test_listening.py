"""What an idle draft model would have proposed: read off batches, and the same as asking it at each token."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.confidence import Confidence
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.listening import Heard
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import HistoryModel
from speculation.types import Tokens
from tests.speculation.examples import examples
from tests.speculation.test_adaptive import CPU, GPU

V = 12
HOT = SamplingConfig(temperature=0.9, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.2, repeat_last_n=5)
RULE = rule_named("coupled", 4)


def a_text(n: int, sampling: SamplingConfig = GREEDY) -> Tokens:
    """What a model writes."""
    model, context = DraftModel(HistoryModel(V, 1, spread=3.0), sampling, V), Context([3, 1, 4])
    while len(context) < n:
        context.extend(model.propose(context, 1, RULE).tokens)
    return context.tokens.copy()


def drafter(sampling: SamplingConfig = GREEDY, **model: int) -> DraftModel:
    return DraftModel(HistoryModel(V, 1, spread=3.0, blur=1.5, **model), sampling, V)


def heard(draft: DraftModel, text: Tokens, first: int, batches: int | None = None) -> list[Heard]:
    return [each for batch in islice(draft.listen(text, first, RULE), batches) for each in batch]


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
@pytest.mark.parametrize("max_rows", [1, 7, 64])
def test_each_token_is_compared_with_what_would_have_been_proposed_for_it(
    max_rows: int, sampling: SamplingConfig
) -> None:
    text = a_text(90, sampling)

    found = heard(drafter(sampling, max_rows=max_rows), text, 40)

    asked = drafter(sampling)
    expected = [asked.propose(Context(text[:at]), 1, RULE).tokens[0] == text[at] for at in range(40, 90)]
    assert [each.at for each in found] == [*range(40, 90)]
    assert [each.held for each in found] == expected
    assert 5 < sum(expected) < 50


def test_its_confidence_learns_the_same_as_from_drafts() -> None:
    text, listener, asked = a_text(90), drafter(), Confidence()

    for each in heard(listener, text, 40):
        asked.observe(each.sure, each.held)

    proposing, context = drafter(), Context(text[:40])
    for token in text[40:]:
        proposing.propose(context, 1, RULE)
        context.extend([int(token)])
    proposing.propose(context, 1, RULE)
    for p in (0.1, 0.5, 0.8, 0.95):
        assert listener.confidence.chance(p) == asked.chance(p) == proposing.confidence.chance(p)
        assert listener.confidence.chance(p) != Confidence().chance(p) or p < 0.15


@given(first=st.integers(1, 60), stops=st.lists(st.integers(1, 3), max_size=4))
@examples(40)
def test_it_may_be_left_after_any_batch_and_goes_on_there(first: int, stops: list[int]) -> None:
    text = a_text(200)
    whole, parts = drafter(), drafter()

    found: list[Heard] = []
    for batches in [*stops, None]:
        found += heard(parts, text, first, batches)

    assert found == heard(whole, text, first)
    assert isinstance(parts.model, HistoryModel)
    assert parts.model.evaluated == parts.model.n_past == len(text) - 1
    assert parts.propose(Context(text), 3, RULE).tokens == drafter().propose(Context(text), 3, RULE).tokens


def test_what_it_has_read_already_is_not_heard_twice() -> None:
    text, draft = a_text(90), drafter()
    draft.propose(Context(text[:60]), 1, RULE)

    assert [each.at for each in heard(draft, text, 40)] == [*range(61, 90)]
    assert heard(draft, text, 40) == []


def test_it_listens_as_far_as_it_can_read() -> None:
    text = a_text(90)
    odd = text.copy()
    odd[70] = V + 3

    assert [each.at for each in heard(drafter(n_ctx=50), text, 40)] == [*range(40, 51)]
    assert [each.at for each in heard(drafter(), odd, 40)] == [*range(40, 71)]
    odd[10] = V + 3
    assert heard(drafter(), odd, 40) == []


def test_the_chooser_takes_up_what_was_heard_as_if_each_had_been_a_step() -> None:
    controller = Adaptive(CPU, 0.0187)

    controller.take_up("draft", [True, True, False])
    controller.take_up("nobody", [True])

    examined = 1 + 0.97 + 0.97**2
    accepted = 0.97 + 0.97**2
    assert controller._drafters["draft"].alpha == pytest.approx((accepted + 0.7 * 8) / (examined + 8))


def test_the_chooser_tries_what_has_been_right_and_not_what_has_not() -> None:
    controller = Adaptive(GPU, 0.004)
    assert not controller.promises("nobody")

    controller.take_up("draft", [True] * 100)
    assert controller.promises("draft")
    assert controller.plan(Context([1]), {"draft": drafter()}, 63).guesser == "draft"

    controller.take_up("draft", [False] * 100)
    assert not controller.promises("draft")
    assert controller.plan(Context([1]), {"draft": drafter()}, 63).guesser == "plain"


def test_a_penalised_token_is_heard_as_it_would_have_been_proposed() -> None:
    sampling = SamplingConfig(temperature=0.0, repeat_penalty=1.7, repeat_last_n=-1)
    text = a_text(60, sampling)

    found = heard(drafter(sampling), text, 30)

    asked = drafter(sampling)
    assert [each.held for each in found] == [
        asked.propose(Context(text[:at]), 1, RULE).tokens[0] == text[at] for at in range(30, 60)
    ]
    assert np.mean([each.held for each in found]) > 0.1
