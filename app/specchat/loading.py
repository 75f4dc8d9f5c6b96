"""From model files to a session's engine: load, check the pair, measure, and say what cannot be had."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from specchat.conversation import PromptFormat, prompt_format
from specchat.draft_loading import NoRoom, UnfitDraft, check_room, head_in, load_beside
from specchat.engine_facts import EngineFacts
from specchat.fit import CONTEXT, Needs, Plan, Room, needs, plan_context, states_kept
from specchat.headers import Header, HeaderError, read_header, weight_bytes
from specchat.heads.beside import heads_beside
from specchat.kept import Kept, as_prices, draft_price_key, price_key
from specchat.logs import note
from specchat.machine import free_memory, total_memory
from specchat.next_layer import brings, load_next_layer
from specchat.quantizations import dear_checks
from specchat.reply import Guess
from speculation.cost import CostTable, measure
from speculation.heads.head import Head
from speculation.llama import (
    ENGINE_VERSION,
    ROLLBACK,
    Eagle3Layers,
    EngineLog,
    LlamaModel,
    LlamaWeights,
    MultiTokenLayers,
    gpus,
)
from speculation.types import SpeculationError

__all__ = ["EngineOptions", "Engines", "NoRoom", "UnfitDraft", "load_engines", "room_here"]

MEASURING_S = 6.0  # that taking prices may take


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
    next_layer: MultiTokenLayers | None = None  # that its file brings
    why_no_next_layer: str = ""
    eagle3: Eagle3Layers | None = None  # a head that was given in place of a draft model

    def load_draft(self, path: Path) -> None:
        """Load a draft model or an EAGLE-3 head beside the target, whose cache stays.

        Raises UnfitDraft, NoRoom, CannotLoad.
        """
        header = _header(path)
        head = head_in(header, self.target)
        present = sum(each.weights.size_bytes for each in (self.draft, self.eagle3) if each is not None)
        check_room(path.stem, _needs(header, self.options.cache_type), self.target, self.room(), present)
        found = load_beside(path, head, self.target, self.log, **_how(self.options))
        self.drop_draft()
        if isinstance(found, Eagle3Layers):
            self.eagle3 = found
        else:
            self.draft = found
            self.draft_step_s = self._draft_price(found)

    def _draft_price(self, draft: LlamaModel) -> float:
        key = draft_price_key(_price_key(draft.weights, self.options))
        known = None if self.prices is None else as_prices(self.prices.get(key))
        if known is None:
            known = measure(draft, perf_counter, widths=(1,))
            if self.prices is not None:
                self.prices.put(key, {str(rows): seconds for rows, seconds in known.seconds.items()})
        return known.forward_s(1)

    def drop_draft(self) -> None:
        """Unload the draft model or the head, if there is one."""
        if self.eagle3 is not None:
            self.eagle3.close()
            self.eagle3.weights.close()
            self.eagle3 = None
        if self.draft is not None:
            self.draft.close()
            self.draft.weights.close()
            self.draft = self.draft_step_s = None

    def close(self) -> None:
        """Free everything."""
        self.drop_draft()
        if self.next_layer is not None:
            self.next_layer.close()
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
    weights = LlamaWeights(path, log, progress, with_next_layer=brings(header))
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
    next_layer, why_none = (
        load_next_layer(target, log, options.n_threads, options.cache_type)
        if cost is not None
        else (None, "it cannot take tokens back")
    )
    load_s = clock() - started
    note("load", seconds=load_s, bytes=weights.size_bytes, context=target.n_ctx, threads=options.n_threads)
    return Engines(
        target,
        options,
        log,
        chat_format,
        cost,
        load_s,
        notices=notices,
        prices=prices,
        room=room,
        heads=heads,
        next_layer=next_layer,
        why_no_next_layer=why_none,
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
