"""Which rule keeps most of a draft: the real pair, texts sampled from the target, all three rules on the same rows.

Given the text that a rule emitted, the chance that it kept at least i draft tokens is known in closed form: rejection
min(1, q/p) a token, block min(1, running p/q) * q/p a prefix (Sun et al. 2024, their lemma on the acceptance of a
prefix), coupled the chance that the draft picks the same token under noise that made the target pick it. So one sampled
text scores all three, with less noise than runs would have.
"""

from __future__ import annotations

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


def survivals(p: np.ndarray, q: np.ndarray, same: np.ndarray) -> dict[str, float]:
    """Expected tokens per step at k = K, each position of a text taken as the start of a step."""
    starts = range(len(p) - K)
    sums = dict.fromkeys(("coupled", "rejection", "block"), 0.0)
    for start in starts:
        run, ratio, mass, coupled = 1.0, 1.0, 1.0, 1.0
        for i in range(start, start + K):
            coupled *= same[i]
            run *= min(1.0, q[i] / p[i])
            ratio *= q[i] / p[i]
            mass = min(1.0, mass * p[i] / q[i]) if q[i] > 0 else 0.0
            sums["coupled"] += coupled
            sums["rejection"] += run
            sums["block"] += ratio * mass
    return {name: 1 + total / len(starts) for name, total in sums.items()}


def coupled_agreement(p: Distribution, q: Distribution, token: int, rng: np.random.Generator) -> float:
    """The chance that argmax(log q + g) is `token` given that argmax(log p + g) is, by drawing such noise g.

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
        return 0.0
    noise[:, at] = top - location[at]
    return float((np.argmax(np.log(q.probs) + noise, axis=1) == at[0]).mean())


def score(
    target: LlamaModel, draft: LlamaModel, prompt: np.ndarray, seed: int, sampling: SamplingConfig
) -> list[tuple[float, float, float]]:
    """p and q of each emitted token and the chance that the coupled draft picks it too, for one sampled text."""
    rule, rng, found = Coupled(seed), np.random.default_rng(seed), []
    target.rewind(0)
    draft.rewind(0)
    row, draft_row = target.forward(prompt, n_rows=1)[0], draft.forward(prompt, n_rows=1)[0]
    for i in range(LENGTH):
        p, q = distribution(row, sampling), distribution(draft_row, sampling)
        token = rule.pick(p, len(prompt) + i)
        found.append((p.prob(token), q.prob(token), coupled_agreement(p, q, token, rng)))
        if token in target.weights.vocabulary.ends:
            break
        row, draft_row = target.forward([token], n_rows=1)[0], draft.forward([token], n_rows=1)[0]
    return found


@pytest.mark.timeout(3600)
def test_tokens_per_step_of_the_three_rules(
    qwen: LlamaModel, qwen_draft: LlamaModel, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = prompt_format(qwen.weights.chat_template, qwen.weights.vocabulary, {})
    lines = [f"tokens per step at k = {K} | task | coupled | rejection | block | coupled / block"]
    for temperature in (0.7, 1.0):
        sampling = SamplingConfig(temperature=temperature)
        totals: list[tuple[int, dict[str, float]]] = []
        for task, questions in TASKS.items():
            cells = []
            for question in questions:
                prompt = shape.prompt([Message(Role.USER, question)])
                for seed in SEEDS:
                    found = np.array(score(qwen, qwen_draft, prompt, seed, sampling))
                    if len(found) > K:
                        cells.append((len(found) - K, survivals(found[:, 0], found[:, 1], found[:, 2])))
            lines.append(line(f"T {temperature} | {task}", cells))
            totals += cells
        lines.append(line(f"T {temperature} | all", totals))

    with capsys.disabled():
        print("\n" + "\n".join(lines))


def line(title: str, cells: list[tuple[int, dict[str, float]]]) -> str:
    weight = sum(n for n, _ in cells)
    mean = {name: sum(n * values[name] for n, values in cells) / weight for name in cells[0][1]}
    return (
        f"{title} ({weight} starts) | {mean['coupled']:.3f} | {mean['rejection']:.3f} | {mean['block']:.3f} | "
        f"{mean['coupled'] / mean['block']:.3f}"
    )
