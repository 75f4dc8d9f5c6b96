"""Drafts that grow depth by depth: a small one by hand, what prices make of them, and what is learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.context import Context
from speculation.controllers.stopping import Stopping
from speculation.cost import CostTable, LivePrices
from speculation.guessers.base import Chains, KeepOn
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.drafting import Drafting
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import AlwaysWidens, HistoryModel
from speculation.types import Draft, Logits, Row, Tokens
from tests.speculation.examples import examples

RULE = rule_named("coupled", 0)
HOT = SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
FLAT = CostTable({1: 1.0, 64: 1.05})
STEEP = CostTable({1: 1.0, 2: 1.2, 3: 2.1, 64: 60.0})
INFINITE = CostTable({1: 1.0, 2: 1e9, 64: 1e12})
N_VOCAB = 30


def row(*probabilities: float) -> Row:
    logits: Row = np.log(np.array(probabilities)).astype(np.float32)
    return logits


class AtLeast:
    """Rows are worth it for this chance, guessing on for that one."""

    def __init__(self, for_a_row: float, to_go_on: float) -> None:
        self._for_a_row, self._to_go_on = for_a_row, to_go_on

    def rows(self, reaches: Sequence[float]) -> int:
        return sum(reach >= self._for_a_row for reach in reaches)

    def behind(self, reaches: Sequence[float], beside: float) -> int:
        return sum(reach >= self._to_go_on for reach in reaches)


def test_a_small_tree_by_hand() -> None:
    asked = []

    def behind(at: Sequence[int], tokens: Sequence[int]) -> Logits | None:
        asked.append((list(at), list(tokens)))
        if len(asked) == 2:
            return None
        return np.stack([row(0.15, 0.8, 0.05), row(0.5, 0.1, 0.4)])

    draft = Drafting("x", GREEDY).grow(Context([9]), 8, RULE, AtLeast(0.1, 0.2), row(0.6, 0.3, 0.1), behind)

    # A best token is believed 0.05 + 0.9 p, a second one 0.02 + 0.7 p, a third one 0.01 + 0.6 p.
    assert draft.tokens == (0, 1, 1, 0)
    assert draft.parents == (-1, 0, -1, 2)
    assert draft.chances == pytest.approx((0.59, 0.77, 0.23, 0.5))
    assert draft.reaches() == pytest.approx([0.59, 0.4543, 0.23, 0.115])  # the next one would be 0.07
    assert asked == [([0, 0], [0, 1]), ([0], [1])]


def test_one_row_for_all_nodes_of_a_depth_is_what_follows_each() -> None:
    rows = iter([row(0.1, 0.6, 0.3), row(0.9, 0.05, 0.05)])

    def behind(at: Sequence[int], tokens: Sequence[int]) -> Logits | None:
        following = next(rows, None)
        return None if following is None else following[np.newaxis]

    draft = Drafting("x", GREEDY).grow(Context([9]), 63, RULE, AlwaysWidens(4, 3), row(0.2, 0.5, 0.3), behind)

    below = {node: [draft.tokens[child] for child in draft.children()[node + 1]] for node in range(-1, 11)}
    assert below[-1] == [1, 2, 0]
    assert all(tokens in ([], [1], [1, 2], [0], [0, 1]) for node, tokens in below.items() if node >= 0)
    assert len(draft.tokens) == 3 + 4 + 4


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
@pytest.mark.parametrize("rule", ["coupled", "rejection", "typical"])
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 63),
    widths=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), min_size=1, max_size=12),
)
@examples(60)
def test_a_draft_is_a_tree_of_at_most_k_nodes_the_likeliest_first(
    rule: str, sampling: SamplingConfig, seed: int, k: int, widths: list[tuple[int, int]]
) -> None:
    class Any:
        depth = -1

        def rows(self, reaches: Sequence[float]) -> int:
            self.depth += 1
            return min(len(reaches), widths[self.depth % len(widths)][0])

        def behind(self, reaches: Sequence[float], beside: float) -> int:
            return min(len(reaches), widths[self.depth % len(widths)][1])

    draft = wide(HistoryModel(N_VOCAB, seed), Any(), k, rule, sampling)

    assert len(draft.tokens) <= k
    assert (draft.q is None) == (rule != "rejection" or not draft.tokens)
    assert draft.q is None or len(draft.q) == len(draft.tokens)
    assert all(draft.parent(node) < node for node in range(len(draft.tokens)))
    assert draft.reaches() == sorted(draft.reaches(), reverse=True)
    for below in draft.children():
        siblings = [draft.tokens[node] for node in below]
        assert len(set(siblings)) == len(siblings)
        assert sum(draft.chances[node] for node in below) <= 1.0 + 1e-9


def wide(
    model: HistoryModel,
    keep_on: KeepOn | None,
    k: int = 63,
    rule: str = "coupled",
    sampling: SamplingConfig = GREEDY,
    drafting: Drafting | None = None,
    text: Sequence[int] = (1, 2, 3),
) -> Draft:
    """A draft whose rows are a model's."""
    level = [list(text)]

    def behind(at: Sequence[int], tokens: Sequence[int]) -> Logits:
        level[:] = [[*level[i], token] for i, token in zip(at, tokens, strict=True)]
        return np.stack([model.row_after(each) for each in level])

    drafting = drafting or Drafting("x", sampling)
    return drafting.grow(Context(text), k, rule_named(rule, 1), keep_on, model.row_after(text), behind, beside=0.1)


# -- Prices ----------------------------------------------------------------------------------------------------


def priced(cost: CostTable, token_s: float = 0.001, alpha: float = 0.6) -> Stopping:
    return Stopping(LivePrices(cost), token_s, alpha)


def test_flat_prices_make_wide_trees_steep_ones_chains_and_dear_rows_one_token() -> None:
    model = HistoryModel(N_VOCAB, 3, spread=3.0)

    bushy, chain, single = wide(model, priced(FLAT)), wide(model, priced(STEEP)), wide(model, priced(INFINITE))

    assert len(bushy.tokens) > 20
    assert bushy.parents is not None
    firsts = {below[0] for below in bushy.children() if below}
    assert any(bushy.children()[node + 1] for node in range(len(bushy.tokens)) if node not in firsts)
    assert chain.parents is None
    assert len(single.tokens) == 1


def test_where_drafting_is_dear_and_rows_are_not_nothing_is_drafted_behind_the_unlikely() -> None:
    model = HistoryModel(N_VOCAB, 3, spread=3.0)

    cheap, dear = wide(model, priced(FLAT)), wide(model, priced(FLAT, token_s=5.0))

    assert len(dear.tokens) < len(cheap.tokens)
    assert set(dear.parents or ()) == {-1}
    assert len(dear.tokens) > 1


def test_without_prices_and_for_a_rule_of_chains_it_is_a_chain() -> None:
    draft_model = DraftModel(HistoryModel(N_VOCAB, 3), GREEDY, N_VOCAB)

    narrow = Chains(draft_model).propose(Context([1, 2, 3]), 9, rule_named("block", 0), AlwaysWidens(5, 5))

    assert (narrow.parents, len(narrow.tokens)) == (None, 9)
    assert wide(HistoryModel(N_VOCAB, 3), None, 9).tokens == narrow.tokens


def test_a_draft_model_offers_any_number_of_candidates_beside_its_trunk() -> None:
    model = HistoryModel(N_VOCAB, 3)

    draft = DraftModel(model, GREEDY, N_VOCAB).propose(Context([1, 2, 3]), 12, RULE, AlwaysWidens(4, 9))

    trunk = draft.trunk().tokens
    assert len(trunk) == 3
    assert sorted(len(below) for below in draft.children()) == [0] * 10 + [4] * 3
    assert model.evaluated == 3 + 2


# -- Learning --------------------------------------------------------------------------------------------------


def test_over_many_trees_what_each_rank_promises_is_what_comes_of_it() -> None:
    target, writer = HistoryModel(N_VOCAB, 1, spread=3.0), HistoryModel(N_VOCAB, 1, spread=3.0, blur=1.5)
    drafting, text = Drafting("x", GREEDY), [1, 2, 3]
    promised, came = np.zeros(3), np.zeros(3)
    for i in range(900):
        drafting.learn(np.array(text, dtype=np.int32))
        draft = wide(writer, AlwaysWidens(5, 2), 10, drafting=drafting, text=text)
        best = int(np.argmax(target.row_after(text)))
        if i >= 300:
            for rank, node in enumerate(draft.children()[0]):
                promised[min(rank, 2)] += draft.chances[node]
                came[min(rank, 2)] += draft.tokens[node] == best
        text.append(best)

    assert came.min() > 20
    assert promised == pytest.approx(came, rel=0.25)


class Unread:
    """A long text of which only single tokens may be looked at."""

    def __len__(self) -> int:
        return 9000

    def __getitem__(self, at: int) -> int:
        assert isinstance(at, int), f"tokens {at} were looked at"
        return 0


def test_learning_looks_at_no_more_of_a_long_text_than_was_drafted() -> None:
    drafting = Drafting("x", GREEDY)
    text = cast(Tokens, Unread())

    drafting.learn(text)  # of no draft
    drafting.grow(Context([9]), 1, RULE, None, row(0.7, 0.2, 0.1), lambda at, tokens: None)
    before = drafting.confidence.chance(0.7)
    drafting.learn(text)

    assert drafting.confidence.chance(0.7) > before


def test_a_penalty_that_is_off_looks_back_at_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = SamplingConfig(temperature=0.0, repeat_last_n=-1)
    monkeypatch.setattr("speculation.guessers.drafting.recent", None)

    draft = Drafting("x", sampling).grow(Context([9]), 2, RULE, None, row(0.7, 0.2, 0.1), lambda at, tokens: None)

    assert draft.tokens == (0,)


def test_what_was_written_behind_a_second_candidate_is_learned_from_as_well() -> None:
    drafting = Drafting("x", GREEDY)
    before = drafting.confidence.chance(0.5)
    behind = np.stack([row(0.3, 0.5, 0.2)] * 2)
    for _ in range(40):
        drafting.grow(Context([9]), 9, RULE, AlwaysWidens(6, 2), row(0.7, 0.2, 0.1), lambda at, tokens: behind)

        drafting.learn(np.array([9, 1, 1], dtype=np.int32))  # the second candidate, and what was best behind it

    assert drafting.confidence.chance(0.5) > before + 0.2
    assert drafting.confidence.chance(0.7) < 0.2
