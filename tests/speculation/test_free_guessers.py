"""What rows that were computed anyway are good for: recycled followers, and leftovers of rejected guesses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import rule_named
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Checked, Guesser, KeepOn
from speculation.guessers.growing import ROOT, Growing
from speculation.guessers.leftovers import Leftovers
from speculation.guessers.recycling import Recycling
from speculation.sampling import GREEDY, leading, probabilities
from speculation.testing import BushyGuesser, HistoryModel, ScriptedGuesser
from speculation.types import Draft, Row, Step
from tests.speculation.examples import examples

N_VOCAB = 40
RULE = rule_named("coupled", 0)
GPU = CostTable({1: 1.0, 8: 1.1, 64: 2.0})


class Forgetful(HistoryModel):
    """A model whose logits depend on its last token alone, so that what followed it will follow again."""

    def _after(self, key: int, token: int) -> int:
        return super()._after(17, token)


def rows_of(*best: Sequence[int]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A row for each list of tokens, the first of which is the best."""
    rows = np.zeros((len(best), N_VOCAB), dtype=np.float32)
    for row, tokens in zip(rows, best, strict=True):
        for place, token in enumerate(tokens):
            row[token] = 20.0 - 2 * place
    return rows


def write(guessers: dict[str, Guesser], controller: Controller, limit: int = 300) -> list[Step]:
    target = Forgetful(N_VOCAB, 1, spread=1.0)
    engine = Engine(target, guessers, controller, rule_named("coupled", 5), GREEDY)
    engine.sampling = GREEDY
    for _ in engine.read(np.array([1, 2, 3], dtype=np.int32)):
        pass
    return list(engine.steps(limit=limit, ends=EndTokens()))


# -- Recycling -------------------------------------------------------------------------------------------------


def test_followers_of_the_last_two_tokens_come_before_those_of_the_last() -> None:
    recycling = Recycling()
    recycling.watch(Context([1, 2]), Checked(Draft("plain"), rows_of([5, 6]), (), (5,)))
    recycling.watch(Context([9, 2]), Checked(Draft("plain"), rows_of([7, 8]), (), (7,)))

    assert recycling.propose(Context([1, 2]), 1, RULE).tokens == (5,)
    assert recycling.propose(Context([9, 2]), 1, RULE).tokens == (7,)
    assert recycling.propose(Context([4, 2]), 1, RULE).tokens == (7,)  # the latest row behind 2
    assert recycling.propose(Context([4, 4]), 5, RULE).tokens == ()


def test_rows_behind_a_rejected_guess_are_recycled_too() -> None:
    recycling = Recycling()
    draft = Draft("lookup", (10, 11, 12))
    rows = rows_of([20], [21], [22], [23])  # after 2, 10, 11, 12

    recycling.watch(Context([1, 2]), Checked(draft, rows, (), (20,)))

    for last, expected in ((10, 21), (11, 22), (12, 23)):
        assert recycling.propose(Context([30, last]), 1, RULE).tokens == (expected,)
    assert recycling.propose(Context([11, 12]), 1, RULE).tokens == (23,)


def test_rows_of_a_tree_are_kept_under_the_tokens_of_their_branch() -> None:
    recycling = Recycling()
    draft = Draft("bushy", (10, 11, 12), parents=(-1, -1, 1))
    recycling.watch(Context([1, 2]), Checked(draft, rows_of([11], [21], [12], [23]), (1, 2), (11, 12, 23)))

    assert recycling.propose(Context([11, 12]), 1, RULE).tokens == (23,)


def test_recycled_followers_form_a_tree_with_the_likeliest_first() -> None:
    recycling = Recycling()
    for before, last, followers in ((1, 2, [3, 4]), (2, 3, [5]), (2, 4, [6])):
        recycling.watch(Context([before, last]), Checked(Draft("plain"), rows_of(followers), (), (followers[0],)))

    draft = recycling.propose(Context([1, 2]), 12, RULE)

    paths = [tuple(draft.tokens[each] for each in draft.path(node)) for node in range(len(draft.tokens))]
    assert paths[0] == (3,)
    assert {(3,), (4,), (3, 5), (4, 6)} <= set(paths)
    reaches = draft.reaches()
    assert reaches == sorted(reaches, reverse=True)


def test_a_text_that_comes_back_to_its_words_is_guessed_by_recycling_alone() -> None:
    steps = write({"recycling": Recycling()}, Fixed("recycling", 8))

    plain = write({}, Fixed())
    assert [token for step in steps for token in step.tokens] == [token for step in plain for token in step.tokens]
    assert len(steps) < 0.4 * len(plain)


def test_followers_that_never_come_are_no_longer_offered_at_a_price() -> None:
    class Liar(Recycling):
        """Keeps the worst tokens of each row."""

        def watch(self, context: Context, checked: Checked) -> None:
            super().watch(context, Checked(checked.draft, -checked.rows, checked.path, checked.emitted))

    steps = write({"recycling": Liar()}, Adaptive(GPU), limit=600)

    assert sum(step.drafted > 0 for step in steps[-100:]) <= 5


def test_what_is_remembered_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speculation.guessers.recycling._MOST_KEYS", 6)
    recycling = Recycling()
    for token in range(30):
        recycling.watch(Context([token]), Checked(Draft("plain"), rows_of([token + 1]), (), (token + 1,)))

    assert recycling.propose(Context([29]), 1, RULE).tokens == (30,)
    assert recycling.propose(Context([3]), 1, RULE).tokens == ()
    assert len(recycling._known) == 6


# -- Leftovers -------------------------------------------------------------------------------------------------


def test_leftovers_are_the_best_tokens_of_the_rows_behind_the_first_rejection() -> None:
    leftovers, context = Leftovers(), Context([1, 2])
    draft = Draft("lookup", (10, 11, 12, 13))  # 10 is accepted, 11 is not: 30 comes in its place
    rows = rows_of([10], [30], [21], [22], [23])

    leftovers.watch(context, Checked(draft, rows, (0,), (10, 30)))

    context.extend([10, 30])
    assert leftovers.propose(context, 8, RULE).tokens == (21, 22, 23)
    assert leftovers.propose(context, 2, RULE).tokens == (21, 22)
    context.extend([21])
    assert leftovers.propose(context, 8, RULE).tokens == ()


def test_a_draft_that_was_accepted_leaves_nothing_over() -> None:
    leftovers, context = Leftovers(), Context([1, 2])

    leftovers.watch(context, Checked(Draft("lookup", (10,)), rows_of([10], [30]), (0,), (10, 30)))

    context.extend([10, 30])
    assert leftovers.candidates(context, 8) == ()


def test_leftovers_learn_what_they_are_worth_used_or_not() -> None:
    def chance(*, right: bool) -> float:
        leftovers, context = Leftovers(), Context([1, 2])
        for _ in range(30):
            context = Context([1, 2])
            leftovers.watch(context, Checked(Draft("lookup", (10, 11)), rows_of([30], [21], [22]), (), (30,)))
            context.extend([30])
            leftovers.watch(context, Checked(Draft("plain"), rows_of([5]), (), (21 if right else 5,)))
        leftovers.watch(Context([1, 2]), Checked(Draft("lookup", (10, 11)), rows_of([30], [21], [22]), (), (30,)))
        return leftovers.propose(context, 8, RULE).chances[0]

    assert chance(right=True) > 0.8
    assert chance(right=False) < 0.2


def test_after_a_token_that_was_replaced_the_rest_is_guessed_from_what_is_left_over() -> None:
    text = [token for step in write({}, Fixed()) for token in step.tokens]
    wrong = [token if i % 7 else (token + 1) % N_VOCAB for i, token in enumerate(text)]

    class Alternates:
        """The scripted draft, and whenever there is one, what it left over."""

        def plan(self, context: Context, guessers: dict[str, Guesser], room: int) -> object:
            left = guessers["leftovers"].candidates(context, room)
            return Fixed("leftovers" if left else "scripted", 5).plan(context, guessers, room)

        def record(self, step: Step) -> None: ...

    guessers: dict[str, Guesser] = {"scripted": ScriptedGuesser([1, 2, 3, *wrong]), "leftovers": Leftovers()}
    steps = write(guessers, Alternates())  # type: ignore[arg-type]

    assert [token for step in steps for token in step.tokens] == text
    mine = [step for step in steps if step.guesser == "leftovers"]
    assert len(mine) > 5
    assert sum(step.accepted for step in mine) > 0


# -- The parts -------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 5), st.floats(0.0, 1.0)), min_size=1, max_size=31),
    st.integers(1, 31),
)
@examples(200)
def test_the_most_promising_part_of_a_tree_is_a_tree_by_falling_reach(
    raw: list[tuple[int, int, float]], k: int
) -> None:
    tree = Growing()
    for parent, token, chance in raw:
        tree.add(min(parent, len(tree) - 1), token, chance)

    draft = tree.draft("t", k)

    reaches = draft.reaches()
    assert reaches == sorted(reaches, reverse=True)
    assert len(draft.tokens) == min(k, len(tree))
    for behind in draft.children():
        assert len({draft.tokens[node] for node in behind}) == len(behind)
        assert sum(draft.chances[node] for node in behind) <= 1.0 + 1e-9
    everything = sorted((tree.reach(node) for node in range(len(tree))), reverse=True)
    assert sum(reaches) == pytest.approx(sum(everything[: len(reaches)]))
    assert tree.left(ROOT) >= -1e-9


@given(st.lists(st.floats(-20, 20, width=32), min_size=2, max_size=300), st.integers(1, 12))
def test_the_leading_tokens_are_the_most_probable_and_their_shares_add_up(logits: list[float], count: int) -> None:
    row: Row = np.array(logits, dtype=np.float32)

    ids, shares = leading(row, count)

    assert len(ids) == min(count, len(logits))
    assert sorted(row[ids], reverse=True) == sorted(logits, reverse=True)[: len(ids)]
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= probabilities(row, ids) - 1e-6).all()


def test_a_guesser_that_watches_is_shown_every_step_before_the_context_grows() -> None:
    class Notes(BushyGuesser):
        def __init__(self) -> None:
            super().__init__(N_VOCAB)
            self.seen: list[tuple[int, tuple[int, ...]]] = []

        def watch(self, context: Context, checked: Checked) -> None:
            assert len(checked.rows) == len(checked.draft.tokens) + 1
            assert [checked.draft.tokens[node] for node in checked.path] == list(checked.emitted[:-1])
            self.seen.append((len(context), checked.emitted))

        def propose(self, context: Context, k: int, rule: object, keep_on: KeepOn | None = None) -> Draft:
            return super().propose(context, k, rule, keep_on)  # type: ignore[arg-type]

    notes = Notes()
    steps = write({"bushy": notes}, Fixed("bushy", 20), limit=100)

    assert notes.seen[:-1] == [(step.context, step.tokens) for step in steps[:-1]]
    assert len(notes.seen) == len(steps)
