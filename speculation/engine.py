"""The loop: plan, propose, forward, verify, rewind, record.

Between two steps, always: `context` is the prompt plus everything emitted, the target's cache holds
context[:-1], and context[-1] is the pending token, emitted but not yet read by the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from speculation.accept import Rule
from speculation.context import Context, common_prefix, recent
from speculation.controllers.base import Controller, Plan
from speculation.guessers.base import Chains, Checked, Guesser, reads_along, watches
from speculation.sampling import SamplingConfig, distribution, probabilities
from speculation.types import (
    PLAIN,
    CannotRewind,
    Distribution,
    Draft,
    Finish,
    Logits,
    Model,
    Row,
    SpeculationError,
    Step,
    Tokens,
    TreeModel,
    grows_trees,
)


class ContextFull(SpeculationError):
    """A prompt that is longer than the model's context."""

    def __init__(self, needed: int, n_ctx: int) -> None:
        super().__init__(f"the prompt has {needed} tokens and the context holds {n_ctx}")
        self.needed = needed
        self.n_ctx = n_ctx


class Ends(Protocol):
    """Decides where a reply ends. It is fed every emitted token once, in order."""

    def feed(self, tokens: Sequence[int]) -> tuple[int, Finish] | None:
        """How many of these tokens belong to the reply, and why it ends there; None while it goes on."""
        ...


@dataclass(frozen=True, slots=True)
class EndTokens:
    """Ends at any of a set of tokens, which belongs to the reply."""

    tokens: frozenset[int] = frozenset()

    def feed(self, tokens: Sequence[int]) -> tuple[int, Finish] | None:
        at = next((i for i, token in enumerate(tokens) if token in self.tokens), None)
        return None if at is None else (at + 1, Finish.END)


@dataclass(frozen=True, slots=True)
class Reading:
    """How far the prompt has been read."""

    read: int  # tokens evaluated so far
    total: int  # tokens to evaluate
    reused: int  # tokens that stood in the cache already
    seconds: float  # since the reading began

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before anything was read."""
        return self.seconds * (self.total - self.read) / self.read if self.read else None


class Engine:
    """One conversation of a target with its guessers.

    The public attributes may be replaced between any two steps; a change takes hold at the next one.
    """

    def __init__(
        self,
        target: Model,
        guessers: Mapping[str, Guesser],
        controller: Controller,
        rule: Rule,
        sampling: SamplingConfig,
        clock: Callable[[], float] = perf_counter,
        read_at_once: int = 128,
    ) -> None:
        self.target = target
        self.guessers = guessers
        self.controller = controller
        self.rule = rule
        self.sampling = sampling
        self.context = Context()
        self.plan = Plan()  # of the last step: why it was taken
        self._clock = clock
        self._read_at_once = read_at_once

    @property
    def cached(self) -> Tokens:
        """The part of the context that the target's cache holds; a view that the next change may invalidate."""
        return self.context.tokens[: self.target.n_past]

    def adopt(self, tokens: Tokens) -> None:
        """Take for the context what the target's cache was filled with from outside: a saved state."""
        self.context.truncate(0)
        self.context.extend(tokens)
        self.context.given = len(tokens)

    def read(self, prompt: Tokens) -> Iterator[Reading]:
        """Make `prompt` the context, evaluating only what the cache lacks, a chunk between two yields.

        A consumer may stop between chunks; the next read goes on from there. Raises ContextFull.
        """
        if len(prompt) == 0:
            raise SpeculationError("the prompt is empty")
        if len(prompt) > self.target.n_ctx:
            raise ContextFull(len(prompt), self.target.n_ctx)
        started = self._clock()
        shared = common_prefix(self.context.tokens, prompt)
        self.context.truncate(shared)
        self.context.extend(prompt[shared:])
        self.context.given = len(prompt)
        reused = self._rewind_to(min(shared, self.target.n_past, len(prompt) - 1))
        total = len(prompt) - 1 - reused
        yield Reading(0, total, reused, 0.0)
        while (left := len(prompt) - 1 - self.target.n_past) > 0:
            at = self.target.n_past
            self.target.forward(prompt[at : at + min(left, self._read_at_once)], n_rows=0)
            for guesser in self.guessers.values():
                if reads_along(guesser):
                    guesser.read_along(self.context, self.target.n_past)
            yield Reading(self.target.n_past - reused, total, reused, self._clock() - started)

    def steps(self, *, limit: int, ends: Ends) -> Iterator[Step]:
        """Go on from the context until an end, `limit` tokens or the end of the cache.

        A consumer that stops between two steps leaves a cache that equals what it was given.
        """
        emitted, finish = 0, None
        while finish is None and emitted < limit:
            if len(self.context) > self.target.n_ctx:
                raise ContextFull(len(self.context), self.target.n_ctx)
            step = self._step(limit - emitted, ends)
            emitted += len(step.tokens)
            finish = step.finish
            yield step

    def truncate(self, length: int) -> None:
        """Take back the end of the context, as after a stop string that is not shown."""
        self.context.truncate(length)
        self._rewind_to(min(self.target.n_past, max(length - 1, 0)))

    def chances(self, tokens: Sequence[int]) -> list[float]:
        """The target's probability of each of these tokens to come next, nothing cut. The cache is left as it was."""
        rows = self.target.forward(self.context.tokens[self.target.n_past :], n_rows=1)  # all, where it started over
        found = probabilities(rows[0], list(tokens))
        self._rewind_to(len(self.context) - 1)
        return [float(p) for p in found]

    def _step(self, left: int, ends: Ends) -> Step:
        started = self._clock()
        before = len(self.context)
        room = min(left - 1, self.target.n_ctx - before, self.target.max_rows - 1)
        room = room if self.target.can_rewind else 0
        guessers = self.guessers if self._judges_trees else {name: Chains(own) for name, own in self.guessers.items()}
        self.plan = self.controller.plan(self.context, guessers, room)
        draft = self._draft(self.plan, guessers, room)
        k = len(draft.tokens)
        drafted_at = self._clock()
        rows = self._check(draft)
        verified_at = self._clock()
        try:
            verdict = self.rule.verify(lambda i: self._distribution(rows[i], draft, i - 1), draft, before)
            path, n = verdict.path, verdict.accepted
            emitted = (*(draft.tokens[node] for node in path), verdict.token)
            end = path[-1] if path else -1
            rejected = next((node for node in range(end + 1, k) if draft.parent(node) == end), None)
            doubt: list[float | None] = [None, None]
            if rejected is not None:
                doubt = probabilities(rows[end + 1], [draft.tokens[rejected], verdict.token]).tolist()
            kept, finish = ends.feed(emitted) or (len(emitted), None)
            for guesser in self.guessers.values():
                if watches(guesser):
                    guesser.watch(self.context, Checked(draft, rows, path, emitted))
            if draft.parents is not None:
                self._trees.keep(path)
            self.context.extend(emitted[:kept])
        except BaseException:
            self._rewind_to(before - 1)
            raise
        # To the context, not by the rejected count: after a cut the two differ, and the next turn would attend to
        # tokens nobody saw.
        (self.target.rewind if finish is None else self._rewind_to)(len(self.context) - 1)
        if finish is None and kept == left:
            finish = Finish.LENGTH
        elif finish is None and len(self.context) > self.target.n_ctx:
            finish = Finish.CONTEXT
        step = Step(
            guesser=draft.guesser if k else PLAIN,
            drafted=k,
            examined=min(n + (rejected is not None), kept),
            accepted=min(n, kept),
            tokens=emitted[:kept],
            context=before,
            draft_s=drafted_at - started,
            verify_s=verified_at - drafted_at,
            accept_s=self._clock() - verified_at,
            source=draft.source_of(path) if k else None,
            match=draft.match if k else 0,
            p_rejected=doubt[0],
            p_chosen=doubt[1],
            finish=finish,
            sources=draft.sources_of(path[:kept]),
        )
        self.controller.record(step)
        return step

    @property
    def _trees(self) -> TreeModel:
        target = self.target
        assert grows_trees(target)
        return target

    @property
    def _judges_trees(self) -> bool:
        return self.rule.judges_trees and grows_trees(self.target) and self.target.can_tree

    def _draft(self, plan: Plan, guessers: Mapping[str, Guesser], room: int) -> Draft:
        k = min(plan.k, room)
        if k <= 0:
            return Draft(PLAIN)
        if plan.draft is not None:
            return plan.draft.cut(k)
        return guessers[plan.guesser].propose(self.context, k, self.rule, plan.keep_on)

    def _check(self, draft: Draft) -> Logits:
        """The rows after the pending token and after each token of the draft."""
        pending = int(self.context.tokens[-1])
        if draft.parents is not None:
            return self._trees.forward_tree(pending, draft.tokens, draft.parents)
        return self.target.forward([pending, *draft.tokens], n_rows=len(draft.tokens) + 1)

    def _distribution(self, row: Row, draft: Draft, node: int) -> Distribution:
        """What the target draws from behind a node."""
        if self.sampling.repeat_penalty == 1.0:
            return distribution(row, self.sampling)
        drafted = [draft.tokens[each] for each in draft.path(node)]
        return distribution(row, self.sampling, recent(self.context, drafted, self.sampling.repeat_last_n))

    def _rewind_to(self, n_past: int) -> int:
        """Rewind, or start over where the cache cannot; the tokens that are left in it."""
        if n_past != self.target.n_past:
            try:
                self.target.rewind(n_past)
            except CannotRewind:
                self.target.rewind(0)
        return self.target.n_past
