"""`specchat bench --endpoint`: the same prompts on a server, which guesses as it was started.

It is one row a workload: nobody here can switch its guesses off, so there is no speed-up to be measured.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from specchat.bench.cells import shown
from specchat.bench.workloads import Workload
from specchat.console import say
from specchat.dialogue import Dialogue
from specchat.errors import InputRefused, UsageError
from specchat.opening import open_session
from specchat.remote.telling import NOT_REPORTED, summed
from specchat.reply import Reply, ReplySettings
from speculation.sampling import GREEDY
from speculation.types import Interrupted


@dataclass(frozen=True, slots=True)
class RemoteCell:
    """One workload; None: the server does not report it."""

    workload: str
    tokens: int | None  # of a round
    tokens_per_s: float | None  # median over rounds
    slowest: float | None
    fastest: float | None
    clock: str  # whose seconds these are: "server", or "seen here" with network and waiting included
    tokens_per_step: float | None
    drafted: int | None  # of all rounds
    accepted: int | None
    draft_acceptance: float | None  # accepted / drafted


def bench_server(args: argparse.Namespace, workloads: Sequence[Workload]) -> int:
    """Run the prompts of each workload on the server of --endpoint. Returns the exit code."""
    if args.asserts:
        raise UsageError("--assert compares guessers, and a server does not say which of them it uses")
    session = open_session(args)
    try:
        session.settings = ReplySettings(GREEDY, seed=0, max_tokens=args.max_tokens or 120)
        say(f"{session.model.name} · {session.model.where} · greedy; the server guesses as it was started")
        cells = shown(measured(session, workloads, args.repeat), _HEAD, None if args.json else _row, session.stop)
    finally:
        session.close()
    for notice in session.notices:
        say(f"note: {notice}")
    if args.json:
        found = {"schema": "specchat.bench-server/1", "model": session.model.name, "endpoint": session.model.where}
        print(json.dumps({**found, "speedup": None, "cells": [asdict(cell) for cell in cells]}, indent=2))
    else:
        say("no speed-up: whether guessing made it faster can only be measured against a server started without it")
    if args.csv is not None:
        _write_csv(Path(args.csv), cells)
    return 0


def measured(session: Dialogue, workloads: Sequence[Workload], rounds: int) -> Iterator[RemoteCell]:
    """The cell of each workload as soon as it is done."""
    for workload in workloads:
        runs = [[_reply(session, prompt) for prompt in workload.prompts] for _ in range(rounds)]
        yield cell_of(workload.name, runs)


def cell_of(name: str, runs: Sequence[Sequence[Reply]]) -> RemoteCell:
    """What the rounds of one workload come to."""
    every = [reply for run in runs for reply in run]
    whole, rounds = summed(every), [summed(run) for run in runs]
    by_server = [each.tokens_per_s for each in rounds if each.tokens_per_s is not None]
    seen = [speed for run in runs if (speed := _seen(run)) is not None]
    is_server = len(by_server) == len(rounds)
    speeds = by_server if is_server else seen
    return RemoteCell(
        workload=name,
        tokens=rounds[0].output_tokens,
        tokens_per_s=median(speeds) if speeds else None,
        slowest=min(speeds, default=None),
        fastest=max(speeds, default=None),
        clock="server" if is_server else "seen here",
        tokens_per_step=whole.tokens_per_step,
        drafted=whole.drafted,
        accepted=whole.accepted,
        draft_acceptance=whole.draft_acceptance,
    )


def _seen(run: Sequence[Reply]) -> float | None:
    """Tokens a second as they came; the first one of each reply began the measurement."""
    figures = summed(run)
    if figures.output_tokens is None or not figures.elapsed_s:
        return None
    return max(0, figures.output_tokens - len(run)) / figures.elapsed_s


def _reply(session: Dialogue, prompt: str) -> Reply:
    session.new()
    *_, reply = session.reply(prompt)
    assert isinstance(reply, Reply)
    if reply.finish is None:
        raise Interrupted("the bench was stopped")
    return reply


_HEAD = "workload       tok/s (spread)          whose clock  tokens/step  drafted  accepted"


def _row(cell: RemoteCell) -> str:
    speed = NOT_REPORTED
    if cell.tokens_per_s is not None:
        speed = f"{cell.tokens_per_s:.1f} ({cell.slowest:.1f} to {cell.fastest:.1f})"
    step = NOT_REPORTED if cell.tokens_per_step is None else f"{cell.tokens_per_step:.2f}"
    drafted = "-" if cell.drafted is None else str(cell.drafted)
    accepted = "-" if cell.accepted is None else str(cell.accepted)
    if cell.draft_acceptance is not None:
        accepted += f" ({cell.draft_acceptance:.0%})"
    return f"{cell.workload[:14]:14} {speed:23} {cell.clock:11} {step:>12} {drafted:>8}  {accepted}"


def _write_csv(path: Path, cells: Sequence[RemoteCell]) -> None:
    rows = [asdict(cell) for cell in cells]
    try:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputRefused(f"cannot write {path}: {error.strerror or error}") from error
