"""From model files to a session's engine: load, check the pair, measure, and say what cannot be had."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from specchat.conversation import PromptFormat, prompt_format
from specchat.engine_facts import EngineFacts
from specchat.fit import CONTEXT, Needs, Plan, Room, needs, no_room_for_draft, plan_context, states_kept
from specchat.headers import Header, HeaderError, read_header, weight_bytes
from specchat.heads.beside import heads_beside
from specchat.kept import Kept, as_prices, draft_price_key, price_key
from specchat.logs import note
from specchat.machine import free_memory, total_memory
from specchat.pairing import CANNOT_DRAFT
from specchat.quantizations import dear_checks
from specchat.reply import Guess
from speculation.cost import CostTable, measure
from speculation.heads.head import Head
from speculation.llama import ENGINE_VERSION, ROLLBACK, EngineLog, LlamaModel, LlamaWeights, gpus
from speculation.types import SpeculationError
from speculation.vocabulary import why_incompatible

MEASURING_S = 6.0  # that taking prices may take


class UnfitDraft(SpeculationError):
    """A draft model that cannot guess for the target; the text is the reason."""


class NoRoom(UnfitDraft):
    """A draft model that gives way because there is too little memory for it."""


def room_here() -> Room:
    """The memory that models can have on this machine now."""
    if devices := gpus():
        return Room(sum(device.free for device in devices), sum(device.total for device in devices))
    return Room(free_memory(), total_memory())


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How models are loaded."""

    n_ctx: int | None = None  # tokens; None: CONTEXT, or less where the model was trained for less
    n_threads: int = 1
    cache_type: str = "f16"  # or "q8_0", which takes about half the memory


@dataclass
class Engines(EngineFacts):
    """A loaded target, its price list, and a draft model where there is one."""

    target: LlamaModel
    options: EngineOptions
    log: EngineLog
    format: PromptFormat
    cost: CostTable | None  # None for a model that cannot rewind: it is never asked to check a guess
    load_s: float
    draft: LlamaModel | None = None
    notices: list[str] = field(default_factory=list)
    prices: Kept | None = None
    room: Callable[[], Room] = room_here
    draft_step_s: float | None = None  # seconds of a token of the draft model, measured
    heads: dict[Guess, Head] = field(default_factory=dict)  # that were trained for the target

    def load_draft(self, path: Path) -> None:
        """Load a draft model beside the target, whose cache stays. Raises UnfitDraft, NoRoom, CannotLoad."""
        if not self.target.can_rewind:
            raise UnfitDraft(f"{self.target.weights.name} cannot take tokens back, so nothing can guess for it")
        self._check_room(path)
        weights = LlamaWeights(path, self.log)
        try:
            reason = why_incompatible(
                self.target.weights.vocabulary.facts(self.target.weights.name),
                weights.vocabulary.facts(weights.name),
            )
            if reason is not None:
                raise UnfitDraft(reason)
            draft = LlamaModel(weights, self.log, n_ctx=self.target.n_ctx, **_how(self.options))
            if not draft.rewinds_freely:
                draft.close()
                raise UnfitDraft(f"{weights.name} cannot draft: {CANNOT_DRAFT}")
        except SpeculationError:
            weights.close()
            raise
        self.drop_draft()
        self.draft = draft
        self.draft_step_s = self._draft_price(draft)

    def _check_room(self, path: Path) -> None:
        """Let a draft model give way before the target or its context have to. Raises NoRoom."""
        wanted = _needs(_header(path), self.options.cache_type)
        if wanted is not None:
            present = 0 if self.draft is None else self.draft.weights.size_bytes
            weights = self.target.weights
            name = path.stem
            room = self.room()
            free = None if room.free is None else room.free + present
            why = no_room_for_draft(
                name, weights.name, wanted(self.target.n_ctx), Room(free, room.total), weights.mapped_bytes
            )
            if why:
                raise NoRoom(why)

    def _draft_price(self, draft: LlamaModel) -> float:
        key = draft_price_key(_price_key(draft.weights, self.options))
        known = None if self.prices is None else as_prices(self.prices.get(key))
        if known is None:
            known = measure(draft, perf_counter, widths=(1,))
            if self.prices is not None:
                self.prices.put(key, {str(rows): seconds for rows, seconds in known.seconds.items()})
        return known.forward_s(1)

    def drop_draft(self) -> None:
        """Unload the draft model, if there is one."""
        if self.draft is not None:
            self.draft.close()
            self.draft.weights.close()
            self.draft = self.draft_step_s = None

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
    room: Callable[[], Room] = room_here,
) -> Engines:
    """Load a target; what its steps cost here is taken from `prices`, or measured and kept there.

    `progress` is called with 0..1, and with 1 while measuring; False stops. Where memory is short the context gets
    shorter, unless `options` name one. Raises CannotLoad, DoesNotFit, Interrupted.
    """
    started = clock()
    header = _header(path)
    plan = _plan(path.stem, header, options, room)
    weights = LlamaWeights(path, log, progress)
    try:
        shape = None if header is None else header.shape
        rollback = ROLLBACK if shape is None else states_kept(shape)
        is_new = prices is None or prices.get(_price_key(weights, options)) is None
        target = LlamaModel(weights, log, n_ctx=plan.n_ctx, rollback=rollback, **_how(options))
        cost = _prices(target, options, prices, progress, clock) if target.can_rewind else None
    except SpeculationError:
        weights.close()
        raise
    vocabulary = weights.vocabulary
    special = {"bos": vocabulary.bos, "eos": vocabulary.eos}
    texts = {name: vocabulary.text(token).decode("utf-8", "replace") for name, token in special.items() if token >= 0}
    chat_format = prompt_format(weights.chat_template, vocabulary, texts)
    notices = [plan.notice] if plan.notice else []
    if options.n_ctx is not None and target.n_ctx < options.n_ctx:
        notices.append(f"the context is {target.n_ctx} tokens: {weights.name} was trained for no more")
    if cost is None:
        notices.append(f"{weights.name} cannot take tokens back out of its cache, so it chats without guesses")
    elif is_new and header is not None and weights.back_end == "CPU" and (hint := dear_checks(header.tensors)):
        notices.append(f"{weights.name}: {hint}")
    heads = heads_beside(target, path, notices) if cost is not None else {}
    load_s = clock() - started
    note("load", seconds=load_s, bytes=weights.size_bytes, context=target.n_ctx, threads=options.n_threads)
    return Engines(
        target, options, log, chat_format, cost, load_s, notices=notices, prices=prices, room=room, heads=heads
    )


def _header(path: Path) -> Header | None:
    """What a file says of itself; None where it is broken, of which the engine has its own words."""
    try:
        return read_header(path)
    except HeaderError:
        return None


def _needs(header: Header | None, cache_type: str) -> Callable[[int], Needs] | None:
    """What a model takes with a context of so many tokens; None where its file does not say."""
    try:
        if header is None or header.shape is None:
            return None
        shape, weights, trained = header.shape, weight_bytes(header), header.context or sys.maxsize
    except HeaderError:  # of another part
        return None
    return lambda n_ctx: needs(shape, weights, min(n_ctx, trained), cache_type)


def _plan(name: str, header: Header | None, options: EngineOptions, room: Callable[[], Room]) -> Plan:
    wanted = options.n_ctx or CONTEXT
    of = _needs(header, options.cache_type)
    if of is None:
        return Plan(wanted)
    trained = (header.context if header is not None else None) or wanted
    if wanted > trained and options.n_ctx is None:
        wanted = trained
    return plan_context(name, of, wanted, room(), insisted=options.n_ctx is not None)


def _how(options: EngineOptions) -> dict[str, Any]:
    return {"n_threads": options.n_threads, "cache_type": options.cache_type}


def _price_key(weights: LlamaWeights, options: EngineOptions) -> str:
    return price_key(weights.name, weights.size_bytes, weights.back_end, options.n_threads, ENGINE_VERSION)


def _prices(
    target: LlamaModel,
    options: EngineOptions,
    prices: Kept | None,
    progress: Callable[[float], bool] | None,
    clock: Callable[[], float],
) -> CostTable:
    key = _price_key(target.weights, options)
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
