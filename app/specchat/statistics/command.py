"""`specchat stats`: what guessing was worth in the chats that are kept. Figures and names of models, nothing said."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from specchat.attachments import label
from specchat.console import Bar, say
from specchat.errors import InputRefused, UsageError
from specchat.history.command import opened_store
from specchat.statistics.advisor import Advice, advice
from specchat.statistics.figures import ReplyFigures, Sum, grouped, summed
from specchat.statistics.ledger import Ledger, by_temperature, ledger, price_tag
from specchat.statistics.reading import count_replies, read_figures
from specchat.statistics.shown import LEGEND, headline, table, temperature_table, wrapped

SCHEMA = "specchat.stats/1"
_DAY_S = 86_400


def stats(args: Namespace) -> int:
    """Print the tables, the advice, or what temperatures cost."""
    replies = read(since_days(args.days), args.model)
    if args.json:
        json.dump(as_json(replies, midnight()), sys.stdout, indent=1)
        print()
    elif not replies:
        say("no reply is kept yet" if args.days is None and args.model is None else "no such reply is kept")
    else:
        lines = _temperatures(replies) if args.temperature else _everything(replies)
        print("\n".join(lines))
    return 0


def since_days(days: int | None) -> float:
    """Since when, in seconds since 1970; None: since ever. Raises UsageError."""
    if days is None:
        return 0.0
    if days < 1:
        raise UsageError(f"--days {days}: must be 1 or more")
    return time.time() - days * _DAY_S


def midnight() -> float:
    """When today began, in seconds since 1970."""
    return datetime.now().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def read(since: float, model: str | None) -> list[ReplyFigures]:
    """The figures of the store, with a bar. Raises InputRefused for a model that wrote nothing, StoreRefused."""
    with opened_store() as store, Bar("reading replies", "tokens") as bar:
        bar.start(count_replies(store, since, model))
        found = list(read_figures(store, since, model, bar.advance))
        if not found and model is not None and count_replies(store, since):
            names = sorted({figures.model for figures in read_figures(store, since)})
            known = ", ".join(label(name) for name in names)
            raise InputRefused(f"{label(model)} wrote no reply that is kept; these did: {known}")
        return found


def tables_of(replies: Sequence[ReplyFigures]) -> dict[str, dict[str, Sum]]:
    """The sums by model, by what was chosen, by who guessed and by kind of text."""
    return {
        "model": grouped(replies, lambda figures, _: figures.model),
        "chosen": grouped(replies, lambda figures, _: figures.guess),
        "guesser": grouped(replies, lambda _, cell: cell.guesser),
        "text": grouped(replies, lambda _, cell: str(cell.work)),
    }


def advice_for(replies: Sequence[ReplyFigures]) -> tuple[str, list[Advice]]:
    """The model that wrote last, and what to choose with it: speeds of two models do not compare."""
    model = max(replies, key=lambda figures: figures.ended).model
    return model, advice(figures for figures in replies if figures.model == model)


def as_json(replies: Sequence[ReplyFigures], today: float) -> dict[str, Any]:
    """Everything as values that JSON has; speeds and times are estimates, None where too little is known."""
    model, advised = advice_for(replies) if replies else ("", [])
    return {
        "schema": SCHEMA,
        "total": _sum_as_json(summed(replies)),
        "saved_s_est": asdict(ledger(replies, today)),
        **{
            f"by_{title}": [{title: name, **_sum_as_json(each)} for name, each in sums.items()]
            for title, sums in tables_of(replies).items()
        },
        "by_temperature": [asdict(group) for group in by_temperature(replies)],
        "advice": {"model": model, "kinds": [{**asdict(each), "line": each.line} for each in advised]},
    }


def _sum_as_json(each: Sum) -> Mapping[str, Any]:
    exact = {name: getattr(each, name) for name in ("replies", "steps", "tokens", "examined", "accepted", "seconds")}
    rates = {"tokens_per_step": each.tokens_per_step, "alpha": each.alpha, "step_cost": each.step_cost}
    return {**exact, **rates, "speed_up_est": each.speed_up, "saved_s_est": each.saved_s}


def _everything(replies: Sequence[ReplyFigures]) -> list[str]:
    saved: Ledger = ledger(replies, midnight())
    titles = {
        "model": "by model",
        "chosen": "by what was chosen",
        "guesser": "by who guessed",
        "text": "by kind of text",
    }
    lines = headline(summed(replies), saved)
    for title, sums in tables_of(replies).items():
        lines += ["", *table(titles[title], sums)]
    model, advised = advice_for(replies)
    lines += ["", LEGEND, "", f"what to choose with {label(model) or 'this model'}:"]
    return [*lines, *(line for each in advised for line in wrapped(each.line, "  "))]


def _temperatures(replies: Sequence[ReplyFigures]) -> list[str]:
    groups = by_temperature(replies)
    return [*wrapped(price_tag(groups)), *(["", *temperature_table(groups)] if groups else [])]
