"""Trees of guesses: their shape, one forward for all of them, and the target's law for every rule that judges them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speculation.accept import RULE_NAMES, Coupled, Drawn, Rejection, Rows, Rule, rule_named
from speculation.context import Context
from speculation.controllers.fixed import Fixed
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Chains, Guesser, KeepOn
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.drafting import Drafting, _Look
from speculation.guessers.trained_head import TrainedHead
from speculation.heads.head import Kind
from speculation.sampling import GREEDY, SamplingConfig, distribution
from speculation.testing import BushyGuesser, HistoryModel, LengthenedDraft, WideDraft
from speculation.types import Distribution, Draft, Verdict
from tests.speculation.examples import examples
from tests.speculation.heads.making import WideHead, untrained
from tests.speculation.test_accept import (
    CUT,
    HOT,
    LENGTH,
    N_VOCAB,
    PROMPT,
    RULES,
    RUNS,
    SHARED_ROWS,
    chi_square,
    exact,
    fresh,
    made,
)

TREE_RULES = [name for name in RULES if rule_named(name, 0).judges_trees]

trees = st.lists(st.integers(-1, 62), max_size=63).map(lambda raw: tuple(min(p, i - 1) for i, p in enumerate(raw)))


def drafted(parents: tuple[int, ...]) -> Draft:
    return Draft("test", tuple(range(100, 100 + len(parents))), parents=parents)


# -- Shape ---------------------------------------------------------------------------------------------------


@given(parents=trees, k=st.integers(0, 63))
def test_the_first_nodes_of_a_tree_are_a_tree(parents: tuple[int, ...], k: int) -> None:
    draft = drafted(parents)

    cut = draft.cut(k)

    assert cut.tokens == draft.tokens[:k]
    assert [cut.path(i) for i in range(len(cut.tokens))] == [draft.path(i) for i in range(len(cut.tokens))]


@given(parents=trees)
def test_paths_parents_and_children_agree(parents: tuple[int, ...]) -> None:
    draft = drafted(parents)

    children = draft.children()

    assert sorted(node for behind in children for node in behind) == list(range(len(parents)))
    for at, behind in enumerate(children):
        assert all(draft.parent(node) == at - 1 for node in behind)
        assert all(draft.path(node) == (*draft.path(at - 1), node) for node in behind)


@given(parents=trees)
def test_a_trunk_is_the_chain_of_first_children(parents: tuple[int, ...]) -> None:
    draft = drafted(parents)

    trunk = draft.trunk()

    expected, at = [], -1
    while draft.children()[at + 1]:
        at = draft.children()[at + 1][0]
        expected.append(draft.tokens[at])
    assert list(trunk.tokens) == expected
    assert trunk.parents is None
    assert Chains(BushyGuesser(4)).propose(Context([1]), 20, rule_named("block", 0)).parents is None


@given(parents=trees)
def test_a_tree_without_branches_is_a_chain(parents: tuple[int, ...]) -> None:
    draft = drafted(parents).cut(63)._of(range(len(parents)))

    assert (draft.parents is None) == all(parent == i - 1 for i, parent in enumerate(parents))


def test_what_is_known_of_each_node_stays_with_it() -> None:
    q = tuple(made([1.0, float(i + 1)]) for i in range(4))
    draft = Draft("t", (5, 6, 7, 8), q, 40, 3, (0.5, 0.4, 0.3, 0.2), (-1, -1, 1, 0), (40, 90, 91, 41))

    trunk = draft.trunk()

    assert (trunk.tokens, trunk.chances, trunk.sources) == ((5, 8), (0.5, 0.2), (40, 41))
    assert trunk.q == (q[0], q[3])
    assert draft.source_of((1, 2)) == 90
    assert draft.source_of(()) == 40
    assert draft.sources_of((1, 2)) is None  # one run
    assert draft.sources_of((0, 3)) is None
    assert draft.sources_of(()) is None
    assert replace(draft, sources=(40, 90, 7, 41)).sources_of((1, 2)) == (90, 7)
    assert replace(draft, sources=(None, 90, 7, None)).sources_of((0, 3)) is None
    assert replace(draft, sources=(None, 90, 7, 41)).sources_of((0, 3)) == (None, 41)


@given(parents=trees, seed=st.integers(0, 1000))
@examples(50)
def test_the_fake_gives_the_row_of_every_path(parents: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = [int(token) for token in rng.integers(0, N_VOCAB, len(parents))]
    draft = Draft("t", tuple(tokens), parents=parents)
    model = HistoryModel(N_VOCAB, 1)
    model.forward([0, 1, 2], n_rows=0)

    rows = model.forward_tree(2, tokens, parents)

    for node in range(-1, len(parents)):
        path = [tokens[each] for each in draft.path(node)]
        np.testing.assert_array_equal(rows[node + 1], model.row_after([0, 1, 2, 2, *path]))
    assert model.n_past == 4
    kept = draft.path(len(parents) - 1)
    model.keep(kept)
    after = model.forward([1], n_rows=1)[0]
    np.testing.assert_array_equal(after, model.row_after([0, 1, 2, 2, *(tokens[each] for each in kept), 1]))


# -- The output law ------------------------------------------------------------------------------------------


class SampledTree:
    """Draws a tree from a worse model: so many candidates at each depth, given to each node."""

    name = "sampled"

    def __init__(self, sampling: SamplingConfig, widths: Sequence[int]) -> None:
        self._model = SHARED_ROWS[1]
        self._sampling = sampling
        self._widths = widths

    def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
        return ()

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        text = context.tokens.tolist()
        tokens: list[int] = []
        parents: list[int] = []
        reported: list[Distribution] = []
        level: list[tuple[int, list[int]]] = [(-1, [])]
        for width in self._widths:
            below: list[tuple[int, list[int]]] = []
            for parent, path in level:
                q = distribution(self._model.row_after([*text, *path]), self._sampling)
                for token, report in self.drawn(rule, q, len(text) + len(path), width):
                    below.append((len(tokens), [*path, token]))
                    tokens.append(token)
                    parents.append(parent)
                    if report is not None:
                        reported.append(report)
            level = below
        assert len(tokens) <= k
        return Draft(self.name, tuple(tokens), tuple(reported) or None, parents=tuple(parents))

    def drawn(self, rule: Rule, q: Distribution, position: int, width: int) -> list[Drawn]:
        return rule.draw_several(q, position, width)


class WithReplacement(SampledTree):
    """Every candidate is drawn from the same q, so that one may come twice."""

    def drawn(self, rule: Rule, q: Distribution, position: int, width: int) -> list[Drawn]:
        return [rule.draw(q, position) for _ in range(width)]


@cache
def bushes(length: int, k: int) -> Draft:
    return BushyGuesser(N_VOCAB).propose(Context([0] * length), k, rule_named("coupled", 0))


class Bushes(BushyGuesser):
    """The same trees, made once."""

    def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
        return bushes(len(context), k)


MAKES: dict[str, Callable[[SamplingConfig], Guesser]] = {
    "fixed trees": lambda sampling: Bushes(N_VOCAB),
    "two, two": lambda sampling: SampledTree(sampling, (2, 2)),
    "three, two, two": lambda sampling: SampledTree(sampling, (3, 2, 2)),
    "draft model": lambda sampling: WideDraft(fresh(SHARED_ROWS[1]), sampling, N_VOCAB),
    "lengthened draft": lambda sampling: LengthenedDraft(DraftModel(fresh(SHARED_ROWS[1]), sampling, N_VOCAB), 2),
    "with replacement": lambda sampling: WithReplacement(sampling, (2, 3)),
    "eagle": lambda sampling: WideHead(untrained(Kind.EAGLE, N_VOCAB), fresh(SHARED_ROWS[0]), sampling),
    "medusa": lambda sampling: WideHead(untrained(Kind.MEDUSA, N_VOCAB), fresh(SHARED_ROWS[0]), sampling),
}


def sample(
    make: Callable[[SamplingConfig], Guesser], rule: Callable[[int], Rule], sampling: SamplingConfig
) -> Counter[tuple[int, ...]]:
    """The first LENGTH tokens of many texts that have room for whole trees."""
    counts: Counter[tuple[int, ...]] = Counter()
    heads = isinstance(make(sampling), TrainedHead)  # whose trees take the time to be grown
    for seed in range(RUNS // 3 if heads else RUNS):
        guesser = make(sampling)
        k = 6 if isinstance(guesser, WideDraft) else 63
        engine = Engine(fresh(SHARED_ROWS[0]), {guesser.name: guesser}, Fixed(guesser.name, k), rule(seed), sampling)
        for _ in engine.read(np.array(PROMPT, dtype=np.int32)):
            pass
        written: list[int] = []
        for step in engine.steps(limit=200, ends=EndTokens()):
            written.extend(step.tokens)
            if len(written) >= LENGTH:
                break
        counts[tuple(written[:LENGTH])] += 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [HOT, CUT], ids=["hot", "cut"])
@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("rule_name", TREE_RULES)
def test_output_follows_the_target(rule_name: str, name: str, sampling: SamplingConfig) -> None:
    counts = sample(MAKES[name], lambda seed: rule_named(rule_name, seed), sampling)

    statistic, critical = chi_square(counts, exact(sampling))

    assert statistic < critical


@pytest.mark.slow
def test_block_gets_trunks_and_follows_the_target_too() -> None:
    counts = sample(MAKES["fixed trees"], lambda seed: rule_named("block", seed), HOT)

    statistic, critical = chi_square(counts, exact(HOT))

    assert statistic < critical


class ClaimsTheWholeQ(SampledTree):
    """The planted bug: the second candidate is drawn without the first, and reported as if it had not been."""

    def drawn(self, rule: Rule, q: Distribution, position: int, width: int) -> list[Drawn]:
        return [(token, q) for token, _ in rule.draw_several(q, position, width)]


class DropsDoubles(WithReplacement):
    """The planted bug: a candidate that was drawn twice is proposed once."""

    def drawn(self, rule: Rule, q: Distribution, position: int, width: int) -> list[Drawn]:
        return list({token: (token, report) for token, report in super().drawn(rule, q, position, width)}.values())


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "widths"), [(ClaimsTheWholeQ, (3, 2)), (DropsDoubles, (4,))])
def test_candidates_that_are_not_what_they_claim_are_caught(wrong: type[SampledTree], widths: Sequence[int]) -> None:
    counts = sample(lambda sampling: wrong(sampling, widths), lambda seed: rule_named("rejection", seed), HOT)

    statistic, critical = chi_square(counts, exact(HOT))
    assert statistic > critical


class LooksAtTheDraw(Drafting):
    """The planted bug: of the candidates that were drawn only the best is proposed, with the q it was drawn from."""

    def _drawn(self, rule: Rule, look: _Look, position: int, n: int) -> list[Drawn]:
        drawn = super()._drawn(rule, look, position, n)
        return [each for each in drawn if each[0] == int(look.q.ids[0])] or drawn[:1]


@pytest.mark.slow
def test_a_head_that_looks_at_what_was_drawn_is_caught() -> None:
    def wrong(sampling: SamplingConfig) -> Guesser:
        head = untrained(Kind.EAGLE, N_VOCAB)
        guesser = WideHead(head, fresh(SHARED_ROWS[0]), sampling)
        guesser._drafting = LooksAtTheDraw("eagle", sampling, 0.0, head.ids)
        return guesser

    counts = sample(wrong, lambda seed: rule_named("rejection", seed), HOT)

    statistic, critical = chi_square(counts, exact(HOT))
    assert statistic > critical


class ForgetsTheResidual(Rejection):
    """The planted bug: every candidate is judged against p, whatever was rejected before it."""

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        children, at = draft.children(), -1
        path: list[int] = []
        while True:
            p = rows(at + 1)
            chances = {c: p.prob(draft.tokens[c]) for c in children[at + 1]}
            taken = next((c for c, chance in chances.items() if self._rng.random() < chance), None)
            if taken is None:
                return Verdict(tuple(path), int(self._rng.choice(p.ids, p=p.probs)))
            path.append(taken)
            at = taken


class FollowsTheFirst(Coupled):
    """The planted bug: goes on with the first child, whichever the target picked."""

    def verify(self, rows: Rows, draft: Draft, position: int) -> Verdict:
        first = draft.children()[0]
        found = super().verify(rows, draft, position)
        return Verdict((first[0], *found.path[1:]), found.token) if found.path else found


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [lambda seed: ForgetsTheResidual(np.random.default_rng(seed)), FollowsTheFirst])
def test_rules_that_judge_candidates_wrongly_are_caught(wrong: Callable[[int], Rule]) -> None:
    counts = sample(MAKES["fixed trees"], wrong, HOT)

    statistic, critical = chi_square(counts, exact(HOT))
    assert statistic > critical


# -- What candidates are worth, and what is recorded ---------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rule_name", TREE_RULES)
def test_more_candidates_are_accepted_more_often(rule_name: str) -> None:
    rng = np.random.default_rng(3)
    p = distribution((row := rng.normal(size=30) * 2).astype(np.float32), HOT)
    q = distribution((row + rng.normal(size=30)).astype(np.float32), HOT)
    accepted = []
    for width in (1, 2, 4):
        n = 0
        for seed in range(3000):
            rule = rule_named(rule_name, seed)
            drawn = rule.draw_several(q, 9, width)
            reported = tuple(report for _, report in drawn if report is not None)
            draft = Draft("t", tuple(token for token, _ in drawn), reported or None, parents=(-1,) * len(drawn))
            n += rule.verify(lambda i: p, draft, 9).accepted
        accepted.append(n / 3000)

    assert accepted[0] + 0.05 < accepted[1] < accepted[2] - 0.03  # five standard errors and more


@pytest.mark.parametrize("rule_name", RULE_NAMES)
@given(weights=st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any), n=st.integers(1, 7))
@examples(50)
def test_candidates_for_a_position_differ_and_the_first_is_the_one_drawn_alone(
    rule_name: str, weights: list[int], n: int
) -> None:
    q = made([float(weight) for weight in weights])

    several = [token for token, _ in rule_named(rule_name, 4).draw_several(q, 11, n)]

    assert several[0] == rule_named(rule_name, 4).draw(q, 11)[0]
    assert len(set(several)) == len(several) == (1 if rule_name == "block" else min(n, len(q.ids)))


@pytest.mark.parametrize("rule_name", RULE_NAMES)
@given(weights=st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any), n=st.integers(1, 7))
@examples(50)
def test_what_a_rule_foresees_is_what_it_draws_the_surest_first(rule_name: str, weights: list[int], n: int) -> None:
    q = made([float(weight) for weight in weights])
    rule = rule_named(rule_name, 4)

    foreseen = rule.foreseen(q, 11, n)

    if rule_name in ("rejection", "block") or len(q.ids) == 1:
        assert not foreseen  # or what is withheld would bias the text
        return
    shares = [share for _, share in foreseen]
    assert [token for token, _ in foreseen] == [token for token, _ in rule.draw_several(q, 11, n)]
    assert shares == sorted(shares, reverse=True)
    assert 0.0 < sum(shares) <= 1.0 + 1e-9


def test_what_is_foreseen_tells_more_of_what_holds_than_the_draft_does() -> None:
    rng = np.random.default_rng(7)
    sure, likely = [], []
    for seed in range(2000):
        logits = rng.normal(size=12) * 2
        p = distribution(logits.astype(np.float32), HOT)
        q = distribution((logits + 0.7 * rng.normal(size=12)).astype(np.float32), HOT)
        rule = rule_named("coupled", seed)
        (token, share), *_ = rule.foreseen(q, 3, 1)
        held = token == rule.draw(p, 3)[0]
        sure.append((share, held))
        likely.append((float(q.probs[0]), held))

    assert ranked_apart(sure) > ranked_apart(likely) + 0.05


def ranked_apart(found: list[tuple[float, bool]]) -> float:
    """How often something that held has a higher number than something that did not."""
    held = np.array([number for number, did in found if did])
    failed = np.array([number for number, did in found if not did])
    return float((held[:, None] > failed).mean())


def test_a_step_counts_nodes_positions_and_the_source_of_the_branch_that_won() -> None:
    target = HistoryModel(6, 1)
    prompt = [0, 1, 2]
    best = int(target.row_after(prompt).argmax())
    after = int(target.row_after([*prompt, best]).argmax())
    others = [token for token in range(6) if token not in (best, after)]

    class Forks:
        name = "forks"

        def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
            return ()

        def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
            tokens = (others[0], best, others[1], others[2], others[0])
            return Draft(self.name, tokens, None, 0, 1, parents=(-1, -1, 0, 1, 1), sources=(0, 7, 1, 8, 8))

    engine = Engine(target, {"forks": Forks()}, Fixed("forks", 5), rule_named("coupled", 0), GREEDY)
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass
    target.forwards = 0

    step = next(engine.steps(limit=20, ends=EndTokens()))

    assert step.tokens == (best, after)
    assert (step.drafted, step.examined, step.accepted, step.source) == (5, 2, 1, 7)
    assert step.sources is None
    assert step.p_rejected is not None
    assert step.p_chosen is not None
    assert step.p_rejected < step.p_chosen
    assert target.forwards == 1
    assert target.n_past == len(engine.context) - 1 == 4


def test_a_branch_below_the_first_token_brings_its_own_source() -> None:
    target = HistoryModel(6, 1)
    prompt = [0, 1, 2]
    best = int(target.row_after(prompt).argmax())
    after = int(target.row_after([*prompt, best]).argmax())
    other = next(token for token in range(6) if token != after)

    class Forks:
        name = "forks"

        def candidates(self, context: Context, k: int, least: float = 0.0) -> Sequence[Draft]:
            return ()

        def propose(self, context: Context, k: int, rule: Rule, keep_on: KeepOn | None = None) -> Draft:
            return Draft(self.name, (best, other, after), None, 7, 1, parents=(-1, 0, 0), sources=(7, 8, 1))

    engine = Engine(target, {"forks": Forks()}, Fixed("forks", 3), rule_named("coupled", 0), GREEDY)
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass

    step = next(engine.steps(limit=20, ends=EndTokens()))

    assert (step.tokens[:2], step.accepted, step.source) == ((best, after), 2, 7)
    assert [step.source_of(i) for i in range(2)] == [7, 1]


def test_a_target_that_cannot_hold_branches_gets_chains() -> None:
    target = HistoryModel(6, 1)
    target.can_tree = False  # it raises when it is given a tree
    engine = Engine(target, {"bushy": BushyGuesser(6)}, Fixed("bushy", 20), rule_named("coupled", 0), GREEDY)
    for _ in engine.read(np.array([0, 1, 2], dtype=np.int32)):
        pass

    steps = list(engine.steps(limit=60, ends=EndTokens()))

    assert sum(step.drafted for step in steps) > 40


def test_a_reply_that_is_broken_off_inside_a_tree_leaves_the_cache_as_it_was() -> None:
    class Breaks(EndTokens):
        def feed(self, tokens: object) -> None:
            raise KeyboardInterrupt

    target = HistoryModel(6, 1)
    engine = Engine(target, {"bushy": BushyGuesser(6)}, Fixed("bushy", 20), rule_named("coupled", 0), GREEDY)
    for _ in engine.read(np.array([0, 1, 2], dtype=np.int32)):
        pass

    with pytest.raises(KeyboardInterrupt):
        next(engine.steps(limit=30, ends=Breaks()))

    assert target.n_past == len(engine.context) - 1 == 2
    np.testing.assert_array_equal(target.forward([4], n_rows=1)[0], target.row_after([0, 1, 4]))
