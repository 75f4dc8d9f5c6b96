"""Replays: the oracle against trying everything, the figures that the chooser must reach, and the command."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.bench.replay import (
    CONTROLLERS,
    ReplayError,
    Trace,
    oracle,
    read_cost,
    read_traces,
    replay,
    shipped_costs,
)
from specchat.cli import main
from speculation.cost import CostTable

SHARED = Path(os.environ.get("SPECCHAT_SHARED", Path(__file__).parents[3] / "shared"))
TRACES = SHARED / "data" / "traces_qwen15_q4km_greedy.json"
needs_traces = pytest.mark.skipif(not TRACES.exists(), reason="the recorded texts are not here")

COST = CostTable({1: 1.0, 2: 1.3, 4: 1.5, 8: 3.0, 64: 9.0})
small = st.lists(st.integers(0, 2), min_size=1, max_size=9)


def by_trying_everything(text: list[int], start: int, cost: CostTable) -> float:
    """Seconds of the fastest way to write text[start:], every copy and length tried."""

    @cache
    def left(at: int) -> float:
        if at >= len(text):
            return 0.0
        best = cost.forward_s(1) + left(at + 1)
        for source in range(1, at):
            if text[source - 1] != text[at - 1]:
                continue
            k = 0
            while at + k + 1 < len(text) and text[source + k] == text[at + k]:
                k += 1
                best = min(best, cost.forward_s(k + 1) + left(at + k + 1))
        return best

    return left(start)


@given(prompt=small, out=small)
@settings(deadline=None)
def test_the_oracle_is_the_best_of_all_ways_to_copy(prompt: list[int], out: list[int]) -> None:
    best_s = by_trying_everything(prompt + out, len(prompt), COST)

    found = oracle(Trace("t", tuple(prompt), tuple(out)), COST)

    assert found == pytest.approx(len(out) / best_s)


@pytest.mark.parametrize("controller", CONTROLLERS)
@given(prompt=small, out=small)
@settings(deadline=None, max_examples=30)
def test_a_replay_writes_the_recorded_text(controller: str, prompt: list[int], out: list[int]) -> None:
    replayed = replay(Trace("t", tuple(prompt), tuple(out)), COST, CONTROLLERS[controller](COST))  # asserts it

    assert replayed.tokens_per_step >= 1.0


def test_plain_decoding_has_speed_up_one() -> None:
    replayed = replay(Trace("t", (1, 2, 3), (1, 2, 3, 4)), COST, CONTROLLERS["off"](COST))

    assert (replayed.speedup, replayed.tokens_per_step) == (1.0, 1.0)


# Of the oracle with "share", of plain with "plain". The aim for rewrite-doc is 0.90; see packaging/decisions.md.
AT_LEAST = {
    ("cpu-2core", "rewrite-code"): ("share", 0.82),
    ("cpu-2core", "rewrite-doc"): ("share", 0.82),
    ("cpu-2core", "rewrite-para"): ("plain", 0.99),
    ("cpu-2core", "open"): ("plain", 0.99),
    ("cpu-2core", "code"): ("plain", 0.99),
    ("gpu-like", "rewrite-code"): ("share", 0.82),
    ("gpu-like", "rewrite-doc"): ("share", 0.82),
    ("gpu-like", "rewrite-para"): ("plain", 1.5),
    ("gpu-like", "open"): ("plain", 1.1),
    ("gpu-like", "code"): ("plain", 1.3),
}


@needs_traces
@pytest.mark.parametrize(("cost", "task"), AT_LEAST)
def test_auto_reaches_its_figures_on_the_recorded_texts(cost: str, task: str) -> None:
    table = read_cost(cost)
    trace = next(trace for trace in read_traces(TRACES) if trace.name == task)

    replayed = replay(trace, table, CONTROLLERS["auto"](table))

    of, least = AT_LEAST[cost, task]
    reached = replayed.speedup / replayed.oracle if of == "share" else replayed.speedup
    print(f"{cost} {task}: {replayed.speedup:.3f}, oracle {replayed.oracle:.3f}")
    assert reached >= least


@needs_traces
@pytest.mark.parametrize("cost", shipped_costs())
def test_auto_is_never_slower_than_plain_with_any_shipped_price_list(cost: str) -> None:
    table = read_cost(cost)

    for trace in read_traces(TRACES):
        assert replay(trace, table, CONTROLLERS["auto"](table)).speedup >= 0.99


def test_the_shipped_price_lists_can_be_read() -> None:
    assert {"cpu-2core", "gpu-like", "apple-metal", "consumer-nvidia", "datacentre"} == set(shipped_costs())
    assert read_cost("cpu-2core").forward_s(1) == pytest.approx(0.0312)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a list of traces"),
        ("[1]", "entry 1 is not an object"),
        ('[{"prompt": [1], "out": [1]}]', "entry 1 has no name"),
        (
            '[{"name": "a", "prompt": [1], "out": [1]}, {"name": "b", "prompt": "x", "out": [1]}]',
            'entry 2 .b.: "prompt"',
        ),
        ('[{"name": "a", "prompt": [1], "out": [true]}]', '"out" is not a list of token ids'),
        ('[{"name": "a", "prompt": [], "out": [1]}]', '"prompt" is empty'),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)

    with pytest.raises(ReplayError, match=reason):
        read_traces(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("1 10\n2", "line 2"), ("2 10", "no line for one token"), ("1 -3", "positive"), ("1 nan", "positive")],
)
def test_a_price_list_that_cannot_be_used_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "cost.txt"
    path.write_text(text)

    with pytest.raises(ReplayError, match=reason):
        read_cost(str(path))


def test_the_command_prints_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    copied = [*range(40)]
    path.write_text(json.dumps([{"name": name, "prompt": copied, "out": copied} for name in ("one", "two")]))

    assert main(["bench", "--replay", str(path), "--cost", "gpu-like", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert main(["bench", "--replay", str(path), "--task", "two"]) == 0
    table = capsys.readouterr().out
    assert main(["bench", "--replay", str(path), "--task", "three"]) == 3

    assert [set(result) for result in results] == [{"name", "speedup", "oracle", "tokens_per_step"}] * 2
    assert results[0]["speedup"] > 2
    assert "two" in table
    assert "one" not in table
    assert "it has one, two" in capsys.readouterr().err
