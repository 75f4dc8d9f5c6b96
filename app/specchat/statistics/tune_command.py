"""`specchat tune`: settings of the lookups, tried on the chats that are kept. It suggests, and writes when asked to."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specchat.attachments import label
from specchat.bench.replay import Trace
from specchat.console import Bar, say
from specchat.errors import NotHere
from specchat.history.command import opened_store
from specchat.reply import Guess
from specchat.settings import Settings, SettingsFile, settings_path
from specchat.shelf import Shelf
from specchat.statistics.command import since_days
from specchat.statistics.past import Written, file_of, last_written, price_list, reader_of
from specchat.statistics.shown import wrapped
from specchat.statistics.tuning import LEAST_COPY, LEAST_TEXTS, Choice, Tried, Tuning, present_choice
from specchat.statistics.tuning import tune as tried_on
from speculation.cost import CostTable
from speculation.types import SpeculationError

MOST_REPLIES = 200
MOST_TOKENS = 60_000  # of replies, and
MOST_READ = 400_000  # of the prompts before them: a minute or two in all
SCHEMA = "specchat.tune/1"


def tune(args: Namespace) -> int:
    """Print what was tried and what follows. Ctrl-C ends it, and nothing is written."""
    file = SettingsFile(settings_path())
    settings = file.load()
    with opened_store() as store:
        written = last_written(store, MOST_REPLIES, since_days(args.days))
    texts = _texts(written)
    if not texts:
        say("nothing to tune by: no kept reply can be replayed")
        return 0
    with Bar("replaying", "parts") as bar:
        bar.start(1)
        found = tried_on(texts, present_choice(settings.guess), bar.move_to)
    if uses_draft(settings):
        found = replace(found, best=None)
    if args.json:
        json.dump(as_json(found, len(texts)), sys.stdout, indent=1)
        print()
    else:
        print("\n".join([*lines(found, len(texts)), "", *wrapped(_verdict(found, settings))]))
    if args.write and found.best is not None:
        file.save(replace(settings, guess=replace(settings.guess, **_keys(found.best.choice))))
        say(f"written to {label(str(file.path))}")
    return 0


def uses_draft(settings: Settings) -> bool:
    """Whether a draft model guesses too, of which a replay of lookups knows nothing."""
    modes = [settings.guess.mode, *(target.guess for target in settings.targets.values())]
    drafts = [settings.guess.draft, *(target.draft for target in settings.targets.values())]
    return Guess.DRAFT in modes or any(draft not in (None, "auto", "none") for draft in drafts)


def lines(found: Tuning, n_texts: int) -> list[str]:
    """What was tried, for people."""
    replies = f"{n_texts} repl{'y' if n_texts == 1 else 'ies'}, {found.present.tokens:,} tokens"
    head = f"{found.copied:.0%} of your last {replies}, is copied, in runs of {LEAST_COPY} tokens or more"
    rows = [f"{'lookups alone; no draft model takes part':46}{'tokens/step':>12}{'speed (est)':>13}"]
    rows += [_row(each, is_present=each is found.present) for each in found.tried]
    return [*wrapped(head), "", *rows]


def _row(each: Tried, *, is_present: bool) -> str:
    mark = " (now)" if is_present else "" if each.choice.can_be_set else " (no setting)"
    return f"{f'{each.choice}{mark}':46}{each.tokens_per_step:12.2f}{f'x{each.speed_up:.2f}':>13}"


def _verdict(found: Tuning, settings: Settings) -> str:
    if uses_draft(settings):
        return (
            "nothing suggested: a draft model guesses too, which this cannot replay; see: specchat bench --history 20"
        )
    if not found.is_enough:
        return f"not enough yet to suggest anything: {LEAST_TEXTS} replies are the least"
    if found.best is None:
        return "nothing worth changing: no choice beats the present one on both halves of your replies"
    keys = ", ".join(f"guess.{key} = {_spelled(value)}" for key, value in _keys(found.best.choice).items())
    return f"better: {keys}; about {found.gain:.0%} faster (est). specchat tune --write puts it into the settings"


def as_json(found: Tuning, n_texts: int) -> dict[str, Any]:
    """The same as values that JSON has."""
    return {
        "schema": SCHEMA,
        "replies": n_texts,
        "tokens": found.present.tokens,
        "copied": found.copied,
        "is_enough": found.is_enough,
        "present": _tried_as_json(found.present),
        "best": None if found.best is None else {**_tried_as_json(found.best), "settings": _keys(found.best.choice)},
        "gain_est": found.gain,
        "tried": [_tried_as_json(each) for each in found.tried],
    }


def _tried_as_json(each: Tried) -> dict[str, Any]:
    return {"choice": str(each.choice), "tokens_per_step": each.tokens_per_step, "speed_up_est": each.speed_up}


def _keys(choice: Choice) -> dict[str, Any]:
    """What the settings of guessing have to say for a choice."""
    if choice.mode is Guess.AUTO:
        return {"mode": str(choice.mode), "pause_below": choice.pause_below}
    return {"mode": str(choice.mode)} | ({"length": choice.length} if choice.mode is Guess.LOOKUP else {})


def _spelled(value: Any) -> str:
    return "auto" if value is None else json.dumps(value)


def _texts(written: Sequence[Written]) -> list[tuple[Trace, CostTable]]:
    """The replies as traces, the newest that fit into what is read in a minute or two, in the order of time."""
    shelf = Shelf()
    by_model: dict[str, list[Written]] = {}
    for each in written:
        by_model.setdefault(each.model, []).append(each)
    found: list[tuple[float, Trace, CostTable]] = []
    for name, of_model in by_model.items():
        cost = price_list(name, of_model)
        if cost is None:
            say(f"left out: {len(of_model)} of {label(name)}, whose steps were not timed here; load it once")
            continue
        try:
            with reader_of(shelf, file_of(shelf, name)) as reader:
                prompts = [(each, reader.prompt(each)) for each in of_model]
        except (NotHere, SpeculationError) as error:
            say(f"left out: {len(of_model)} replies: {error}")
            continue
        found += [(each.ended, Trace("", prompt, each.tokens), cost) for each, prompt in prompts if prompt]
    return _newest(sorted(found, key=lambda each: -each[0]))


def _newest(found: Sequence[tuple[float, Trace, CostTable]]) -> list[tuple[Trace, CostTable]]:
    kept: list[tuple[Trace, CostTable]] = []
    written = read = 0
    for _, trace, cost in found:
        written, read = written + len(trace.out), read + len(trace.prompt)
        if kept and (written > MOST_TOKENS or read > MOST_READ):
            break
        kept.append((trace, cost))
    return kept[::-1]
