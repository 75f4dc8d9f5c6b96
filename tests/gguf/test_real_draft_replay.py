"""On the real pair: what a replay says of a draft model is what drafting did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specchat.conversation import Message, Role
from specchat.draft_replay import Kind, PastReply, agreements, kinds_of, verdict
from specchat.session import ChatSession, Guess, Reply, ReplySettings
from speculation.cost import CostTable
from speculation.llama import EngineLog, LlamaModel
from speculation.sampling import GREEDY
from tests.gguf.test_real import engines_on

ASKED = "Explain in one sentence how to reverse a list in Python, then show it as code."
K = 4


@pytest.fixture
def session(qwen: LlamaModel, qwen_draft: LlamaModel, log: EngineLog) -> Iterator[ChatSession]:
    engines = engines_on(qwen, log)
    engines.draft = qwen_draft
    qwen_draft.rewind(0)
    yield ChatSession(engines, ReplySettings(GREEDY, seed=1, max_tokens=110, guess_max=K))
    qwen_draft.rewind(0)


@pytest.mark.pair
def test_a_replay_agrees_with_what_the_draft_model_was_accepted_for(session: ChatSession, log: EngineLog) -> None:
    session.guess = Guess.DRAFT
    (*_, reply) = session.reply(ASKED)
    assert isinstance(reply, Reply)
    tokens = tuple(token for step in reply.steps for token in step.tokens)
    vocabulary, draft = session.engines.target.weights.vocabulary, session.engines.draft
    assert draft is not None
    prompt = session.engines.format.prompt([Message(Role.USER, ASKED)])
    past = PastReply(tuple(prompt.tolist()), tokens, kinds_of([*map(vocabulary.piece, tokens)]))

    (agreed,) = agreements(draft, session.engines.target.n_vocab, [past], lambda done: True)

    at = right = looked_at = 0
    for step in reply.steps:
        for i in range(step.examined):
            if at + i < len(tokens):
                looked_at += 1
                right += agreed[at + i] == (i < step.accepted)
        at += len(step.tokens)
    assert looked_at > 60
    assert right >= 0.97 * looked_at  # rows of a wide forward differ from those of a narrow one where two are near
    assert {Kind.CODE, Kind.PROSE} <= set(past.kinds)
    found = verdict([past], [agreed], CostTable({1: 0.1, 32: 0.2}), 0.02, 1.0)
    assert found.all.tokens == len(tokens)
    assert found.speed_up > 1
