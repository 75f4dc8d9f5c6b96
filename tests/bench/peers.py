"""The same prompts, as token ids, against llama-server in its modes, llama-cpp-python's prompt lookup, and ours.

    python -m tests.bench.peers --server PATH [--tasks five|spec-bench|edit-eval|own] [--count N] [--tokens N]

Everybody decodes greedily with the same threads and context, from an empty cache, one at a time; whoever waits sleeps.
The order rotates with every prompt. What is timed is generation, not the reading of the prompt: llama-server's own
figure, which leaves out the first token because the prompt's last forward gave it; the same span of llama-cpp-python;
and the whole loop of ours, where every token has its forward. A reply ends at the model's own end token or the limit.
Where weights come to lie in memory decides over a few per cent, so all load them anew for each half of the prompts in
each round, and who loads first changes. Ours learns anew with each prompt: nobody has seen a reply before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import llama_cpp
import numpy as np
import pytest
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

from specchat.bench.replay import read_traces
from specchat.conversation import Message, Role, prompt_format
from speculation.accept import rule_named
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import measure
from speculation.engine import EndTokens, Engine
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.llama import ENGINE_VERSION, EngineLog, LlamaModel, LlamaWeights
from speculation.sampling import GREEDY
from tests.bench.tasks import TASKS
from tests.conftest import THREADS, model_file

TARGET, DRAFT = "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"
SERVER = ("none", "ngram-simple", "ngram-map-k", "ngram-mod", "ngram-cache", "draft-simple")
LOOKUP = {"lookup-10": 10, "lookup-2": 2}  # tokens of a guess: llama-cpp-python's default, its advice for a CPU
MODES = (*SERVER, *LOOKUP, "off", "auto")

_open = build_opener(ProxyHandler({})).open  # the servers are on loopback


@dataclass(frozen=True, slots=True)
class Task:
    group: str
    prompt: tuple[int, ...]
    limit: int  # tokens of the reply


@dataclass(frozen=True, slots=True)
class Written:
    tokens: tuple[int, ...]
    timed: int  # tokens that the seconds are of
    seconds: float


Write = Callable[[Sequence[int], int], Written]  # a prompt, and how long the reply may become
Results = list[dict[str, list[Written]]]  # for each prompt: mode -> what it wrote in each round


class Server:
    """A llama-server in one of its modes, everything else at its defaults. Close it to end the process."""

    def __init__(self, program: str, mode: str, n_ctx: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._url = f"http://127.0.0.1:{(port := probe.getsockname()[1])}"
        command = [program, "--host", "127.0.0.1", "--port", str(port), "-m", str(model_file(TARGET)), "-np", "1"]
        command += ["-c", str(n_ctx), "-t", str(THREADS), "--cache-ram", "0", "--spec-type", mode]
        if mode == "draft-simple":
            command += ["-md", str(model_file(DRAFT)), "-td", str(THREADS)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self) -> None:
        """Until it answers."""
        while self._process.poll() is None:
            try:
                with _open(f"{self._url}/health", timeout=5):
                    return
            except OSError:  # also HTTPError, while it loads
                time.sleep(0.2)
        raise SystemExit(f"{self._process.args!r} ends with code {self._process.returncode}")

    def write(self, prompt: Sequence[int], limit: int) -> Written:
        asked: dict[str, Any] = {"prompt": list(prompt), "n_predict": limit, "temperature": 0.0, "top_k": 1}
        asked |= {"samplers": ["top_k"], "cache_prompt": False, "return_tokens": True}
        request = Request(f"{self._url}/completion", json.dumps(asked).encode(), {"Content-Type": "application/json"})
        with _open(request) as answer:
            got = json.load(answer)
        seconds = got["timings"]["predicted_ms"] / 1e3
        return Written(tuple(got["tokens"]), round(got["timings"]["predicted_per_second"] * seconds), seconds)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


class PythonLookup:
    """llama-cpp-python's `Llama` with its prompt lookup, which keeps the logits of every token of the context."""

    def __init__(self, llama: Any, guess: int, ends: frozenset[int]) -> None:
        self._llama, self._ends = llama, ends
        self._lookup = LlamaPromptLookupDecoding(num_pred_tokens=guess)

    def write(self, prompt: Sequence[int], limit: int) -> Written:
        self._llama.reset()  # or it would begin from what the prompts share
        self._llama.draft_model = self._lookup
        tokens, times = list[int](), list[float]()
        for token in self._llama.generate(list(prompt), temp=0.0, repeat_penalty=1.0):
            times.append(time.perf_counter())
            tokens.append(int(token))
            if len(tokens) == limit or tokens[-1] in self._ends:
                break
        return Written(tuple(tokens), len(tokens) - 1, times[-1] - times[0])


class Ours:
    """The engine as a new session has it; nothing learned goes from one prompt to the next."""

    def __init__(self, model: LlamaModel, controller: Callable[[], Controller]) -> None:
        self._model, self._controller = model, controller

    def write(self, prompt: Sequence[int], limit: int) -> Written:
        self._model.rewind(0)
        guessers = {PromptLookup.name: PromptLookup()}
        engine = Engine(self._model, guessers, self._controller(), rule_named("coupled", 0), GREEDY)
        for _ in engine.read(np.array(prompt, dtype=np.int32)):
            pass
        tokens: list[int] = []
        started = time.perf_counter()
        for step in engine.steps(limit=limit, ends=EndTokens(self._model.weights.vocabulary.ends)):
            tokens += step.tokens
        return Written(tuple(tokens), len(tokens), time.perf_counter() - started)


def shared(name: str) -> Path:
    """A file of the data that is not in the repository."""
    folder = Path(os.environ.get("SPECCHAT_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    path = folder / "data" / name
    if not path.exists():
        raise SystemExit(f"no data/{name}: set SPECCHAT_SHARED to the folder that holds data/, or use --tasks own")
    return path


def tasks(kind: str, count: int | None, tokens: int | None, weights: LlamaWeights) -> Iterator[Task]:
    """The prompts, group by group; `count` of each group, spread over it."""
    if kind == "five":
        for trace in read_traces(shared("traces_qwen15_q4km_greedy.json")):
            yield Task(trace.name, trace.prompt, tokens or len(trace.out))
        return
    questions: dict[str, list[str]] = defaultdict(list)
    if kind == "own":
        questions |= {group: list(texts) for group, texts in TASKS.items()}
    elif kind == "edit-eval":
        for row in map(json.loads, shared("edit_eval.jsonl").read_bytes().splitlines()):
            questions[kind].append(f"{row['instruction'].strip()}\n\n{row['input']}")
    else:
        own_group = ("translation", "summarization", "qa", "math_reasoning", "rag")
        for row in map(json.loads, shared("spec_bench.jsonl").read_bytes().splitlines()):
            questions[row["category"] if row["category"] in own_group else "mt_bench"].append(row["turns"][0])
    shape = prompt_format(weights.chat_template, weights.vocabulary, {})
    for group, texts in questions.items():
        wanted = min(len(texts), count or {"own": len(texts), "edit-eval": 60, "spec-bench": 10}[kind])
        # EditEval by its first tasks, as its figures elsewhere; Spec-Bench lists its eighty by kind of question.
        for text in texts[:wanted] if kind == "edit-eval" else texts[:: len(texts) // wanted][:wanted]:
            prompt = shape.prompt([Message(Role.USER, text)]).tolist()
            yield Task(group, tuple(prompt), tokens or (90 if kind == "edit-eval" else 128))


def load_ours(
    args: argparse.Namespace, n_ctx: int, ends: frozenset[int], log: EngineLog, inside: ExitStack
) -> Iterator[tuple[str, Write]]:
    """All that runs in this process, among the wanted modes."""
    if any(mode in LOOKUP for mode in args.modes):
        settings: dict[str, Any] = {"n_ctx": n_ctx, "n_threads": THREADS, "n_threads_batch": THREADS}
        settings |= {"draft_model": LlamaPromptLookupDecoding(), "logits_all": True, "verbose": False}
        llama = inside.enter_context(closing(llama_cpp.Llama(str(model_file(TARGET)), **settings)))
        for mode, guess in LOOKUP.items():
            yield mode, PythonLookup(llama, guess, ends).write
    weights = inside.enter_context(closing(LlamaWeights(model_file(TARGET), log)))
    model = inside.enter_context(closing(LlamaModel(weights, log, n_ctx=n_ctx, n_threads=THREADS)))
    cost = measure(model, time.perf_counter)
    print("ms by rows:", {n: round(s * 1e3, 1) for n, s in cost.seconds.items()}, file=sys.stderr, flush=True)
    yield "off", Ours(model, Fixed).write
    yield "auto", Ours(model, partial(Adaptive, cost)).write


def load_servers(args: argparse.Namespace, n_ctx: int, inside: ExitStack) -> Iterator[tuple[str, Write]]:
    """A server for each of its wanted modes."""
    for mode in (mode for mode in args.modes if mode in SERVER):
        server = inside.enter_context(closing(Server(args.server, mode, n_ctx)))
        server.wait()
        yield mode, server.write


def compete(asked: Sequence[Task], args: argparse.Namespace, ends: frozenset[int], log: EngineLog) -> Results:
    """Let every mode write every reply in every round."""
    n_ctx = -(-max(len(task.prompt) + task.limit for task in asked) // 256) * 256 + 256
    written: Results = [{mode: [] for mode in args.modes} for _ in asked]
    # Who loads first gets the slower memory, by up to four per cent: they take turns, half the prompts each.
    for turn, half in product(range(args.repeat), range(2)):
        with ExitStack() as inside:
            loaders = [partial(load_ours, args, n_ctx, ends, log), partial(load_servers, args, n_ctx)]
            ordered = loaders if turn % 2 == half else loaders[::-1]
            contestants = {mode: write for load in ordered for mode, write in load(inside)}
            for mode in args.modes:
                contestants[mode](asked[0].prompt[:32], 4)
            for i, task in [*enumerate(asked)][half::2]:
                at = (i // 2 + turn * len(args.modes) // args.repeat) % len(args.modes)
                for mode in [*args.modes[at:], *args.modes[:at]]:
                    got = contestants[mode](task.prompt, task.limit)
                    written[i][mode].append(got)
                    said = f"{task.group} {mode} {got.timed / max(got.seconds, 1e-9):.1f} tokens/s"
                    print(f"round {turn + 1} prompt {i + 1}/{len(asked)} {said}", file=sys.stderr, flush=True)
    return written


def summary(asked: Sequence[Task], written: Results, modes: Sequence[str]) -> list[dict[str, Any]]:
    """For each group: tokens a second of each mode, how far rounds lie apart, how many texts are the plain one's."""
    groups = []
    for group in dict.fromkeys(task.group for task in asked):
        mine = [got for task, got in zip(asked, written, strict=True) if task.group == group]
        rates, apart, same = {}, {}, {}
        for mode in modes:
            paces = [[one.seconds / max(one.timed, 1) for one in got[mode]] for got in mine]
            timed = [got[mode][0].timed for got in mine]
            rates[mode] = sum(timed) / sum(n * median(pace) for n, pace in zip(timed, paces, strict=True))
            apart[mode] = median(max(pace) / max(min(pace), 1e-9) for pace in paces)
            plain = "none" if mode in SERVER else "off"
            same[mode] = sum(got[mode][0].tokens == got[plain][0].tokens for got in mine if plain in got)
        tokens = {mode: sum(len(got[mode][0].tokens) for got in mine) for mode in modes}
        figures = {"tokens": tokens, "tokens_per_s": rates, "apart": apart, "texts_as_plain": same}
        groups.append({"group": group, "prompts": len(mine), **figures})
    return groups


def table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    shown = [[f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *shown))


def tables(groups: Sequence[dict[str, Any]], modes: Sequence[str]) -> str:
    """Tokens a second, then ratios; the last line of each is the geometric mean over the groups."""
    rates: dict[str, list[float]] = {mode: [group["tokens_per_s"][mode] for group in groups] for mode in modes}
    ratios: dict[str, list[float]] = {}
    best = [max(group) for group in zip(*(rates[mode] for mode in modes if mode in SERVER), strict=True)]
    for name, base in {"none": rates.get("none"), "off": rates.get("off"), "best server mode": best}.items():
        for mode in modes if name == "none" else ["auto"]:
            if base and mode in rates and mode != name:
                ratios[f"{mode} / {name}"] = [a / b for a, b in zip(rates[mode], base, strict=True)]
    names = [f"{g['group']} ({g['prompts']} x {max(g['tokens'].values()) / g['prompts']:.0f} tokens)" for g in groups]
    parts = []
    for columns in (rates, ratios):
        lines = [[name, *(values[i] for values in columns.values())] for i, name in enumerate(names)]
        lines.append(["geometric mean", *map(geometric_mean, columns.values())])
        parts.append(table(["tokens/s" if columns is rates else "ratio", *columns], lines))
    for key, title in (("apart", "slowest / fastest round"), ("texts_as_plain", "texts equal to plain")):
        parts.append(table([title, *modes], [[group["group"], *group[key].values()] for group in groups]))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--server", metavar="PATH", help="the llama-server program")
    parser.add_argument("--tasks", choices=("five", "spec-bench", "edit-eval", "own"), default="five")
    parser.add_argument("--count", type=int, help="prompts of each group")
    parser.add_argument("--tokens", type=int, help="the longest reply")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--repeat", type=int, default=1, help="rounds, of which the median counts")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not args.server and any(mode in SERVER for mode in args.modes):
        parser.error("--server is needed for the modes of llama-server; --modes off auto does without")
    said = subprocess.run([args.server, "--version"], capture_output=True, text=True).stderr if args.server else ""
    log = EngineLog()
    try:
        with closing(LlamaWeights(model_file(TARGET), log)) as weights:
            asked = list(tasks(args.tasks, args.count, args.tokens, weights))
            ends = weights.vocabulary.ends
    except pytest.skip.Exception as missing:
        raise SystemExit(str(missing)) from missing
    began, load = datetime.now(), os.getloadavg()[0]
    groups = summary(asked, compete(asked, args, ends, log), args.modes)
    about = {
        "date": f"{began:%Y-%m-%d %H:%M} to {datetime.now():%H:%M}",
        "versions": f"{ENGINE_VERSION}; llama-server {said.partition(chr(10))[0] or 'not run'}",
        "models": f"{TARGET}, draft {DRAFT}; greedy, {args.repeat} rounds",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {THREADS} threads used",
        "load average": f"{load:.2f} before, {os.getloadavg()[0]:.2f} after (its own threads included)",
        "note": "ratios within this one run are what counts: on a busy machine run it again",
    }
    shown = "\n".join([*(f"{key}: {value}  " for key, value in about.items()), "", tables(groups, args.modes)])
    print(json.dumps({**about, "groups": groups}, indent=2) if args.json else shown)


if __name__ == "__main__":
    main()
