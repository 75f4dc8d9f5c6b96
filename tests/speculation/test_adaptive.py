"""The chooser: literal contexts and steps in, plans out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import Rule, rule_named
from speculation.context import Context
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Plan
from speculation.controllers.stopping import Stopping
from speculation.cost import CostTable, LivePrices
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Guesser, KeepOn
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.growing import ROOT, Growing
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.sampling import GREEDY, SamplingConfig
from speculation.testing import HistoryModel
from speculation.types import PLAIN, Draft, Step
from tests.speculation.examples import examples

CPU = CostTable({1: 0.0312, 2: 0.0591, 4: 0.1025, 8: 0.2239, 12: 0.2779, 16: 0.2786, 32: 0.4551, 64: 0.7512})
GPU = CostTable({1: 0.01, 2: 0.0104, 4: 0.0108, 8: 0.012, 9: 0.014, 16: 0.015, 32: 0.019, 64: 0.028})
HOT = SamplingConfig(temperature=0.9, top_k=0, top_p=1.0, min_p=0.0)


class Offers:
    """A guesser that offers tokens at given chances."""

    name = "lookup"

    def __init__(self, chances: Sequence[float]) -> None:
        self.chances = tuple(chances)

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        chances = self.chances[:k]
        return (Draft(self.name, (7,) * len(chances), source=3, match=5, chances=chances),) if chances else ()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return Draft(self.name, (7,) * min(k, len(self.chances)))


class Drafts(Offers):
    """A guesser that has its price, like a draft model."""

    name = "draft"

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return ()


NOTHING, SOME, SURE = Offers([]), Offers([0.3] * 20), Offers([0.99] * 63)


def plan(controller: Adaptive, offers: Offers, *, draft: bool = False, room: int = 63) -> Plan:
    guessers = {offers.name: offers, **({"draft": Drafts([0.5] * 16)} if draft else {})}
    return controller.plan(Context([1, 2, 3]), guessers, room)


def step(k: int, accepted: int, table: CostTable, *, slower: float = 1.0, guesser: str = "lookup") -> Step:
    draft_s = 0.003 if guesser == "draft" else 0.0  # nobody is asked here whether to go on behind the first token
    seconds = table.forward_s(k + 1) * slower
    tokens = (0,) * (accepted + 1)
    guesser = guesser if k else PLAIN
    return Step(guesser, k, min(accepted + 1, k), accepted, tokens, 100, draft_s, seconds, 0.0)


def test_open_text_goes_to_a_good_draft_model_on_a_gpu_and_to_nobody_on_a_cpu() -> None:
    assert plan(Adaptive(GPU, 0.002), NOTHING, draft=True).guesser == "draft"
    assert plan(Adaptive(GPU, 0.002), SOME, draft=True).guesser == "draft"
    assert plan(Adaptive(CPU, 0.0187), NOTHING, draft=True).guesser == PLAIN


def test_a_guesser_that_was_seen_to_be_poor_elsewhere_is_not_tried_where_that_loses() -> None:
    prices = CostTable({1: 1.0, 2: 1.4, 3: 1.8, 4: 2.2})

    assert plan(Adaptive(prices, 0.05), NOTHING, draft=True).guesser == "draft"
    assert plan(Adaptive(prices, 0.05, alphas={"draft": 0.7}), NOTHING, draft=True).guesser == "draft"
    assert plan(Adaptive(prices, 0.05, alphas={"draft": 0.3}), NOTHING, draft=True).guesser == PLAIN


def test_copies_go_to_lookup_on_both() -> None:
    for table, draft_s in ((GPU, 0.002), (CPU, 0.0187)):
        planned = plan(Adaptive(table, draft_s), SURE, draft=True)

        assert planned.guesser == "lookup"
        assert planned.k > 30
        assert planned.draft is not None


def test_a_draft_model_that_is_no_good_is_dropped_and_tried_again_much_later() -> None:
    controller = Adaptive(GPU, 0.003)
    tried = []

    for i in range(400):
        planned = plan(controller, NOTHING, draft=True)
        if planned.k:
            tried.append(i)
        controller.record(step(planned.k, 0, GPU, guesser="draft"))

    assert tried[0] == 0
    assert len(tried) < 60
    assert max(tried) > 100


def test_without_a_price_a_draft_model_is_not_tried() -> None:
    assert plan(Adaptive(GPU), NOTHING, draft=True).guesser == PLAIN


def test_a_draft_model_that_has_nothing_to_say_leaves_the_step_to_copies() -> None:
    controller = Adaptive(GPU, 0.002)
    asked = []
    for i in range(300):  # as where the context is longer than it can read
        planned = plan(controller, SOME, draft=True)
        if planned.guesser == "draft":
            asked.append(i)
            controller.record(step(0, 0, GPU))
        else:
            assert planned.guesser == "lookup"
            controller.record(step(planned.k, 1, GPU))

    assert asked[:2] == [0, 1]  # a head has nothing to go by right after a prompt, and guesses from the next step on
    assert len(asked) < 20
    assert max(asked) > 200


def test_a_draft_model_that_speaks_again_is_asked_as_often_as_ever() -> None:
    controller = Adaptive(GPU, 0.002)
    for _ in range(3):
        assert plan(controller, NOTHING, draft=True).guesser == "draft"
        controller.record(step(0, 0, GPU))
        controller.record(step(0, 0, GPU))
        controller.record(step(0, 0, GPU))
        controller.record(step(0, 0, GPU))

    for _ in range(10):
        planned = plan(controller, NOTHING, draft=True)
        assert planned.guesser == "draft"
        controller.record(step(planned.k, planned.k, GPU, guesser="draft"))


def test_lengths_stop_on_the_flats_of_the_staircase() -> None:
    assert plan(Adaptive(CPU), Offers([0.95] * 20)).k == 15


def test_the_room_is_kept() -> None:
    assert plan(Adaptive(GPU, 0.002), SURE, draft=True, room=5).k == 5
    assert plan(Adaptive(GPU, 0.002), SURE, draft=True, room=0).k == 0


def test_a_plan_shows_what_it_was_chosen_from() -> None:
    planned = plan(Adaptive(GPU, 0.002), SOME, draft=True)

    assert [priced.guesser for priced in planned.considered] == [PLAIN, "lookup", "draft"]
    assert planned.considered[0].tokens_per_s == pytest.approx(100.0)
    assert max(priced.tokens_per_s for priced in planned.considered) == planned.considered[2].tokens_per_s
    assert planned.reason.startswith("the draft model: ")


def test_prices_that_change_under_its_feet_are_learned_within_thirty_steps() -> None:
    offers = Offers([0.9] * 20)
    controller = Adaptive(GPU)
    assert plan(controller, offers).k > 8

    # Checks become dear (a deeper context on a throttled machine); plain decoding does not.
    for _ in range(30):
        k = plan(controller, offers).k
        controller.record(step(k, min(k, 6), GPU, slower=1.0 if k == 0 else 12.0))

    assert plan(controller, offers).k == 0


@pytest.mark.parametrize("slower", [0.5, 2.0])
def test_a_machine_that_is_slower_throughout_chooses_as_before(slower: float) -> None:
    controller = Adaptive(CPU)
    before = plan(controller, SURE)

    for _ in range(15):
        controller.record(step(63, 63, CPU, slower=slower))
        controller.record(step(0, 0, CPU, slower=slower))

    assert plan(controller, SURE).k == before.k
    assert plan(controller, SURE).considered[0].seconds == pytest.approx(slower * CPU.forward_s(1))


def test_one_step_that_takes_a_hundred_times_longer_changes_nothing() -> None:
    controller = Adaptive(CPU)
    for _ in range(5):
        controller.record(step(0, 0, CPU))
        controller.record(step(63, 63, CPU))
    before = plan(controller, SURE)

    controller.record(step(63, 63, CPU, slower=100.0))
    controller.record(step(0, 0, CPU, slower=100.0))

    after = plan(controller, SURE)
    assert (after.k, after.considered) == (before.k, before.considered)


def test_losing_pauses_within_twenty_steps_and_retries_back_off() -> None:
    controller = Adaptive(CPU)
    guessed = []
    for i in range(1500):
        planned = plan(controller, SURE)  # promises much
        if planned.k:
            guessed.append(i)
        controller.record(step(planned.k, 3, CPU) if planned.k else step(0, 0, CPU))

    pauses = [b - a - 1 for a, b in pairwise(guessed) if b - a > 1]
    assert guessed[0] == 0
    assert guessed.index(next(a for a, b in pairwise(guessed) if b - a > 1)) < 20
    assert pauses[:4] == [32, 64, 128, 256]


def test_a_pause_says_so_and_ends_when_guessing_wins_again() -> None:
    controller = Adaptive(CPU)
    while not plan(controller, SURE).reason.startswith("paused"):
        controller.record(step(63, 3, CPU))
    assert plan(controller, SURE).reason == "paused: 0.17x"

    for _ in range(32):
        controller.record(step(0, 0, CPU))
    for _ in range(10):
        assert plan(controller, SURE).k > 0
        controller.record(step(63, 63, CPU))
    while plan(controller, SURE).k:
        controller.record(step(63, 0, CPU))
    rest = 0
    while plan(controller, SURE).k == 0:
        controller.record(step(0, 0, CPU))
        rest += 1

    assert rest == 32


def test_a_few_unlucky_guesses_that_cost_little_are_no_reason_to_pause() -> None:
    controller = Adaptive(GPU)

    for _ in range(12):
        controller.record(step(1, 0, GPU))

    assert plan(controller, SOME).k > 0


N_VOCAB = 4
prompts = st.lists(st.integers(0, N_VOCAB - 1), min_size=1, max_size=30)


def engine(rule: Rule, sampling: SamplingConfig, *, adaptive: bool) -> Engine:
    target = HistoryModel(N_VOCAB, 1, spread=6.0)
    draft = DraftModel(HistoryModel(N_VOCAB, 1, spread=6.0, blur=0.5), sampling, N_VOCAB)
    lookup = PromptLookup()
    guessers: dict[str, Guesser] = {lookup.name: lookup, draft.name: draft}
    controller = Adaptive(GPU, 0.001) if adaptive else Adaptive(CostTable({1: 1.0, 2: 1000.0}))
    return Engine(target, guessers, controller, rule, sampling)


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
@given(prompt=prompts, seed=st.integers(0, 2**32))
@examples(40)
def test_the_text_is_the_plain_one_whatever_it_chooses(sampling: SamplingConfig, prompt: list[int], seed: int) -> None:
    texts, guessers = [], set()
    for adaptive in (False, True):
        loop = engine(rule_named("coupled", seed), sampling, adaptive=adaptive)
        for _ in loop.read(np.array(prompt, dtype=np.int32)):
            pass
        steps = list(loop.steps(limit=60, ends=EndTokens()))
        texts.append(loop.context.tokens.tolist())
        guessers |= {step.guesser for step in steps}

    assert texts[0] == texts[1]
    assert len(guessers) > 1


@pytest.mark.bench
def test_bench_choosing_at_eight_thousand_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    passage = rng.integers(0, 3000, 2000)
    context = Context(np.concatenate([passage, rng.integers(0, 3000, 6000)]).tolist())
    context.given = len(context)
    lookup, controller = PromptLookup(), Adaptive(CPU, 0.0187)
    lookup.candidates(context, 1)  # reading the prompt is not part of a step
    taken = []

    for i in range(0, 1200, 6):  # a copy with a changed token in every forty
        started = perf_counter()
        planned = controller.plan(context, {"lookup": lookup}, 63)
        taken.append(perf_counter() - started)
        tokens = passage[i : i + 6].copy()
        tokens[0] = tokens[0] if i % 42 else 5
        context.extend(tokens.astype(np.int32))
        controller.record(step(planned.k, 0, CPU))

    with capsys.disabled():
        print(f"choosing takes {1e3 * float(np.median(taken)):.3f} ms a step (aim 0.3)")


def test_spare_rows_of_a_stair_go_to_branches_and_dear_ones_to_nobody() -> None:
    tree = Growing()
    node = ROOT
    for _ in range(12):  # on this CPU 16 rows cost what 12 do
        tree.add(node, 8, 0.009)
        node = tree.add(node, 7, 0.99)
    bushy = tree.draft("lookup", 24, match=5)

    class Bushy(Offers):
        def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
            return (bushy,)

    planned = plan(Adaptive(CPU), Bushy([]))

    assert planned.draft is not None
    assert planned.k == 15
    assert planned.draft.cut(planned.k).parents is not None


def test_a_second_candidate_is_worth_a_spare_row_and_not_a_new_stair() -> None:
    prices = LivePrices(CostTable({1: 1.0, 2: 1.8, 3: 1.8, 4: 1.8, 5: 3.0, 8: 3.2}))
    stopping = Stopping(prices, token_s=10.0, alpha=0.7)

    assert stopping.rows([0.8, 0.05, 0.04, 0.03]) == 3  # which make four rows with the pending token's
    assert stopping.rows([0.3, 0.2]) == 0
    assert Stopping(prices, 10.0, 0.7).rows([0.9, 0.8, 0.7, 0.6, 0.5, 0.4]) == 6
