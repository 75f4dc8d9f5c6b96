"""`auto` against plain decoding: on open questions it must not lose, on texts to repeat it should win."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest

from specchat.conversation import prompt_format
from specchat.loading import EngineOptions, Engines
from specchat.session import ChatSession, Guess, Reply, ReplySettings
from speculation.cost import measure
from speculation.llama import EngineLog, LlamaModel
from speculation.sampling import GREEDY
from tests.bench.tasks import CODE, PARAGRAPHS, QUESTIONS

pytestmark = [pytest.mark.bench, pytest.mark.pair]

FIX = [f"Correct the spelling of this text, change nothing else.\n\n{text}" for text in PARAGRAPHS]


def seconds_per_token(session: ChatSession, guess: Guess, question: str) -> float:
    session.new()
    session.guess = guess
    *_, last = session.reply(question)
    assert isinstance(last, Reply)
    return last.totals.seconds / last.totals.emitted


@pytest.mark.timeout(1800)
def test_auto_against_plain(qwen: LlamaModel, log: EngineLog, capsys: pytest.CaptureFixture[str]) -> None:
    qwen.rewind(0)
    cost = measure(qwen, perf_counter)
    shape = prompt_format(qwen.weights.chat_template, qwen.weights.vocabulary, {})
    engines = Engines(qwen, EngineOptions(), log, shape, cost, 0.0)
    session = ChatSession(engines, ReplySettings(GREEDY, seed=1, max_tokens=120))
    lines = []
    for task, questions in (("open", QUESTIONS), ("code", CODE), ("correct", FIX)):
        ratios = []
        for question in questions:
            for turn in range(2):
                order = [Guess.OFF, Guess.AUTO] if turn % 2 else [Guess.AUTO, Guess.OFF]
                taken = {guess: seconds_per_token(session, guess, question) for guess in order}
                ratios.append(taken[Guess.OFF] / taken[Guess.AUTO])
        lines.append(
            f"{task}: auto is {median(ratios):.3f} times as fast as off, {min(ratios):.3f} to {max(ratios):.3f}"
        )
    with capsys.disabled():
        print("\n" + "\n".join(lines))
