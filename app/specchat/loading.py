"""From model files to a session's engine: load, check the pair, measure, and say what cannot be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from specchat.conversation import PromptFormat, prompt_format
from speculation.cost import CostTable, measure
from speculation.llama import EngineLog, LlamaModel, LlamaWeights
from speculation.types import SpeculationError
from speculation.vocabulary import why_incompatible


class UnfitDraft(SpeculationError):
    """A draft model that cannot guess for the target; the text is the reason."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How models are loaded."""

    n_ctx: int = 8192  # tokens; less where the model was trained for less
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
    clock: Callable[[], float] = perf_counter,
) -> Engines:
    """Load a target and measure what its steps cost here. Raises CannotLoad, Interrupted."""
    started = clock()
    weights = LlamaWeights(path, log, progress)
    try:
        target = LlamaModel(weights, log, n_ctx=options.n_ctx, n_threads=options.n_threads)
    except SpeculationError:
        weights.close()
        raise
    vocabulary = weights.vocabulary
    special = {"bos": vocabulary.bos, "eos": vocabulary.eos}
    texts = {name: vocabulary.text(token).decode("utf-8", "replace") for name, token in special.items() if token >= 0}
    chat_format = prompt_format(weights.chat_template, vocabulary, texts)
    cost = measure(target, clock) if target.can_rewind else None
    notices = []
    if cost is None:
        notices.append(f"{weights.name} cannot take tokens back out of its cache, so it chats without guesses")
    return Engines(target, options, log, chat_format, cost, clock() - started, notices=notices)
