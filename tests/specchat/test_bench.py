"""The bench: its arithmetic on literal cases, its runs on tiny models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.bench.acceptance import (
    deployed_steps,
    measure_acceptance,
    replayed_steps,
    two_token_guess,
)
from specchat.bench.command import parsed, write_csv
from specchat.bench.data import read_data
from specchat.bench.measure import Cell, Difference, measure_workloads, summary
from specchat.bench.workloads import ACCEPTANCE, WORKLOADS, Workload
from specchat.errors import InputRefused, UsageError
from specchat.loading import EngineOptions, Engines, load_engines
from specchat.session import Guess, ReplySettings
from speculation.llama import EngineLog
from speculation.sampling import GREEDY
from tests.gguf import tiny


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("bench")
    loaded = load_engines(tiny.write_attention(folder / "t.gguf"), EngineOptions(n_ctx=1024, n_threads=1), EngineLog())
    loaded.load_draft(tiny.write_attention(folder / "d.gguf", drift=0.05))
    yield loaded
    loaded.close()


def cell(workload: str, guesser: str, speedup: float, difference: Difference | None = None) -> Cell:
    return Cell(workload, guesser, 100, 30.0, 29.0, 31.0, 1.5, 0.6, 1.2, speedup, difference is None, difference, 100)


CELLS = [cell("code", "off", 1.0), cell("code", "auto", 2.0), cell("prose", "off", 1.0), cell("prose", "auto", 0.98)]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("auto.speedup>=1.4", True),  # the geometric mean of 2 and 0.98
        ("auto.speedup>=1.41", False),
        ("code.auto.speedup>=2", True),
        ("prose.auto.speedup>=0.99", False),
        ("auto.tokens_per_step>1.4", True),
        ("auto.step_cost<1.2", False),
        ("auto.alpha<=0.6", True),
        ("lookup.speedup>=0", False),  # was not measured
        ("identical", True),
    ],
)
def test_an_assertion_holds_or_not(text: str, holds: bool) -> None:
    assert parsed(text)(CELLS) is holds


def test_a_near_tie_counts_as_identical_and_more_does_not() -> None:
    assert parsed("identical")([cell("code", "auto", 1.0, Difference(5, 0.1))])
    assert not parsed("identical")([cell("code", "auto", 1.0, Difference(5, 2.0))])


@pytest.mark.parametrize(
    "text", ["auto>=1", "auto.speed>=1", "auto.speedup=1", "nobody.speedup>=1", "", "auto.speedup>=x"]
)
def test_an_assertion_that_says_nothing_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"write it like auto\.speedup>=1\.2"):
        parsed(text)


def test_every_workload_and_guesser_gets_a_cell_and_off_is_the_measure(engines: Engines) -> None:
    workloads = [Workload("one", ("a b a b a b a b",)), Workload("two", ("x y z x y z", "hello"))]
    settings = ReplySettings(GREEDY, seed=0, max_tokens=24)

    cells = list(measure_workloads(engines, workloads, [Guess.LOOKUP, Guess.DRAFT, Guess.AUTO], settings, rounds=2))

    assert [(c.workload, c.guesser) for c in cells] == [
        (workload, guess) for workload in ("one", "two") for guess in ("off", "lookup", "draft", "auto")
    ]
    for c in cells:
        assert c.difference is None or c.difference.gap < 0.5
        if c.guesser == "off":
            assert (c.speedup, c.tokens_per_step, c.alpha, c.step_cost, c.identical) == (1.0, 1.0, None, None, True)
    draft = next(c for c in cells if c.guesser == "draft")
    assert draft.alpha is not None
    assert draft.tokens_per_step > 1.0
    assert set(summary(cells)) == {"off", "lookup", "draft", "auto"}


def test_a_csv_has_a_header_and_a_row_for_each_cell(tmp_path: Path) -> None:
    write_csv(tmp_path / "b.csv", CELLS)

    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[0].startswith("workload,guesser,tokens,tokens_per_s")
    assert len(lines) == 1 + len(CELLS)
    with pytest.raises(InputRefused, match="cannot write"):
        write_csv(tmp_path, CELLS)


def test_both_formats_of_prompts_are_read_by_group(tmp_path: Path) -> None:
    spec, edit = tmp_path / "spec.jsonl", tmp_path / "edit.jsonl"
    rows = [("writing", "a"), ("coding", "b"), ("rag", "c"), ("rag", "d"), ("rag", "e")]
    spec.write_text("\n".join(json.dumps({"category": c, "turns": [t, "more"]}) for c, t in rows) + "\n\n")
    edit.write_text(json.dumps({"instruction": "Do.", "input": "x = 1", "output": "x = 2"}))

    assert read_data(spec, 2) == [Workload("mt_bench", ("a", "b")), Workload("rag", ("c", "d"))]
    assert read_data(edit, None) == [Workload("edit_eval", ("Do.\n\nx = 1",))]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"turns": []}', '{"turns": "a", "category": "x"}', "{}", '{"instruction": "a"}']
)
def test_a_wrong_line_of_a_data_file_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.jsonl").write_text('{"category": "rag", "turns": ["a"]}\n' + line)

    with pytest.raises(InputRefused, match=r"bad\.jsonl, line 2"):
        read_data(tmp_path / "bad.jsonl", None)


def test_a_data_file_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    for name, said in (("missing.jsonl", "cannot read"), ("empty.jsonl", "holds no prompt")):
        with pytest.raises(InputRefused, match=said):
            read_data(tmp_path / name, None)


@pytest.mark.parametrize(
    ("agreed", "k", "steps"),
    [
        ([], 4, 0),
        ([False] * 5, 4, 5),
        ([True] * 10, 4, 2),
        ([True] * 11, 4, 3),
        ([True, False, True, True, False], 4, 2),
        ([True, True, True], 2, 1),
    ],
)
def test_replayed_steps_of_literal_agreements(agreed: list[bool], k: int, steps: int) -> None:
    assert replayed_steps(agreed, k) == steps


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 9))
def test_replayed_steps_lie_between_all_and_none_accepted(agreed: list[bool], k: int) -> None:
    steps = replayed_steps(agreed, k)

    assert -(-len(agreed) // (k + 1)) <= steps <= len(agreed)


def test_two_token_lookup_takes_the_most_recent() -> None:
    assert two_token_guess([1, 2, 7, 1, 2, 8, 1, 2], 8) == 8
    assert two_token_guess([1, 2, 3, 4], 4) is None


def test_deployed_lookup_copies_ten_at_most() -> None:
    text = [*range(20), *range(20)]

    # Nothing matches the first of the copy; then one token does, ten are copied and an eleventh comes with them.
    assert deployed_steps(text, 20) == 1 + 1 + 1
    assert deployed_steps(list(range(8)), 3) == 5


def test_acceptance_of_a_model_by_itself_is_complete(engines: Engines, tmp_path: Path) -> None:
    engines.load_draft(tiny.write_attention(tmp_path / "same.gguf"))
    assert engines.draft is not None

    found = measure_acceptance(engines, engines.draft, Workload("own", ("hello there", "x y")))

    assert found.greedy_agreement == 1.0
    assert found.min_p_q_greedy == pytest.approx(1.0, abs=1e-6)
    assert found.min_p_q_sampled == pytest.approx(1.0, abs=1e-6)
    assert found.formula_4 == 5.0
    assert found.tokens_per_step_4 <= 5.0


def test_acceptance_of_another_model_is_partial(engines: Engines, tmp_path: Path) -> None:
    engines.load_draft(tiny.write_attention(tmp_path / "near.gguf", drift=0.1))
    assert engines.draft is not None

    found = measure_acceptance(engines, engines.draft, Workload("own", ("hello there", "x y")))

    assert 0.05 < found.greedy_agreement < 0.95
    assert 0.2 < found.min_p_q_sampled < 0.95


def test_the_shipped_texts_are_the_ones_the_bench_promises() -> None:
    assert [workload.name for workload in WORKLOADS] == ["code", "prose", "json", "summary", "rewrite"]
    assert [len(task.prompts) for task in ACCEPTANCE] == [6, 6]
