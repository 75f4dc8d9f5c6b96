"""`specchat stats`, as it is typed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from specchat.cli import main
from specchat.folders import history_path
from specchat.history.records import About
from specchat.history.store import Store
from specchat.statistics.figures import summed
from specchat.statistics.shown import duration, table
from tests.specchat.statistics.making import PLAIN_S, cell, chat, part, plain, reply, step

BIG = About("big", "small", "auto", "coupled", 0.2)
SECRET = "zanzibar"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def now() -> float:
    return time.time()


@pytest.fixture
def store(now: float) -> Store:
    """Four replies of one model with guesses, and a short old one of another, all about a secret."""
    written = [step("draft", 3, 4, 0.2)] * 20 + [step()] * 4
    with Store.open(history_path()) as opened:
        for number in range(4):
            opened.put(chat(SECRET, f"{SECRET} {number}", part(written, BIG, ended=now - number)))
        hostile = About("\x1b[31mred\nmodel", None, "lookup", "coupled", 1.0)
        opened.put(chat(SECRET, SECRET, part([step()], hostile, ended=1e9)))
        return opened


def out(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_totals_come_first_then_tables_then_advice(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats"]) == 0

    lines = out(capsys).splitlines()
    assert lines[0] == "5 replies, 337 tokens, 3.47 tokens per step"
    # 80 steps of four tokens in the time of two plain ones
    assert lines[1] == "time saved, est: 16.0 s in all, 16.0 s in 7 days, 16.0 s today"
    assert [line.split("  ")[0] for line in lines if line.startswith("by ")] == [
        "by model",
        "by what was chosen",
        "by who guessed",
        "by kind of text",
    ]
    assert lines[-3] == "what to choose with big:"
    advised = " ".join(map(str.strip, lines[-2:]))
    assert advised == "prose: draft (clear; est draft x1.91, auto x1.91, off x1.00; 4 replies, 96 steps)"


def test_a_line_of_the_table(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    main(["stats"])

    row = next(line for line in out(capsys).splitlines() if line.startswith("big "))
    assert row.split() == ["big", "4", "336", "3.50", "75%", "2.00", "x1.91", "16", "s"]


def test_lines_fit_80_columns_and_hold_nothing_that_was_said_or_steers(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (["stats"], ["stats", "--temperature"], ["stats", "--json"]):
        main(argv)
        text = out(capsys)
        assert SECRET not in text
        assert "\x1b" not in text
        if "--json" not in argv:
            assert max(map(len, text.split("\n"))) <= 80


def test_few_steps_are_not_enough_for_a_speed(capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(history_path()) as opened:
        opened.put(chat("a", "b", part([step("draft", 3, 4, 0.2)] * 31, BIG)))

    main(["stats"])

    text = out(capsys)
    assert text.startswith(
        "1 reply, 124 tokens, 4.00 tokens per step\ntime saved: not enough yet to say (31 steps of 32)\n"
    )
    assert "x1" not in text
    assert "prose: not enough yet to advise" in text


def test_temperatures_have_a_line_each(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "--temperature"]) == 0

    lines = out(capsys).splitlines()
    assert lines[0] == "at 0.2 3.5 tokens per step, at 1.0 1.0 (from your 5 replies)"
    assert [line.split() for line in lines[3:]] == [
        ["0.2", "4", "96", "3.50", "75%", "x1.91"],
        ["1.0", "1", "1", "1.00", "-", "-"],
    ]


def test_json_has_all_of_it_with_estimates_called_so(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "--json"]) == 0

    found = json.loads(out(capsys))
    assert found["schema"] == "specchat.stats/1"
    assert found["total"]["replies"] == 5
    assert found["saved_s_est"]["total_s"] == pytest.approx(16.0, abs=0.01)
    assert found["by_model"][0]["model"] == "big"
    assert found["by_model"][0]["speed_up_est"] == pytest.approx(1.909, abs=0.001)
    assert found["by_model"][1]["speed_up_est"] is None
    assert [group["temperature"] for group in found["by_temperature"]] == [0.2, 1.0]
    assert found["advice"]["kinds"][0]["guess"] == "draft"


def test_days_and_model_narrow_it_down(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    main(["stats", "--days", "2"])
    assert out(capsys).startswith("4 replies, ")
    main(["stats", "--model", "big"])
    assert out(capsys).startswith("4 replies, ")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--days", "0"], 2, "--days 0: must be 1 or more"),
        (["--model", "none"], 3, "none wrote no reply that is kept; these did: "),
    ],
)
def test_what_cannot_be_answered_is_refused(
    store: Store, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    assert main(["stats", *argv]) == code

    assert said in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["stats"], ["stats", "--model", "big"], ["stats", "--days", "3"]])
def test_an_empty_store_says_so(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(argv) == 0

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no " in printed.err
    assert "reply is kept" in printed.err


def test_json_of_an_empty_store_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "--json"]) == 0

    assert json.loads(out(capsys))["total"]["replies"] == 0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "-"),
        (9.54, "9.5 s"),
        (59.96, "1 min 00 s"),
        (-130.2, "-2 min 10 s"),
        (3600 * 3 + 301, "3 h 05 min"),
    ],
)
def test_durations(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_columns_stay_apart_where_a_step_with_guesses_cost_a_hundred_plain_ones() -> None:
    dear = summed([reply(1, plain(40), cell(steps=40, tokens=50, seconds=40 * 102.42 * PLAIN_S))])

    _, row = table("by who guessed", {"draft": dear})

    assert row.split()[4:6] == ["20%", "102"]
