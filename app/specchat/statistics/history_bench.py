"""`specchat bench --history N`: what a draft model would have given on the last kept replies; it alone is loaded."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from specchat.attachments import label
from specchat.console import say, watched
from specchat.draft_replay import Kind, PastReply, Verdict, agreements, kinds_of, verdict
from specchat.errors import InputRefused, NotHere, UsageError
from specchat.fit import CONTEXT
from specchat.history.command import opened_store
from specchat.kept import kept_prices, prices_of
from specchat.loading import UnfitDraft
from specchat.machine import decoding_threads
from specchat.opening import draft_path
from specchat.pairing import CANNOT_DRAFT
from specchat.shelf import Shelf
from specchat.statistics.past import (
    Reader,
    Written,
    file_of,
    last_written,
    name_in_catalogue,
    name_in_store,
    of_one_model,
    price_list,
    reader_of,
)
from speculation.cost import CostTable, measure
from speculation.llama import ENGINE_VERSION, EngineLog, LlamaModel, LlamaWeights
from speculation.stats import ENOUGH_STEPS
from speculation.vocabulary import why_incompatible

MOST = 10_000  # replies
ALONE = 0.95  # of the tokens: what a draft model agrees with so far it could write by itself,
LEAST_ALONE = 200  # of which so many were looked at
SCHEMA = "specchat.bench.history/1"


def history(args: Namespace) -> int:
    """Read the replies with the draft model and print what it would have given.

    Raises UsageError, InputRefused, NotHere, UnfitDraft, CannotLoad, Interrupted.
    """
    if not 1 <= args.history <= MOST:
        raise UsageError(f"--history {args.history}: must be from 1 to {MOST}")
    shelf = Shelf()
    with opened_store() as store:
        written = last_written(store, args.history, model=name_in_store(shelf, args.model))
    if not written:
        raise InputRefused("no kept reply can be replayed: none is here whose tokens are known")
    name, replies = of_one_model(written)
    if len(replies) < len(written):
        say(f"{len(written) - len(replies)} of the last {len(written)} replies are of other models and left out")
    with reader_of(shelf, file_of(shelf, name, args.model)) as reader:
        past = past_replies(reader, replies)
        if not past:
            raise InputRefused("no kept reply can be replayed: they are of another vocabulary than the model's")
        path = draft_path(shelf, name_in_catalogue(shelf, name), args.draft, agreed=args.yes)
        cost = price_list(name, replies, args.threads)
        if cost is None:
            raise NotHere(f"it is not known what steps of {label(name)} cost here; load it once")
        found, agreed = _replayed(reader, path, past, cost, args)
    if args.json:
        json.dump(as_json(name, path.stem, found, agreed), sys.stdout, indent=1)
        print()
        return 0
    print(found.line(label(path.stem)))
    if found.all.steps >= ENOUGH_STEPS:
        print(f"best with {found.k} token{'' if found.k == 1 else 's'} a draft")
        print(alone(label(path.stem), agreed))
    return 0


def past_replies(reader: Reader, written: Sequence[Written]) -> list[PastReply]:
    """The replies that the reader knows the tokens of, with their prompts."""
    piece = reader.vocabulary.piece
    return [
        PastReply(prompt, each.tokens, kinds_of([*map(piece, each.tokens)]))
        for each in written
        if (prompt := reader.prompt(each))
    ]


def as_json(model: str, draft: str, found: Verdict, agreed: Mapping[Kind, Agreed]) -> dict[str, Any]:
    """The same as values that JSON has; the speed-up is None from too few steps."""
    return {
        "schema": SCHEMA,
        "model": model,
        "draft": draft,
        "replies": found.replies,
        "drafted": found.k,
        "tokens": found.all.tokens,
        "steps": found.all.steps,
        "tokens_per_step": found.all.per_step,
        "speed_up_est": found.speed_up if found.all.steps >= ENOUGH_STEPS else None,
        "by_kind": {
            str(kind): {**asdict(each), "tokens_per_step": each.per_step} for kind, each in found.by_kind.items()
        },
        "agreed": {str(kind): each.share for kind, each in agreed.items()},
        "seconds": found.seconds,
    }


@dataclass(frozen=True, slots=True)
class Agreed:
    """How many tokens of one kind are the draft model's first choice where they stand."""

    same: int
    tokens: int

    @property
    def share(self) -> float:
        return self.same / self.tokens


def agreed_by_kind(past: Sequence[PastReply], agreed: Sequence[Sequence[bool]]) -> dict[Kind, Agreed]:
    """How far a draft model agrees with the replies."""
    found: dict[Kind, list[bool]] = {}
    for each, choices in zip(past, agreed, strict=True):
        for kind, same in zip(each.kinds, choices, strict=True):
            found.setdefault(kind, []).append(same)
    return {kind: Agreed(sum(same), len(same)) for kind, same in sorted(found.items())}


def alone(draft: str, agreed: Mapping[Kind, Agreed]) -> str:
    """What that says of the draft model as one that writes by itself."""
    told = ", ".join(f"{kind} {each.share:.0%}" for kind, each in agreed.items())
    said = f"its first choice is the token that was written: {told}"
    if enough := [kind for kind, each in agreed.items() if each.share >= ALONE and each.tokens >= LEAST_ALONE]:
        return f"{said}; for {' and '.join(enough)} {draft} alone may be enough"
    return said


def _replayed(
    reader: Reader, path: Path, past: Sequence[PastReply], cost: CostTable, args: Namespace
) -> tuple[Verdict, dict[Kind, Agreed]]:
    """Load the draft model, read everything with it, and price that as on this machine."""
    threads = args.threads or decoding_threads()
    started = perf_counter()
    with (
        watched(f"reading with {path.stem}") as work,
        _draft_model(path, reader, past, threads, args.cache_type) as draft,
    ):
        draft.interrupt = lambda: not work.is_wanted
        agreed = agreements(draft, reader.vocabulary.n_tokens, past, work.progress)
        known = prices_of(kept_prices(), draft.weights.name, threads, ENGINE_VERSION)[1]
        step_s = (known or measure(draft, perf_counter, widths=(1,))).forward_s(1)
    return verdict(past, agreed, cost, step_s, perf_counter() - started), agreed_by_kind(past, agreed)


@contextmanager
def _draft_model(
    path: Path, reader: Reader, past: Sequence[PastReply], threads: int, cache_type: str
) -> Iterator[LlamaModel]:
    """The draft model with room for the longest of the texts, up to the usual context."""
    log = EngineLog()
    weights = LlamaWeights(path, log)
    try:
        facts = weights.vocabulary.facts(weights.name)
        if (reason := why_incompatible(reader.vocabulary.facts(reader.name), facts)) is not None:
            raise UnfitDraft(reason)
        longest = max(len(each.prompt) + len(each.reply) for each in past)
        draft = LlamaModel(weights, log, n_ctx=min(longest, CONTEXT), n_threads=threads, cache_type=cache_type)
        try:
            if not draft.rewinds_freely:
                raise UnfitDraft(f"{weights.name} cannot draft: {CANNOT_DRAFT}")
            yield draft
        finally:
            draft.close()
    finally:
        weights.close()
