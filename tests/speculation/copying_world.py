"""A world for drafts and copies: a text that partly repeats itself, and a draft model that is as good as wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from speculation.accept import rule_named
from speculation.context import Context
from speculation.controllers.base import Controller, Plan
from speculation.controllers.stopping import Stopping
from speculation.cost import CostTable
from speculation.engine import EndTokens, Engine
from speculation.guessers.base import Guesser
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.sampling import GREEDY
from speculation.types import Logits, Step, Tokens

Wrap = Callable[[Guesser, PromptLookup], Guesser]


class Clocked:
    """A controller in a world where forwards take what a price list says."""

    def __init__(self, controller: Controller, cost: CostTable, token_s: float) -> None:
        self._controller, self._cost, self._token_s = controller, cost, token_s
        self.seconds = 0.0
        self.steps: list[Step] = []
        self._plan = Plan()

    def plan(self, context: Context, guessers: dict[str, Guesser], room: int) -> Plan:
        self._plan = self._controller.plan(context, guessers, room)
        return self._plan

    def record(self, step: Step) -> None:
        keep_on = self._plan.keep_on
        drafted = keep_on.drafted if step.drafted and isinstance(keep_on, Stopping) else step.drafted
        drafted = drafted if step.guesser == DraftModel.name else 0
        verify_s = self._cost.forward_s(step.drafted + 1)
        timed = replace(step, draft_s=drafted * self._token_s, verify_s=verify_s, accept_s=0.0)
        self.seconds += timed.draft_s + timed.verify_s
        self.steps.append(timed)
        self._controller.record(timed)


class Text:
    """A model that knows a text as well as it is told: at each place, how sure it is and whether rightly."""

    can_rewind = can_tree = True
    max_rows = 64

    def __init__(self, text: Sequence[int], n_vocab: int, sure: Sequence[float], right: Sequence[bool]) -> None:
        self.n_vocab, self.n_ctx, self.n_past = n_vocab, len(text) + 1, 0
        self._text, self._sure, self._right = text, sure, right

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        self.n_past += len(tokens)
        return self._rows(range(self.n_past - n_rows + 1, self.n_past + 1))

    def forward_tree(self, pending: int, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        self.n_past += 1
        after = [self.n_past]
        for parent in parents:
            after.append(after[parent + 1] + 1)
        return self._rows(after)

    def keep(self, path: Sequence[int]) -> None:
        self.n_past += len(path)

    def rewind(self, n_past: int) -> None:
        self.n_past = n_past

    def _rows(self, after: Sequence[int]) -> Logits:
        """Rows behind so many tokens of the text each, whatever was written there."""
        rows = np.empty((len(after), self.n_vocab), dtype=np.float32)
        for row, n in zip(rows, after, strict=True):
            at = min(n, len(self._text) - 1)
            row[:] = np.log((1.0 - self._sure[at]) / (self.n_vocab - 1))
            best = self._text[at] if self._right[at] else (self._text[at] + 1) % self.n_vocab
            row[best] = np.log(self._sure[at])
        return rows


def a_text(rng: np.random.Generator, copied: float, n_prompt: int, n: int, n_vocab: int) -> tuple[list[int], list[int]]:
    """A prompt and what follows, of which about every second stretch repeats an earlier one of `copied` tokens or so.

    The second list tells how far inside a repeated stretch each token stands, 0 outside.
    """
    weights = 1.0 / np.arange(1, n_vocab + 1)
    weights /= weights.sum()
    text = rng.choice(n_vocab, n_prompt, p=weights).tolist()
    inside = [0] * n_prompt
    while len(text) < n_prompt + n:
        fresh = int(rng.geometric(1 / 15))
        text += rng.choice(n_vocab, fresh, p=weights).tolist()
        inside += [0] * fresh
        length = int(rng.geometric(1 / copied))
        start = int(rng.integers(0, len(text) - length)) if length < len(text) else 0
        text += text[start : start + length]
        inside += range(1, length + 1)
    return text[: n_prompt + n], inside[: n_prompt + n]


def doubts(
    rng: np.random.Generator, inside: Sequence[int], alpha: float, copying: float
) -> tuple[list[float], list[bool]]:
    """How sure a draft model is at each token and whether rightly; it knows itself.

    About `alpha` of the new tokens are right and `copying` of those that repeat two others.
    """
    sure = []
    for depth in inside:
        mean = copying if depth > 2 else alpha
        sure.append(float(np.clip(rng.beta(1.6 * mean, 1.6 * (1 - mean)), 0.02, 0.98)))
    return sure, [bool(rng.random() < each) for each in sure]


def written(
    text: Sequence[int],
    n_prompt: int,
    n_vocab: int,
    draft: tuple[Sequence[float], Sequence[bool]],
    controller: Controller,
    cost: CostTable,
    share: float,
    wrap: Wrap,
) -> Clocked:
    """Write the text behind its prompt with a lookup and a draft model that takes a share of its target's time."""
    clocked = Clocked(controller, cost, share * cost.forward_s(1))
    target = Text(text, n_vocab, [0.999] * len(text), [True] * len(text))
    lookup = PromptLookup()
    drafter = wrap(DraftModel(Text(text, n_vocab, *draft), GREEDY, n_vocab), lookup)
    engine = Engine(target, {"lookup": lookup, "draft": drafter}, clocked, rule_named("coupled", 0), GREEDY)  # type: ignore[arg-type]
    for _ in engine.read(np.array(text[:n_prompt], dtype=np.int32)):
        pass
    for _ in engine.steps(limit=len(text) - n_prompt, ends=EndTokens()):
        pass
    assert engine.context.tokens.tolist() == list(text)
    return clocked
