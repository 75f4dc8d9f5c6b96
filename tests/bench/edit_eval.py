"""Do guesses change how well a model edits? EditEval's tasks with guessing off and on, judged by their own tests.

    SPECCHAT_SHARED=FOLDER python -m tests.bench.edit_eval [--count 60] [--modes off auto] [--ask rewrite|chat]

`rewrite` is the core of `specchat rewrite` with all changes accepted, `chat` a question whose reply holds the code in a
fence. What the model writes is run in a process of its own, with limits, in an empty folder. The first modes of a
task alternate, so that their times can be compared: on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from specchat.conversation import Message, Role
from specchat.errors import Refusal
from specchat.kept import kept_prices
from specchat.loading import EngineOptions, load_engines
from specchat.machine import decoding_threads
from specchat.rewrite.generate import Rewriting
from specchat.rewrite.outcome import Outcome
from specchat.rewrite.source import source_of
from specchat.session import ChatSession, Guess, Reply, ReplySettings
from speculation.llama import EngineLog
from speculation.sampling import GREEDY
from speculation.types import SpeculationError
from tests.conftest import model_file

TEST_S = 10  # seconds that the tests of a task may take
MEMORY = 2 << 30  # bytes
MOST_TOKENS = 512  # of a reply in a chat
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Done:
    """One task in one mode."""

    task: str
    mode: str
    text: str
    passed: bool
    tokens: int
    steps: int
    seconds: float  # reading and writing


def passes(code: str, test: str) -> bool:
    """Whether the tests of a task hold for the code."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (TEST_S, TEST_S))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run(
                [sys.executable, "-I", "-c", f"{code}\n\n{test}\ncheck()\n"],
                cwd=folder,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TEST_S,
                preexec_fn=limits,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return run.returncode == 0


def rewritten(session: ChatSession, task: dict[str, str]) -> tuple[str, int, int]:
    """The file after `specchat rewrite`, tokens and steps; the old file where nothing may be written."""
    source = source_of(task["input"].encode(), "task.py")
    try:
        *_, outcome = Rewriting(session, source, task["instruction"]).run()
    except (Refusal, SpeculationError):
        return task["input"], 0, 0
    assert isinstance(outcome, Outcome)
    text = task["input"] if outcome.data is None else outcome.data.decode()
    return text, outcome.totals.emitted, outcome.totals.steps


def chatted(session: ChatSession, task: dict[str, str]) -> tuple[str, int, int]:
    """The code of a reply, tokens and steps."""
    session.messages = [Message(Role.SYSTEM, "Reply with the whole changed code in one fence.")]
    *_, reply = session.reply(f"{task['instruction']}\n\n{task['input']}")
    assert isinstance(reply, Reply)
    found = FENCE.search(reply.text)
    return found[1] if found else reply.text, reply.totals.emitted, reply.totals.steps


def runs(session: ChatSession, tasks: list[dict[str, str]], modes: list[str], ask: str) -> Iterator[Done]:
    """Every task in every mode, the order turned round from task to task."""
    for i, task in enumerate(tasks):
        for mode in modes if i % 2 == 0 else modes[::-1]:
            session.engines.target.rewind(0)
            session.guess = Guess(mode)
            started = perf_counter()
            text, tokens, steps = (rewritten if ask == "rewrite" else chatted)(session, task)
            seconds = perf_counter() - started
            yield Done(task["task_id"], mode, text, passes(text, task["test"]), tokens, steps, seconds)


def main() -> None:
    options = argparse.ArgumentParser(description="EditEval with guessing off and on")
    options.add_argument("--count", type=int, default=60)
    options.add_argument("--modes", nargs="+", choices=[str(guess) for guess in Guess], default=["off", "auto"])
    options.add_argument("--ask", choices=["rewrite", "chat"], default="rewrite")
    options.add_argument("--model", default="qwen2.5-coder-1.5b")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    shared = Path(os.environ.get("SPECCHAT_SHARED", "../shared"))
    lines = (shared / "data" / "edit_eval.jsonl").read_text("utf-8").splitlines()
    tasks = [json.loads(line) for line in lines[: given.count]]
    engine_options = EngineOptions(n_threads=decoding_threads())
    engines = load_engines(model_file(given.model), engine_options, EngineLog(), prices=kept_prices())
    settings = ReplySettings(sampling=GREEDY, max_tokens=MOST_TOKENS)
    found = []
    for done in runs(ChatSession(engines, settings), tasks, given.modes, given.ask):
        found.append(done)
        mark = "passes" if done.passed else "fails"
        print(
            f"{done.task:14} {done.mode:7} {mark:6} {done.tokens:4} tokens {done.steps:4} steps {done.seconds:6.1f} s"
        )
        sys.stdout.flush()
    by_mode = {mode: {done.task: done for done in found if done.mode == mode} for mode in given.modes}
    first = by_mode[given.modes[0]]
    print()
    for mode, each in by_mode.items():
        same = sum(done.text == first[task].text for task, done in each.items())
        total_s, first_s = (sum(done.seconds for done in some.values()) for some in (each, first))
        print(
            f"{mode:7} {sum(done.passed for done in each.values())} of {len(each)} pass, {same} texts equal to "
            f"{given.modes[0]}'s, {total_s:.0f} s, {first_s / total_s:.2f} times as fast with reading"
        )
    if given.json:
        given.json.write_text(json.dumps([asdict(done) for done in found], indent=1))


if __name__ == "__main__":
    main()
