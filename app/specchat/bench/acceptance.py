"""`specchat bench acceptance`: how often guesses are right, position by position, for a pair of models.

The measurements of the document that this project starts from, on its two kinds of task: greedy agreement, the sum of
min(p, q) on the target's greedy and on its sampled text, two-token lookup, tokens per step replayed from the agreement
against the formula, and lookup as it is usually deployed (at most ten tokens from the longest of 3, 2, 1 matching).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from specchat.bench.workloads import Workload
from specchat.conversation import Message, Role
from specchat.loading import Engines
from speculation.accept import Coupled
from speculation.llama import LlamaModel
from speculation.sampling import SamplingConfig, distribution
from speculation.theory import tokens_per_step
from speculation.types import Row, Tokens

LENGTH = 120  # tokens of a reply, as in the document
SAMPLED = SamplingConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One kind of task."""

    task: str
    tokens: int
    greedy_agreement: float  # share of positions where the draft's best token is the target's
    min_p_q_greedy: float  # mean sum of min(p, q) on greedy text, temperature 1, nothing cut
    min_p_q_sampled: float  # the same on text sampled at temperature 1
    lookup_two_tokens: float  # share of positions where what followed the last two tokens earlier comes again
    tokens_per_step_4: float  # replayed from the agreement at k = 4
    formula_4: float  # (1 - a^5) / (1 - a) for a = greedy agreement
    tokens_per_step_8: float
    formula_8: float
    lookup_tokens_per_step: float  # lookup as deployed


def measure_acceptance(engines: Engines, draft: LlamaModel, workload: Workload) -> Acceptance:
    """Let the target write each answer twice, greedily and sampled, and score the draft beside it."""
    agreed: list[list[bool]] = []
    greedy_mass: list[float] = []
    sampled_mass: list[float] = []
    followed: list[bool] = []
    deployed = [0, 0]  # tokens, steps
    for prompt in workload.prompts:
        ids = engines.format.prompt([Message(Role.USER, prompt)])
        text, same, mass = _written(engines.target, draft, ids, None)
        agreed.append(same)
        greedy_mass += mass
        whole = [*ids.tolist(), *text]
        followed += [two_token_guess(whole, i) == whole[i] for i in range(len(ids), len(whole))]
        deployed = [deployed[0] + len(text), deployed[1] + deployed_steps(whole, len(ids))]
        sampled_mass += _written(engines.target, draft, ids, Coupled(len(agreed)))[2]
    alpha = float(np.mean([same for reply in agreed for same in reply]))
    tokens = sum(map(len, agreed))
    steps = {k: sum(replayed_steps(reply, k) for reply in agreed) for k in (4, 8)}
    return Acceptance(
        workload.name,
        tokens,
        alpha,
        float(np.mean(greedy_mass)),
        float(np.mean(sampled_mass)),
        float(np.mean(followed)),
        tokens / steps[4],
        tokens_per_step(alpha, 4),
        tokens / steps[8],
        tokens_per_step(alpha, 8),
        deployed[0] / deployed[1],
    )


def as_json(found: Acceptance) -> dict[str, object]:
    """The figures as plain data."""
    return asdict(found)


def replayed_steps(agreed: Sequence[bool], k: int) -> int:
    """Steps that greedy guessing of k tokens takes over a reply, given where the draft agrees."""
    at = steps = 0
    while at < len(agreed):
        run = 0
        while run < k and at + run < len(agreed) and agreed[at + run]:
            run += 1
        at += run + 1
        steps += 1
    return steps


def two_token_guess(text: Sequence[int], at: int) -> int | None:
    """What followed the most recent earlier occurrence of the two tokens before `at`."""
    for j in range(at - 3, -1, -1):
        if text[j] == text[at - 2] and text[j + 1] == text[at - 1]:
            return text[j + 2]
    return None


def deployed_steps(text: Sequence[int], start: int, most: int = 10, longest: int = 3) -> int:
    """Steps that lookup as deployed takes from `start`: the latest match of 3, else 2, else 1 tokens, ten copied."""
    at, steps = start, 0
    while at < len(text):
        guess = _deployed_guess(text, at, most, longest)
        run = 0
        while run < len(guess) and at + run < len(text) and guess[run] == text[at + run]:
            run += 1
        at += run + 1
        steps += 1
    return steps


def _deployed_guess(text: Sequence[int], at: int, most: int, longest: int) -> Sequence[int]:
    for size in range(min(longest, at - 1), 0, -1):
        for j in range(at - size - 1, -1, -1):
            if text[j : j + size] == text[at - size : at]:
                return text[j + size : min(j + size + most, at)]
    return ()


def _written(
    target: LlamaModel, draft: LlamaModel, prompt: Tokens, rule: Coupled | None
) -> tuple[list[int], list[bool], list[float]]:
    """A reply, greedy without a rule; where the draft's best token is the target's; the sums of min(p, q)."""
    target.rewind(0)
    draft.rewind(0)
    row, draft_row = target.forward(prompt, n_rows=1)[0], draft.forward(prompt, n_rows=1)[0]
    text, same, mass = [], [], []
    for i in range(LENGTH):
        best = int(row.argmax())
        token = best if rule is None else rule.pick(distribution(row, SAMPLED), len(prompt) + i)
        text.append(token)
        same.append(int(draft_row.argmax()) == best)
        mass.append(_shared_mass(row, draft_row))
        if token in target.weights.vocabulary.ends:
            break
        row, draft_row = target.forward([token], n_rows=1)[0], draft.forward([token], n_rows=1)[0]
    return text, same, mass


def _shared_mass(row: Row, draft_row: Row) -> float:
    n = min(len(row), len(draft_row))  # beyond it is padding
    p, q = (np.exp(r[:n] - r.max()).astype(np.float64) for r in (row, draft_row))
    return float(np.minimum(p / p.sum(), q / q.sum()).sum())
