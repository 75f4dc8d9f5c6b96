"""`specchat bench`: the same prompts with every guesser in turn, on the real model, in one run.

Figures are ratios within the run. The order of the guessers rotates from round to round, because a laptop gets warm;
each run starts a new session, so that no guesser profits from what it learned of the same text before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean, median

from specchat.bench.workloads import Workload
from specchat.conversation import Message, Role
from specchat.loading import Engines
from specchat.session import ChatSession, Guess, Reply, ReplySettings
from speculation.types import PLAIN


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a text parts from the plain one."""

    at: int  # token of the reply
    gap: float  # between the target's two logits there: near 0 is a tie


@dataclass(frozen=True, slots=True)
class Cell:
    """One guesser on one workload."""

    workload: str
    guesser: str
    tokens: int  # of a round
    tokens_per_s: float  # median over rounds
    slowest: float
    fastest: float
    tokens_per_step: float
    alpha: float | None
    step_cost: float | None  # time of a guessed step / time of a plain step of `off`
    speedup: float  # measured: median over rounds of this guesser's speed / that of `off` in the same round
    identical: bool  # to the text of `off`
    difference: Difference | None  # the first one, where it is not
    peak_memory_mb: int | None  # of the process so far


@dataclass(frozen=True, slots=True)
class _Run:
    replies: tuple[Reply, ...]
    texts: tuple[tuple[int, ...], ...]

    @property
    def tokens(self) -> int:
        return sum(reply.totals.emitted for reply in self.replies)

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / sum(reply.totals.seconds for reply in self.replies)

    def total(self, name: str) -> int:
        return sum(int(getattr(reply.totals, name)) for reply in self.replies)


def measure_workloads(
    engines: Engines, workloads: Sequence[Workload], guessers: Sequence[Guess], settings: ReplySettings, rounds: int
) -> Iterator[Cell]:
    """The cells of each workload as soon as it is done; `off` is always among the guessers."""
    order = [Guess.OFF, *(guess for guess in guessers if guess is not Guess.OFF)]
    for workload in workloads:
        runs: dict[Guess, list[_Run]] = {guess: [] for guess in order}
        for turn in range(rounds):
            for guess in order[turn % len(order) :] + order[: turn % len(order)]:
                runs[guess].append(_run(engines, workload, guess, settings))
        yield from (_cell(engines, workload, guess, runs) for guess in order)


def summary(cells: Sequence[Cell]) -> dict[str, float]:
    """The geometric mean of the speed-up of each guesser over the workloads."""
    names = dict.fromkeys(cell.guesser for cell in cells)
    return {name: geometric_mean(cell.speedup for cell in cells if cell.guesser == name) for name in names}


def as_json(cell: Cell) -> dict[str, object]:
    """A cell as plain data."""
    return asdict(cell)


def _run(engines: Engines, workload: Workload, guess: Guess, settings: ReplySettings) -> _Run:
    replies, texts = [], []
    for prompt in workload.prompts:
        session = ChatSession(engines, settings)
        session.guess = guess
        *_, reply = session.reply(prompt)
        assert isinstance(reply, Reply)
        replies.append(reply)
        texts.append(tuple(token for step in reply.steps for token in step.tokens))
    return _Run(tuple(replies), tuple(texts))


def _cell(engines: Engines, workload: Workload, guess: Guess, runs: dict[Guess, list[_Run]]) -> Cell:
    ours, plain = runs[guess], runs[Guess.OFF]
    first = ours[0]
    speeds = [run.tokens_per_s for run in ours]
    examined = first.total("examined")
    difference = _first_difference(engines, workload, first, plain[0])
    return Cell(
        workload.name,
        str(guess),
        first.tokens,
        median(speeds),
        min(speeds),
        max(speeds),
        first.tokens / first.total("steps"),
        first.total("accepted") / examined if examined else None,
        _step_cost(ours, plain),
        median(a.tokens_per_s / b.tokens_per_s for a, b in zip(ours, plain, strict=True)),
        difference is None,
        difference,
        _peak_memory_mb(),
    )


def _step_cost(ours: Sequence[_Run], plain: Sequence[_Run]) -> float | None:
    guessed = [s for run in ours for reply in run.replies for s in reply.steps if s.guesser != PLAIN]
    alone = [s.draft_s + s.verify_s + s.accept_s for run in plain for reply in run.replies for s in reply.steps]
    if not guessed:
        return None
    return median(s.draft_s + s.verify_s + s.accept_s for s in guessed) / median(alone)


def _first_difference(engines: Engines, workload: Workload, ours: _Run, plain: _Run) -> Difference | None:
    for prompt, mine, theirs in zip(workload.prompts, ours.texts, plain.texts, strict=True):
        at = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        if at is None:
            if len(mine) == len(theirs):
                continue
            return Difference(min(len(mine), len(theirs)), 0.0)
        target = engines.target
        target.rewind(0)
        ids = engines.format.prompt([Message(Role.USER, prompt)]).tolist()
        row = target.forward([*ids, *theirs[:at]], n_rows=1)[0]
        return Difference(at, abs(float(row[mine[at]] - row[theirs[at]])))
    return None


def _peak_memory_mb() -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # which Windows lacks

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10))
