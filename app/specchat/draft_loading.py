"""What is loaded beside a target to guess for it: a draft model, or an EAGLE-3 head in place of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specchat.fit import Needs, Room, no_room_for_draft
from specchat.headers import Header
from specchat.pairing import CANNOT_DRAFT
from speculation.heads.eagle3 import HeadFacts, why_unfit
from speculation.llama import Eagle3Layers, EngineLog, LlamaModel, LlamaWeights, target_facts
from speculation.types import SpeculationError
from speculation.vocabulary import why_incompatible


class UnfitDraft(SpeculationError):
    """A draft model or a head that cannot guess for the target; the text is the reason."""


class NoRoom(UnfitDraft):
    """One that gives way because there is too little memory for it."""


def head_in(header: Header | None, target: LlamaModel) -> HeadFacts | None:
    """The EAGLE-3 head that a file holds; None for a model. Raises UnfitDraft where nothing can guess for the target.

    Looked at before the engine is asked, which would end the process over some heads.
    """
    if not target.can_rewind:
        raise UnfitDraft(f"{target.weights.name} cannot take tokens back, so nothing can guess for it")
    head = None if header is None else header.head
    if head is not None and (why := why_unfit(target_facts(target), head)):
        raise UnfitDraft(why)
    return head


def check_room(
    name: str, needs: Callable[[int], Needs] | None, target: LlamaModel, room: Room, present_bytes: int
) -> None:
    """Let it give way before the target or its context have to. Raises NoRoom.

    `needs`: what it takes with a context of so many tokens; `present_bytes`: of what it would replace.
    """
    if needs is None:
        return
    free = None if room.free is None else room.free + present_bytes
    weights = target.weights
    why = no_room_for_draft(name, weights.name, needs(target.n_ctx), Room(free, room.total), weights.mapped_bytes)
    if why:
        raise NoRoom(why)


def load_beside(
    path: Path, head: HeadFacts | None, target: LlamaModel, log: EngineLog, *, n_threads: int, cache_type: str
) -> LlamaModel | Eagle3Layers:
    """Load a draft model, or the head that its file was found to hold. Raises UnfitDraft, CannotLoad."""
    weights = LlamaWeights(path, log)
    try:
        ours, theirs = (each.vocabulary.facts(each.name) for each in (target.weights, weights))
        if reason := why_incompatible(ours, theirs):
            raise UnfitDraft(reason)
        if head is not None:
            return Eagle3Layers(weights, head, target, log, n_threads=n_threads)
        draft = LlamaModel(weights, log, n_ctx=target.n_ctx, n_threads=n_threads, cache_type=cache_type)
        if not draft.rewinds_freely:
            draft.close()
            raise UnfitDraft(f"{weights.name} cannot draft: {CANNOT_DRAFT}")
        return draft
    except SpeculationError:
        weights.close()
        raise
