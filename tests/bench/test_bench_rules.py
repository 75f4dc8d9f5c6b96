"""Which rule keeps most of a draft, a chain or a tree: the real pair, texts sampled from the target, the same rows.

Given the text that a rule emitted, the chance that it kept at least i draft tokens is known in closed form: rejection
min(1, q/p) a token, block min(1, running p/q) * q/p a prefix (Sun et al. 2024, their lemma on the acceptance of a
prefix), coupled the chance that the draft picks the same token under noise that made the target pick it. So one sampled
text scores all three, with less noise than runs would have. A pair of candidates adds, for rejection, that the first is
refused and the second, drawn without it, is kept against what is left of p (Miao et al. 2023); for coupled, that the
token is the second best under the same noise. Trees have as many rows as the chain; block judges chains only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import numpy as np
import pytest

from specchat.conversation import Message, Role, prompt_format
from speculation.accept import Coupled
from speculation.llama import LlamaModel
from speculation.sampling import SamplingConfig, distribution
from speculation.types import Distribution
from tests.bench.tasks import TASKS

pytestmark = [pytest.mark.bench, pytest.mark.pair]

K = 4
LENGTH = 120
SEEDS = range(3)
DRAWS = 200


@dataclass(frozen=True, slots=True)
class Emitted:
    """A token of a text and how it might have been guessed."""

    p: float
    q: float
    coupled: tuple[float, float]  # the chance that it is the first candidate, and that it is one of two
    rejection: tuple[float, float]  # the same, and accepted


def tokens_per_step(text: Sequence[Emitted]) -> dict[str, float]:
    """Expected tokens of a step of K guesses, each position of a text taken as the start of one."""
    starts = range(len(text) - K)
    sums: dict[str, float] = defaultdict(float)
    for start in starts:
        ahead = text[start : start + K]
        for name in ("coupled", "rejection"):
            one = list(accumulate((getattr(each, name)[0] for each in ahead), mul))
            two = [getattr(each, name)[1] for each in ahead]
            sums[f"{name}, chain"] += sum(one)
            sums[f"{name}, pair and 2"] += two[0] + one[1] + one[2]
            sums[f"{name}, 2 pairs"] += two[0] + one[0] * two[1]
        ratio, mass = 1.0, 1.0
        for each in ahead:
            ratio *= each.q / each.p
            mass = min(1.0, mass * each.p / each.q) if each.q > 0 else 0.0
            sums["block, chain"] += ratio * mass
    return {name: 1 + total / len(starts) for name, total in sums.items()}


def pair_accepted(p: Distribution, q: Distribution, token: int) -> float:
    """The chance that one of two candidates, drawn without replacement, is this token and kept, given that it came."""
    p_of_q = np.array([p.prob(int(each)) for each in q.ids])
    left = 1.0 - float(np.minimum(p_of_q, q.probs).sum())  # of p behind a rejection
    kept, q_token = min(p.prob(token), q.prob(token)), q.prob(token)
    if left > 1e-12 and len(q.ids) > 1:
        rest = max(0.0, p.prob(token) - q_token) / left
        for each, q_each, p_each in zip(q.ids, q.probs, p_of_q, strict=True):
            if each != token:
                kept += max(0.0, q_each - p_each) * min(rest, q_token / (1.0 - q_each))
    return kept / p.prob(token)


def coupled_agreement(p: Distribution, q: Distribution, token: int, rng: np.random.Generator) -> tuple[float, float]:
    """The chance that `token` is the best of log q + g, and one of the best two, given that it is of log p + g.

    The maximum of log p + g is itself Gumbel; the other tokens' noise is Gumbel cut off there (Maddison et al. 2014).
    """
    shared = np.array([p.prob(int(x)) for x in q.ids])
    top = -np.log(-np.log(rng.random((DRAWS, 1))))
    free = -np.log(-np.log(rng.random((DRAWS, len(q.ids)))))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        location = np.log(shared)
        below = -np.log(np.exp(-top) + np.exp(-(free + location))) - location
    noise = np.where(shared > 0, below, free)
    at = np.flatnonzero(q.ids == token)
    if not at.size:
        return 0.0, 0.0
    noise[:, at] = top - location[at]
    noisy = np.log(q.probs) + noise
    better = (noisy > noisy[:, at]).sum(axis=1)
    return float((better < 1).mean()), float((better < 2).mean())


def score(
    target: LlamaModel, draft: LlamaModel, prompt: np.ndarray, seed: int, sampling: SamplingConfig
) -> list[Emitted]:
    """What each token of one sampled text would have been to the rules."""
    rule, rng, found = Coupled(seed), np.random.default_rng(seed), list[Emitted]()
    target.rewind(0)
    draft.rewind(0)
    row, draft_row = target.forward(prompt, n_rows=1)[0], draft.forward(prompt, n_rows=1)[0]
    for i in range(LENGTH):
        p, q = distribution(row, sampling), distribution(draft_row, sampling)
        token = rule.pick(p, len(prompt) + i)
        first = min(1.0, q.prob(token) / p.prob(token))
        pair = first, pair_accepted(p, q, token)
        found.append(Emitted(p.prob(token), q.prob(token), coupled_agreement(p, q, token, rng), pair))
        if token in target.weights.vocabulary.ends:
            break
        row, draft_row = target.forward([token], n_rows=1)[0], draft.forward([token], n_rows=1)[0]
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_tokens_per_step_of_the_three_rules(
    temperature: float, qwen: LlamaModel, qwen_draft: LlamaModel, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = prompt_format(qwen.weights.chat_template, qwen.weights.vocabulary, {})
    sampling = SamplingConfig(temperature=temperature)
    totals: list[tuple[int, dict[str, float]]] = []
    with capsys.disabled():
        for task, questions in TASKS.items():
            cells = []
            for question in questions:
                prompt = shape.prompt([Message(Role.USER, question)])
                for seed in SEEDS:
                    found = score(qwen, qwen_draft, prompt, seed, sampling)
                    if len(found) > K:
                        cells.append((len(found) - K, tokens_per_step(found)))
            told(f"T {temperature}, {task}", cells)
            totals += cells
        told(f"T {temperature}, all", totals)


def told(title: str, cells: list[tuple[int, dict[str, float]]]) -> None:
    weight = sum(n for n, _ in cells)
    means = {name: sum(n * values[name] for n, values in cells) / weight for name in cells[0][1]}
    print(f"\n{title} ({weight} starts, {K} guesses): tokens per step")
    for name, mean in means.items():
        print(f"  {name:22} {mean:.3f}")
