"""Drafts that go on as copies: what is copied, where that pays, and what the controller counts of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import Rule, rule_named
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.stopping import Stopping
from speculation.cost import CostTable, LivePrices
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Chains, Checked, KeepOn, Lengthens
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.extending import Extending
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import AlwaysLengthens, AlwaysWidens, HistoryModel, LengthenedDraft
from speculation.types import Draft, Step
from tests.speculation.copying_world import a_text, doubts, written
from tests.speculation.examples import examples
from tests.speculation.test_adaptive import CPU, GPU

RULE = rule_named("coupled", 0)
HOT = SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
texts = st.lists(st.integers(0, 3), min_size=1, max_size=50)


class Drafts:
    """A guesser that proposes one draft."""

    name = "draft"

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.seen: list[object] = []

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return ()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return self._draft.cut(k)

    def watch(self, context: Context, checked: Checked) -> None:
        self.seen.append(checked)

    def read_along(self, context: Context, n_read: int) -> None:
        self.seen.append(n_read)


def chain(*tokens: int) -> Draft:
    return Draft("draft", tokens, chances=(0.8,) * len(tokens))


# -- What is copied ------------------------------------------------------------------------------------------


def continued(text: list[int], drafted: list[int]) -> int | None:
    """Where the longest end of both together was continued last, by trying everything."""
    whole = [*text, *drafted]
    for length in range(len(whole), 0, -1):
        for source in range(len(text) - 1, length - 1, -1):
            if text[source - length : source] == whole[len(whole) - length :]:
                return source
    return None


@given(text=texts, drafted=st.lists(st.integers(0, 4), max_size=6))
@examples(300)
def test_behind_a_draft_stands_what_followed_the_longest_match_last(text: list[int], drafted: list[int]) -> None:
    copied = PromptLookup().behind(Context(text), drafted)

    for _ in range(8):
        source, found = continued(text, drafted), next(copied, None)
        assert (None if found is None else found.source) == source
        if found is None or source is None:
            break
        assert found.token == text[source]
        assert 0.0 < found.chance < 1.0
        drafted = [*drafted, found.token]


@given(text=texts, drafted=st.lists(st.integers(0, 3), max_size=4))
@examples(50)
def test_looking_behind_a_draft_leaves_the_lookup_as_it_was(text: list[int], drafted: list[int]) -> None:
    asked, unasked, context = PromptLookup(), PromptLookup(), Context(text)
    for i in range(3):
        _ = [*zip(range(5), asked.behind(context, drafted), strict=False)]
        context.extend([i, i + 1])

    def shown(lookup: PromptLookup) -> list[object]:
        return [(draft.tokens, draft.chances, draft.source) for draft in lookup.candidates(context, 8)]

    assert shown(asked) == shown(unasked)
    assert asked.survival.export() == unasked.survival.export()


def test_nothing_is_copied_from_where_copies_may_not_begin() -> None:
    lookup, context = PromptLookup(), Context([1, 2, 3, 4, 5, 9])
    assert next(lookup.behind(context, [2])).token == 3

    lookup.allowed = lambda source: source != 2

    assert next(lookup.behind(context, [2]), None) is None
    assert [each.token for each in lookup.behind(context, [3])][:2] == [4, 5]


def test_a_longer_match_behind_a_draft_is_trusted_more() -> None:
    context = Context([*range(20), 5])

    chances = [next(PromptLookup().behind(context, range(6, 6 + n))).chance for n in (1, 3, 9)]

    assert chances == sorted(chances)
    assert chances[0] < chances[2]


# -- The draft -----------------------------------------------------------------------------------------------

COPIES = Context([*range(10, 30), 10])
TWICE = Context([*range(30), *range(30)])


def test_a_copy_is_put_behind_a_draft_and_says_where_it_comes_from() -> None:
    draft = Extending(Drafts(chain(7, 14)), PromptLookup()).propose(COPIES, 63, RULE, AlwaysLengthens())

    assert draft.guesser == "draft"
    assert draft.tokens == (7, 14, 15, 16, 17)
    assert draft.sources == (None, None, 5, 6, 7)
    assert draft.q is None
    assert draft.parents is None
    assert draft.chances[:2] == (0.8, 0.8)
    assert len(draft.chances) == 5
    assert draft.source_of((0,)) is None
    assert draft.sources_of((0, 1)) is None
    assert draft.sources_of((0, 1, 2)) == (None, None, 5)


def test_a_tree_is_gone_on_with_behind_the_end_of_its_trunk() -> None:
    tree = Draft("draft", (10, 12, 11, 20), chances=(0.6, 0.3, 0.5, 0.2), parents=(-1, -1, 0, 1))

    draft = Extending(Drafts(tree), PromptLookup()).propose(COPIES, 63, RULE, AlwaysLengthens())

    assert draft.tokens == (10, 12, 11, 20, 12, 13, 14)
    assert draft.parents == (-1, -1, 0, 1, 2, 4, 5)
    assert draft.sources == (None, None, None, None, 2, 3, 4)


def test_a_draft_that_says_what_it_was_drawn_from_says_so_of_copies() -> None:
    guesser = LengthenedDraft(DraftModel(HistoryModel(30, 1, spread=5.0), HOT, 30))

    draft = guesser.propose(TWICE, 63, rule_named("rejection", 1))

    assert draft.q is not None
    assert len(draft.tokens) == len(draft.q) == 5
    assert [len(q.ids) for q in draft.q] == [30, 30, 1, 1, 1]
    assert [q.prob(token) for q, token in zip(draft.q[2:], draft.tokens[2:], strict=True)] == [1.0] * 3


@pytest.mark.parametrize(
    ("draft", "keep_on", "k"),
    [
        (chain(7, 14), None, 63),  # nobody says what a row costs
        (chain(7, 14), AlwaysWidens(), 63),
        (chain(7, 14), AlwaysLengthens(), 2),
        (Draft("draft"), AlwaysLengthens(), 63),
        (Draft("draft", (7, 14)), AlwaysLengthens(), 63),  # nobody says what it is worth
        (chain(7, 99), AlwaysLengthens(), 63),  # nothing like it was there
    ],
)
def test_a_draft_stays_as_it_is_where_nothing_can_be_priced_or_copied(
    draft: Draft, keep_on: KeepOn | None, k: int
) -> None:
    found = Extending(Drafts(draft), PromptLookup()).propose(COPIES, k, RULE, keep_on)

    assert (found.tokens, found.chances, found.sources) == (draft.tokens, draft.chances, None)


def test_a_target_for_chains_gets_the_copy_too_and_no_branches() -> None:
    guesser = Extending(DraftModel(HistoryModel(30, 1, spread=5.0), GREEDY, 30), PromptLookup())

    draft = Chains(guesser).propose(TWICE, 63, RULE, AlwaysLengthens(candidates=2))

    assert draft.parents is None
    assert len(draft.tokens) == 5


def test_what_the_guesser_learns_from_reaches_it_and_what_it_lacks_is_not_asked() -> None:
    drafter = Drafts(Draft("draft"))
    checked = Checked(Draft("draft"), np.zeros((1, 3), dtype=np.float32), (), (1,))
    for guesser in (Extending(drafter, PromptLookup()), LengthenedDraft(DraftModel(HistoryModel(30, 1), GREEDY, 30))):
        guesser.read_along(COPIES, 3)
        guesser.watch(COPIES, checked)

    assert drafter.seen == [3, checked]
    assert Extending(drafter, PromptLookup()).candidates(COPIES, 3) == ()


# -- Its price -----------------------------------------------------------------------------------------------


def stopping(cost: CostTable) -> Stopping:
    keep_on = Stopping(LivePrices(cost), 0.0, 0.7)
    assert isinstance(keep_on, Lengthens)
    keep_on.rows([0.9])
    return keep_on


def test_copies_are_taken_as_far_as_each_pays_for_its_row_at_todays_prices() -> None:
    flat, steep = CostTable({1: 1.0, 64: 1.0}), CostTable({1: 1.0, 64: 64.0})

    assert stopping(flat).lengthen([0.5, 0.4, 0.01], 1) == 3
    assert stopping(steep).lengthen([0.9, 0.8, 0.8], 1) == 0


def test_a_stair_of_the_prices_is_climbed_for_a_flat_that_is_long_enough() -> None:
    stairs = CostTable({1: 1.0, 2: 1.0, 3: 1.5, 64: 1.5})

    assert stopping(stairs).lengthen([0.5], 1) == 0
    assert stopping(stairs).lengthen([0.5, 0.45, 0.4], 1) == 3


def test_the_controller_counts_what_was_drafted_and_no_copies() -> None:
    def alpha(accepted: int, copies: Sequence[float]) -> tuple[float, float]:
        controller = Adaptive(GPU, 0.001)
        plan = controller.plan(Context([1, 2, 3]), {"draft": Drafts(chain(7, 8))}, 63)
        assert isinstance(plan.keep_on, Stopping)
        plan.keep_on.rows([0.9])
        plan.keep_on.behind([0.9], 1.0)
        plan.keep_on.rows([0.8])
        n = plan.keep_on.lengthen(copies, 2) if copies else 0
        assert n == len(copies)
        step = Step("draft", 2 + n, min(accepted + 1, 2 + n), accepted, (0,) * (accepted + 1), 3, 0.002, 0.01, 0.0)
        controller.record(step)
        drafter = controller._drafters["draft"]
        return drafter.alpha, drafter.token_s

    assert alpha(0, [0.7, 0.6]) == alpha(0, [])
    assert alpha(2, [0.7, 0.6]) == alpha(4, [0.7, 0.6]) == alpha(2, [])


# -- The text, and what it is worth --------------------------------------------------------------------------


def test_the_record_of_a_step_tells_copies_from_drafted_tokens() -> None:
    rng = np.random.default_rng(5)
    text, inside = a_text(rng, 25, 200, 200, 300)
    steps = written(text, 200, 300, doubts(rng, inside, 0.8, 0.9), Adaptive(GPU, 0.0005), GPU, 0.05, Extending).steps

    found = [(step, i) for step in steps if step.guesser == "draft" for i in range(step.accepted)]
    copies = [(step, i, source) for step, i in found if (source := step.source_of(i)) is not None]

    assert 0 < len(copies) < len(found)
    assert all(text[step.context + i] == step.tokens[i] == text[source] for step, i, source in copies)
    assert all(step.source_of(0) is None for step, _ in found)


@pytest.mark.slow
@pytest.mark.parametrize(("cost", "least"), [(GPU, 1.005), (CPU, 0.999)], ids=["gpu", "cpu"])
def test_going_on_with_copies_gains_a_little_where_rows_are_cheap_and_loses_nothing_where_they_are_dear(
    cost: CostTable, least: float
) -> None:
    """Mean over worlds, in which whether a copy is offered moves the speed of one by up to 3 per cent either way."""
    ratios = []
    for copied in (8, 25):
        for i, (share, alpha, copying) in enumerate(
            [(0.05, 0.6, 0.6), (0.05, 0.8, 0.95), (0.2, 0.8, 0.8), (0.2, 0.8, 0.95)]
        ):
            rng = np.random.default_rng(100 * copied + i)
            text, inside = a_text(rng, copied, 300, 500, 400)
            draft = doubts(rng, inside, alpha, copying)
            seconds = [
                written(text, 300, 400, draft, Adaptive(cost, share * cost.forward_s(1)), cost, share, wrap).seconds
                for wrap in (lambda drafter, lookup: drafter, Extending)
            ]
            ratios.append(seconds[0] / seconds[1])

    assert np.mean(ratios) > least


def test_greedy_text_stays_the_targets_with_live_prices() -> None:
    def text(*guessers: Extending) -> list[int]:
        model = HistoryModel(8, 1, spread=3.0)
        controller = Adaptive(GPU, 0.001)
        engine = Engine(model, {guesser.name: guesser for guesser in guessers}, controller, RULE, GREEDY)
        for _ in engine.read(np.arange(8, dtype=np.int32)):
            pass
        for _ in engine.steps(limit=120, ends=EndTokens()):
            pass
        return [int(token) for token in engine.context.tokens]

    drafter = DraftModel(HistoryModel(8, 1, spread=3.0, blur=0.7), GREEDY, 8)

    assert text(Extending(drafter, PromptLookup())) == text()
