"""From model files to a session's engine: load, check the pair, measure, and say what cannot be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from specchat.conversation import PromptFormat, prompt_format
from specchat.kept import Kept, as_prices
from speculation.cost import CostTable, measure
from speculation.llama import ENGINE_VERSION, EngineLog, LlamaModel, LlamaWeights
from speculation.types import SpeculationError
from speculation.vocabulary import why_incompatible

CONTEXT = 8192  # tokens
MEASURING_S = 6.0  # that taking prices may take


class UnfitDraft(SpeculationError):
    """A draft model that cannot guess for the target; the text is the reason."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How models are loaded."""

    n_ctx: int | None = None  # tokens; None: CONTEXT, or less where the model was trained for less
    n_threads: int = 1


@dataclass
class Engines:
    """A loaded target, its price list, and a draft model where there is one."""

    target: LlamaModel
    options: EngineOptions
    log: EngineLog
    format: PromptFormat
    cost: CostTable | None  # None for a model that cannot rewind: it is never asked to check a guess
    load_s: float
    draft: LlamaModel | None = None
    notices: list[str] = field(default_factory=list)

    def load_draft(self, path: Path) -> None:
        """Load a draft model beside the target, whose cache stays. Raises UnfitDraft, CannotLoad."""
        if not self.target.can_rewind:
            raise UnfitDraft(f"{self.target.weights.name} cannot take tokens back, so nothing can guess for it")
        weights = LlamaWeights(path, self.log)
        try:
            reason = why_incompatible(
                self.target.weights.vocabulary.facts(self.target.weights.name),
                weights.vocabulary.facts(weights.name),
            )
            if reason is not None:
                raise UnfitDraft(reason)
            draft = LlamaModel(weights, self.log, n_ctx=self.target.n_ctx, n_threads=self.options.n_threads)
            if not draft.can_rewind:
                draft.close()
                raise UnfitDraft(f"{weights.name} cannot draft: its cache cannot drop tokens")
        except SpeculationError:
            weights.close()
            raise
        self.drop_draft()
        self.draft = draft

    def drop_draft(self) -> None:
        """Unload the draft model, if there is one."""
        if self.draft is not None:
            self.draft.close()
            self.draft.weights.close()
            self.draft = None

    def close(self) -> None:
        """Free everything."""
        self.drop_draft()
        self.target.close()
        self.target.weights.close()


def load_engines(
    path: Path,
    options: EngineOptions,
    log: EngineLog,
    progress: Callable[[float], bool] | None = None,
    prices: Kept | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Engines:
    """Load a target; what its steps cost here is taken from `prices`, or measured and kept there.

    `progress` is called with 0..1, and with 1 while measuring; False stops. Raises CannotLoad, Interrupted.
    """
    started = clock()
    weights = LlamaWeights(path, log, progress)
    try:
        target = LlamaModel(weights, log, n_ctx=options.n_ctx or CONTEXT, n_threads=options.n_threads)
        cost = _prices(target, options, prices, progress, clock) if target.can_rewind else None
    except SpeculationError:
        weights.close()
        raise
    vocabulary = weights.vocabulary
    special = {"bos": vocabulary.bos, "eos": vocabulary.eos}
    texts = {name: vocabulary.text(token).decode("utf-8", "replace") for name, token in special.items() if token >= 0}
    chat_format = prompt_format(weights.chat_template, vocabulary, texts)
    notices = []
    if options.n_ctx is not None and target.n_ctx < options.n_ctx:
        notices.append(f"the context is {target.n_ctx} tokens: {weights.name} was trained for no more")
    if cost is None:
        notices.append(f"{weights.name} cannot take tokens back out of its cache, so it chats without guesses")
    return Engines(target, options, log, chat_format, cost, clock() - started, notices=notices)


def _prices(
    target: LlamaModel,
    options: EngineOptions,
    prices: Kept | None,
    progress: Callable[[float], bool] | None,
    clock: Callable[[], float],
) -> CostTable:
    weights = target.weights
    key = f"{weights.name} {weights.size_bytes} {weights.back_end} {options.n_threads} threads {ENGINE_VERSION}"
    known = None if prices is None else as_prices(prices.get(key))
    if known is not None:
        return known
    skipped = False

    def interrupt() -> bool:
        nonlocal skipped
        skipped = skipped or (progress is not None and not progress(1.0))
        return skipped

    target.interrupt = interrupt
    began = clock()
    try:
        table = measure(target, clock, budget_s=MEASURING_S)
    finally:
        target.interrupt = None
    # Prices that were taken in a hurry, or beside other work, are good enough until they are taken anew.
    if prices is not None and not skipped and clock() - began < MEASURING_S:
        prices.put(key, {str(rows): seconds for rows, seconds in table.seconds.items()})
    return table
