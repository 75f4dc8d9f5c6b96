"""Replay recorded texts through the real engine against a price list: no model, no clock, the same result anywhere.

The model is a recording that answers with the next token of the text; the clock moves by what the price list says.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specchat.errors import InputRefused
from speculation.accept import rule_named
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.engine import EndTokens, Engine
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.sampling import GREEDY
from speculation.stats import Totals, totals
from speculation.types import Logits, Tokens

LONGEST_COPY = 63  # tokens of a draft, here and for the oracle


class ReplayError(InputRefused):
    """A trace or a cost table that cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A prompt and the text that followed it, as token ids."""

    name: str
    prompt: tuple[int, ...]
    out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one text took."""

    name: str
    speedup: float  # over plain decoding
    oracle: float  # the same for whoever knows the text and copies verbatim
    tokens_per_step: float


class Clock:
    """Stands still but for what is charged to it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Recording:
    """A model that is certain of the next token of a text, and takes what a price list says."""

    can_rewind = can_tree = True

    def __init__(
        self, text: Sequence[int], n_vocab: int, cost: CostTable, clock: Clock, max_rows: int = LONGEST_COPY + 1
    ) -> None:
        self.n_vocab = n_vocab
        self.n_ctx = len(text) + 1
        self.max_rows = max_rows
        self.n_past = 0
        self._text = text
        self._cost = cost
        self._clock = clock

    def forward(self, tokens: Sequence[int] | Tokens, *, n_rows: int) -> Logits:
        self.n_past += len(tokens)
        return self._rows(range(self.n_past - n_rows + 1, self.n_past + 1))

    def forward_tree(self, pending: int, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        self.n_past += 1
        after = [self.n_past]
        for parent in parents:
            after.append(after[parent + 1] + 1)
        return self._rows(after)

    def keep(self, path: Sequence[int]) -> None:
        self.n_past += len(path)

    def _rows(self, after: Sequence[int]) -> Logits:
        """Rows behind so many tokens of the text each, whatever was written there."""
        rows = np.zeros((len(after), self.n_vocab), dtype=np.float32)
        for row, n in zip(rows, after, strict=True):
            row[self._text[min(n, len(self._text) - 1)]] = 30.0
        if len(after):
            self._clock.now_s += self._cost.forward_s(len(after))
        return rows

    def rewind(self, n_past: int) -> None:
        self.n_past = n_past


def replay(trace: Trace, cost: CostTable, controller: Controller) -> Replayed:
    """Write the text of a trace again with guesses."""
    counted, seconds = write_again(trace, cost, controller, PromptLookup())
    return Replayed(
        trace.name,
        len(trace.out) * cost.forward_s(1) / seconds,
        oracle(trace, cost),
        counted.tokens_per_step or 1.0,
    )


def write_again(trace: Trace, cost: CostTable, controller: Controller, lookup: PromptLookup) -> tuple[Totals, float]:
    """What writing the text of a trace with guesses comes to, and the seconds it takes by the price list."""
    number = {token: i for i, token in enumerate(dict.fromkeys((*trace.prompt, *trace.out)))}  # a small vocabulary
    prompt, out = [number[token] for token in trace.prompt], [number[token] for token in trace.out]
    clock = Clock()
    model = Recording(prompt + out, len(number), cost, clock)
    engine = Engine(model, {lookup.name: lookup}, controller, rule_named("coupled", 0), GREEDY, clock)
    for _ in engine.read(np.array(prompt, dtype=np.int32)):
        pass
    steps = list(engine.steps(limit=len(out), ends=EndTokens()))
    assert engine.context.tokens.tolist() == prompt + out
    return totals(steps), clock.now_s


def oracle(trace: Trace, cost: CostTable) -> float:
    """The speed-up of whoever knows the text and, at every step, takes the best verbatim copy and length.

    A copy follows a match of at least one token; dynamic programming from the end.
    """
    copies = longest_copies(trace)
    n = len(trace.out)
    price = [cost.forward_s(rows) for rows in range(1, LONGEST_COPY + 2)]
    left = [0.0] * (n + 1)  # seconds from here to the end
    for i in range(n - 1, -1, -1):
        longest = min(LONGEST_COPY, int(copies[i]), n - i - 1)
        left[i] = min(price[k] + left[i + k + 1] for k in range(longest + 1))
    return n * price[0] / left[0]


def longest_copies(trace: Trace) -> NDArray[np.int64]:
    """For each token of the text, how many from there on stand behind an earlier occurrence of the one before it."""
    text = np.array([*trace.prompt, *trace.out])
    total, start = len(text), len(trace.prompt)
    longest = np.zeros(total - start, dtype=np.int64)
    shared = np.zeros(total + 1, dtype=np.int64)  # tokens that the text shares from i + 1 and from each place on
    for i in range(total - 1, start - 1, -1):
        shared[:total] = np.where(text == text[i], shared[1:] + 1, 0)
        before = shared[1:i][text[: i - 1] == text[i - 1]]
        longest[i - start] = before.max(initial=0)
    return longest


def read_traces(path: Path) -> list[Trace]:
    """The traces of a file: a JSON list of {"name", "prompt": [ids], "out": [ids]}."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ReplayError(f"{path} is not JSON: {error}") from error
    if not isinstance(entries, list):
        raise ReplayError(f"{path} is not a list of traces")
    return [_trace(path, i, entry) for i, entry in enumerate(entries)]


def _trace(path: Path, i: int, entry: object) -> Trace:
    where = f"{path}, entry {i + 1}"
    if not isinstance(entry, dict):
        raise ReplayError(f"{where} is not an object")
    name = entry.get("name")
    if not isinstance(name, str):
        raise ReplayError(f"{where} has no name")
    tokens = []
    for key in ("prompt", "out"):
        ids = entry.get(key)
        if not isinstance(ids, list) or not all(type(token) is int and token >= 0 for token in ids):
            raise ReplayError(f'{where} ({name}): "{key}" is not a list of token ids')
        if not ids:
            raise ReplayError(f'{where} ({name}): "{key}" is empty')
        tokens.append(tuple(ids))
    return Trace(name, *tokens)


def read_cost(name: str) -> CostTable:
    """A cost table: the name of a shipped one, or a file of `n milliseconds` lines."""
    if name in shipped_costs():
        text = (resources.files("specchat.bench") / "costs" / f"{name}.txt").read_text(encoding="utf-8")
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ReplayError(f"no cost table {name}: not a file, and none of {', '.join(shipped_costs())}") from error
    seconds: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        try:
            rows, milliseconds = fields
            seconds[int(rows)] = float(milliseconds) / 1e3
        except ValueError as error:
            raise ReplayError(f"{name}, line {number}: not `n milliseconds`: {line.strip()}") from error
    if 1 not in seconds:
        raise ReplayError(f"{name} has no line for one token")
    if min(seconds) < 1 or not all(0.0 < value < float("inf") for value in seconds.values()):
        raise ReplayError(f"{name}: rows and milliseconds are positive numbers")
    return CostTable(seconds)


def shipped_costs() -> list[str]:
    """The names of the cost tables that come with specchat."""
    folder = resources.files("specchat.bench") / "costs"
    return sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.name.endswith(".txt"))


CONTROLLERS: dict[str, Callable[[CostTable], Controller]] = {
    "auto": Adaptive,
    "lookup": lambda cost: Fixed(PromptLookup.name, 8),
    "off": lambda cost: Fixed(),
}


def main(args: argparse.Namespace) -> int:
    """`specchat bench --replay`."""
    traces = read_traces(Path(args.replay))
    if args.task is not None:
        known = [trace.name for trace in traces]
        traces = [trace for trace in traces if trace.name == args.task]
        if not traces:
            raise ReplayError(f"no task {args.task} in {args.replay}; it has {', '.join(known)}")
    cost = read_cost(args.cost)
    results = [replay(trace, cost, CONTROLLERS[args.controller](cost)) for trace in traces]
    if args.json:
        fields = ("name", "speedup", "oracle", "tokens_per_step")
        print(json.dumps([{field: getattr(result, field) for field in fields} for result in results], indent=2))
        return 0
    width = max((len(result.name) for result in results), default=4)
    print(f"{'task':{width}}  speed-up  oracle  of it  tokens/step")
    for result in results:
        print(
            f"{result.name:{width}}  {result.speedup:8.3f}  {result.oracle:6.3f}  {result.speedup / result.oracle:5.2f}"
            f"  {result.tokens_per_step:11.2f}"
        )
    return 0
