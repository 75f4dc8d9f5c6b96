"""`specchat models pair X`: which models can guess for X, why others cannot, and what it would be worth here."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specchat.catalogue import Model
from specchat.console import printable, say, size
from specchat.headers import Header, HeaderError, read_header
from specchat.kept import Kept, kept_prices, prices_of
from specchat.machine import decoding_threads
from specchat.pairing import ASSUMED_ALPHA, Gain, Side, Verdict, Vocabularies, gain, judge
from specchat.quantizations import dear_checks
from specchat.shelf import Shelf, is_path

NOT_MEASURED = "not measured yet: load both once"


@dataclass(frozen=True, slots=True)
class Row:
    """A draft model and what is to be said of it."""

    draft: Side
    here: bool
    verdict: Verdict
    gain: Gain | None  # None: not measured, or of no use

    @property
    def rank(self) -> tuple[int, float, int]:
        """What can be used comes first, the most useful of it before the rest."""
        order = {True: 0, None: 1, False: 2}[self.verdict.usable]
        return order, -(self.gain.speed_up if self.gain is not None else 0.0), self.draft.size


def pair(args: Namespace) -> int:
    """A line a draft model, or JSON. Raises UnknownModel, HeaderError."""
    from speculation.llama import ENGINE_VERSION

    shelf = Shelf()
    target = _target(shelf, args.name)
    rows = rows_of(shelf, target, kept_prices(), args.threads or decoding_threads(), ENGINE_VERSION)
    if args.json:
        json.dump(_as_json(target, rows), sys.stdout, indent=2)
        print()
        return 0
    if target.header is not None and (hint := dear_checks(target.header.tensors)):
        say(f"{target.name}: {hint}")
    width = max((len(row.draft.name) for row in rows), default=0)
    for row in rows:
        fits = {True: "fits", None: "?", False: "no"}[row.verdict.usable]
        print(f"{printable(row.draft.name):{width}}  {fits:4}  {size(row.draft.size):>7}  {printable(_words(row))}")
    if any(row.gain is not None for row in rows):
        say(f"est: by prices measured here, if {ASSUMED_ALPHA:.0%} of the guesses are right; {_RANGE}")
    return 0


_RANGE = "prose had 69 %, code 90 % with the starter pair"


def rows_of(shelf: Shelf, target: Side, prices: Kept, n_threads: int, engine: str) -> list[Row]:
    """Every model that may draft, the best first."""
    vocabularies = Vocabularies()
    rows = []
    for model in shelf.catalogue.models:
        if model.is_head or ("draft" not in model.roles and not model.origin):
            continue
        draft = _side(shelf, model)
        verdict = judge(target, draft, shelf.catalogue, vocabularies)
        known = None
        if verdict.usable and target.header is not None and draft.header is not None:
            list_of_target, _ = prices_of(prices, target.header.path.stem, n_threads, engine)
            _, of_draft = prices_of(prices, draft.header.path.stem, n_threads, engine)
            if list_of_target is not None and of_draft is not None:
                known = gain(list_of_target, of_draft.forward_s(1))
        rows.append(Row(draft, draft.header is not None, verdict, known))
    return sorted(rows, key=lambda row: row.rank)


def _target(shelf: Shelf, name: str) -> Side:
    if is_path(name):
        path = Path(os.path.expanduser(name))
        return Side(path.stem, header=read_header(path))
    model = shelf.catalogue.find(name)
    return Side(model.id, model, read_header(shelf.store.path(model)) if shelf.store.has(model) else None)


def _side(shelf: Shelf, model: Model) -> Side:
    header: Header | None = None
    trouble = ""
    if shelf.store.has(model):
        try:
            header = read_header(shelf.store.path(model))
        except HeaderError as error:
            trouble = error.problem
    return Side(model.id, model, header, trouble)


def _words(row: Row) -> str:
    if not row.verdict.usable:
        return row.verdict.reason
    if row.gain is None:
        return NOT_MEASURED
    if row.gain.draft_tokens == 0:
        return "slower than plain at any length here (est)"
    return (
        f"x{row.gain.speed_up:.2f} est, {row.gain.tokens_per_step:.1f} tokens a step "
        f"with drafts of {row.gain.draft_tokens}"
    )


def _as_json(target: Side, rows: list[Row]) -> dict[str, Any]:
    return {
        "target": target.name,
        "alpha_assumed": ASSUMED_ALPHA,
        "drafts": [
            {
                "id": row.draft.name,
                "size": row.draft.size,
                "here": row.here,
                "usable": row.verdict.usable,
                "reason": row.verdict.reason,
                "expected": None if row.gain is None else asdict(row.gain),
            }
            for row in rows
        ],
    }
