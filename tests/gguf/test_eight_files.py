"""Eight files and what the real model makes of them: the change that was asked for, and nothing else unless flagged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from specchat.conversation import prompt_format
from specchat.loading import EngineOptions, Engines
from specchat.rewrite.generate import Outcome, Rewriting
from specchat.rewrite.source import read_source
from specchat.session import ChatSession, ReplySettings
from speculation.cost import CostTable
from speculation.llama import EngineLog, LlamaModel

pytestmark = [pytest.mark.gguf, pytest.mark.pair]

FILES = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Case:
    file: str
    instruction: str
    needed: frozenset[int]  # lines that need a change, or have one put behind them, counted from 1
    wanted: tuple[str, ...]  # what stands in the new file
    unwanted: tuple[str, ...] = ()  # what does not stand there any more


CASES = [
    Case(
        "stock.py",
        "Rename the parameter `minimum` of the function `count` to `at_least`.",
        frozenset({6, 7, 11}),
        ("def count(entries, at_least):", "if pieces >= at_least"),
        ("minimum",),
    ),
    Case("shapes.py", "Add a docstring to every function.", frozenset({4, 8, 12}), ('"""',)),
    Case(
        "guide.md",
        "fix spelling, change nothing else",
        frozenset({3, 8, 13, 15}),
        ("morning", "gloves", "move.", "until"),
        ("mornning", "glovves", "moove", "untill"),
    ),
    Case(
        "settings.json",
        'Rename the key "color" to "colour".',
        frozenset({6, 7, 8}),
        ('"colour": "#1d3f5e"', '"colour": "#5e1d3f"', '"colour": "#3f5e1d"'),
        ('"color"',),
    ),
    Case(
        "ring.c",
        "Translate the German comments to English.",
        frozenset({7, 11, 22}),
        ("/*",),
        ("naechster", "Legt", "Nimmt"),
    ),
    Case(
        "letter.txt",
        "fix spelling, change nothing else",
        frozenset({3, 5, 8, 11}),
        ("received", "which is", "until"),
        ("recieved", "wich", "untill"),
    ),
    Case(
        "logs.py",
        "Translate the German comments to English. Do not change the code.",
        frozenset({7, 14, 21}),
        ("def lesen(pfad):", "# "),
        ("leere Zeilen", "gehoert", "nur die schweren"),
    ),
    Case(
        "matrix.c",
        "Rename the parameter `x` of the function `multiply` to `vector`.",
        frozenset({3, 4, 9}),
        ("const double *vector, double *y", "* vector[j];"),
        ("x[j]",),
    ),
]


@pytest.fixture(scope="module")
def rewritten(qwen: LlamaModel, log: EngineLog) -> Callable[[Case], Outcome]:
    qwen.rewind(0)
    chat_format = prompt_format(qwen.weights.chat_template, qwen.weights.vocabulary, {})
    cost = CostTable({1: 1.0, 2: 1.2, 8: 1.8, 64: 6.0})
    session = ChatSession(Engines(qwen, EngineOptions(), log, chat_format, cost, 0.0), ReplySettings())

    def rewrite(case: Case) -> Outcome:
        *_, outcome = Rewriting(session, read_source(FILES / case.file), case.instruction).run()
        assert isinstance(outcome, Outcome)
        return outcome

    return rewrite


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_the_change_is_made_and_every_other_one_is_flagged(case: Case, rewritten: Callable[[Case], Outcome]) -> None:
    outcome = rewritten(case)

    assert outcome.complete
    assert outcome.findings == ()
    assert outcome.data is not None
    new = outcome.data.decode()
    assert [text for text in case.wanted if text not in new] == []
    assert [text for text in case.unwanted if text in new] == []
    flagged = {flag.hunk for flag in outcome.flags}
    for hunk in outcome.review.hunks:
        for each in hunk.changes:
            touched = set(range(each.start + 1, each.end + 1)) or {each.start}
            assert touched <= case.needed or hunk.id in flagged, (touched, [line.text for line in each.lines])
