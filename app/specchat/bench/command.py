"""`specchat bench`: which of its parts is asked for, and how its figures are shown."""

from __future__ import annotations

import argparse
import csv
import json
import operator
import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from specchat.bench import acceptance, measure, replay
from specchat.bench.cells import shown
from specchat.bench.data import read_data
from specchat.bench.measure import Cell, measure_workloads, summary
from specchat.bench.workloads import ACCEPTANCE, WORKLOADS, Workload
from specchat.console import say
from specchat.errors import InputRefused, UsageError
from specchat.exit_codes import ExitCode
from specchat.loading import Engines
from specchat.modes import MODES
from specchat.opening import load_draft, open_here
from specchat.reply import OWN
from specchat.session import Guess, ReplySettings
from specchat.shelf import Shelf
from speculation.sampling import GREEDY

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
NEAR_TIE = 0.5  # gap of two logits below which a different token says nothing about guessing


def main(args: argparse.Namespace) -> int:
    """Run what is asked for. Returns 1 when an --assert is not met."""
    if args.replay is not None:
        return replay.main(args)
    if args.history is not None:
        from specchat.statistics.history_bench import history

        return history(args)
    if args.endpoint is not None:
        from specchat.bench.remote import bench_server

        if args.suite == "acceptance":
            raise UsageError("the suite acceptance needs both models on this machine; a server shows no probabilities")
        return bench_server(args, _workloads(args))
    checks = [parsed(text) for text in args.asserts]
    if args.suite == "acceptance":
        return _acceptance(args)
    workloads = _workloads(args)
    session = open_here(argparse.Namespace(**{**vars(args), "guess": "off"}))
    engines = session.engines
    try:
        guessers = _guessers(args, engines)
        settings = ReplySettings(GREEDY, seed=0, max_tokens=args.max_tokens or 120)
        say(_heading(engines))
        measured = measure_workloads(engines, workloads, guessers, settings, args.repeat)
        cells = shown(measured, _HEAD, None if args.json else _row)
    finally:
        engines.close()
    means = summary(cells)
    if args.json:
        found = {"schema": "specchat.bench/1", "model": engines.target.weights.name, "mean": means}
        print(json.dumps({**found, "cells": [measure.as_json(cell) for cell in cells]}, indent=2))
    else:
        print("geometric mean of the speed-ups: " + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items()))
    if args.csv is not None:
        write_csv(Path(args.csv), cells)
    failed = [text for text, check in zip(args.asserts, checks, strict=True) if not check(cells)]
    for text in failed:
        say(f"not met: {text}")
    return ExitCode.CHECK_FAILED if failed else ExitCode.DONE


def parsed(text: str) -> Callable[[Sequence[Cell]], bool]:
    """A condition such as auto.speedup>=1.2, rewrite.auto.speedup>1.5 or identical. Raises UsageError."""
    if text == "identical":
        return lambda cells: all(c.difference is None or c.difference.gap < NEAR_TIE for c in cells)
    found = re.fullmatch(
        rf"(?:([\w -]+)\.)?({'|'.join(MODES)})\.(\w+)\s*(>=|<=|>|<)\s*(-?[\d.]+)",
        text.strip(),
    )
    if found is None or found[3] not in _FIGURES:
        raise UsageError(f"--assert {text}: write it like auto.speedup>=1.2, with {', '.join(_FIGURES)}, or identical")
    workload, guesser, figure, compare, limit = found.groups()

    def check(cells: Sequence[Cell]) -> bool:
        chosen = [c for c in cells if c.guesser == guesser and workload in (None, c.workload)]
        if workload is None and figure == "speedup" and chosen:
            return _COMPARE[compare](summary(chosen)[guesser], float(limit))
        values = [getattr(c, figure) for c in chosen]
        return bool(values) and all(v is not None and _COMPARE[compare](v, float(limit)) for v in values)

    return check


_FIGURES = ("speedup", "tokens_per_s", "tokens_per_step", "alpha", "step_cost")


def write_csv(path: Path, cells: Sequence[Cell]) -> None:
    """The cells as a table with a header. Raises InputRefused where it cannot be written."""
    rows = [{**measure.as_json(c), "difference": "" if c.difference is None else c.difference.at} for c in cells]
    try:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputRefused(f"cannot write {path}: {error.strerror or error}") from error


_HEAD = "workload       guesser  tok/s (spread)        tokens/step  accepted  step cost  speed-up  text"


def _row(c: Cell) -> str:
    accepted = "-" if c.alpha is None else f"{c.alpha:.0%}"
    cost = "-" if c.step_cost is None else f"{c.step_cost:.2f}"
    text = "identical" if c.difference is None else f"token {c.difference.at}, gap {c.difference.gap:.3f}"
    speed = f"{c.tokens_per_s:.1f} ({c.slowest:.1f} to {c.fastest:.1f})"
    return (
        f"{c.workload[:14]:14} {c.guesser:8} {speed:21} {c.tokens_per_step:11.2f} {accepted:>9} {cost:>10} "
        f"{c.speedup:9.3f}  {text}"
    )


def _heading(engines: Engines) -> str:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    draft = f" + {engines.draft_name}" if engines.draft_name else ""
    return (
        f"{engines.target.weights.name}{draft} · {engines.target.weights.back_end}, {engines.options.n_threads} threads"
        f"{load} · {datetime.now():%Y-%m-%d %H:%M} · greedy; compare figures of this run only, on a quiet machine"
    )


def _workloads(args: argparse.Namespace) -> list[Workload]:
    if args.data is not None:
        return read_data(Path(args.data), args.count)
    if args.suite is None:
        return list(WORKLOADS)
    return [workload for workload in WORKLOADS if workload.name == args.suite]


def _guessers(args: argparse.Namespace, engines: Engines) -> list[Guess]:
    """The guessers to compare; the draft model only where one is here or was asked for."""
    wanted = [Guess(name) for name in args.guessers.split(",") if name in list(Guess)]
    unknown = [name for name in args.guessers.split(",") if name not in list(Guess)]
    if unknown or not wanted:
        raise UsageError(f"--guessers {args.guessers}: choose from {', '.join(Guess)}, with commas")
    if Guess.DRAFT in wanted and engines.draft is None:
        shelf = Shelf()
        target = args.model or shelf.catalogue.default_target
        paired = shelf.paired_draft(target) if engines.eagle3 is None else None
        if paired is not None and shelf.store.has(paired):
            engines.load_draft(shelf.store.path(paired))
        else:
            wanted.remove(Guess.DRAFT)
            say("no draft model is here for this target, so draft is left out")
    for guess in OWN:
        if guess in wanted and guess not in engines.own:
            wanted.remove(guess)
            say(f"{engines.why_without(guess)}, so {guess} is left out")
    return wanted


def _acceptance(args: argparse.Namespace) -> int:
    session = open_here(argparse.Namespace(**{**vars(args), "guess": "off"}))
    engines = session.engines
    try:
        if engines.draft is None:
            load_draft(engines, Shelf(), args)
        if engines.draft is None:
            raise UsageError(f"{engines.draft_name} is an EAGLE-3 head; acceptance is measured for draft models")
        say(_heading(engines))
        found = [acceptance.measure_acceptance(engines, engines.draft, task) for task in ACCEPTANCE]
    finally:
        engines.close()
    if args.json:
        json.dump([acceptance.as_json(one) for one in found], sys.stdout, indent=2)
        print()
        return 0
    for one in found:
        print(
            f"{one.task} ({one.tokens} tokens)\n"
            f"  greedy agreement {one.greedy_agreement:.3f}\n"
            f"  sum of min(p, q): {one.min_p_q_greedy:.3f} on greedy text, {one.min_p_q_sampled:.3f} on sampled text\n"
            f"  tokens per step at k = 4: {one.tokens_per_step_4:.2f} (formula {one.formula_4:.2f}), "
            f"at k = 8: {one.tokens_per_step_8:.2f} (formula {one.formula_8:.2f})\n"
            f"  lookup: two tokens {one.lookup_two_tokens:.3f}, as deployed {one.lookup_tokens_per_step:.2f} a step"
        )
    return 0
