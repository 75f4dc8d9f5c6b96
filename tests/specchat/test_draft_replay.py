"""What a draft model would have given is read off a text, and is what drafting would really have given."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.draft_replay import ENOUGH, Counted, Kind, PastReply, Verdict, agreements, counted, kinds_of, verdict
from speculation.accept import Coupled
from speculation.context import Context
from speculation.cost import CostTable
from speculation.guessers.draft_model import DraftModel
from speculation.sampling import GREEDY
from speculation.testing import HistoryModel
from speculation.types import Interrupted

V = 12
FLAT = CostTable({1: 0.1, 32: 0.1})  # a check costs as much as a plain step
PROSE = Kind.PROSE


def yes(done: float) -> bool:
    return True


def past(prompt: Sequence[int], reply: Sequence[int]) -> PastReply:
    return PastReply(tuple(prompt), tuple(reply), (PROSE,) * len(reply))


def written(model: HistoryModel, prompt: Sequence[int], n: int) -> list[int]:
    """What a model says greedily."""
    text = list(prompt)
    for _ in range(n):
        text.append(int(model.row_after(text).argmax()))
    return text[len(prompt) :]


def pair(**draft: int) -> tuple[HistoryModel, HistoryModel]:
    target = HistoryModel(V, seed=1)
    return target, HistoryModel(V, seed=1, blur=1.5, **draft)


@pytest.mark.parametrize("max_rows", [1, 7, 64])
def test_the_best_choices_of_a_draft_are_compared_at_every_token(max_rows: int) -> None:
    target, draft = pair(max_rows=max_rows)
    reply = written(target, [3, 1], 60)

    (agreed,) = agreements(draft, V, [past([3, 1], reply)], yes)

    assert agreed == [int(draft.row_after([3, 1, *reply[:i]]).argmax()) == reply[i] for i in range(60)]
    assert 10 < sum(agreed) < 60
    assert draft.n_past == 0


def test_replies_of_one_chat_are_read_once() -> None:
    target, draft = pair()
    first = past([3, 1], written(target, [3, 1], 40))
    longer = (*first.prompt, *first.reply, 5, 2)
    second = past(longer, written(target, longer, 40))

    together = agreements(draft, V, [first, second], yes)

    assert draft.evaluated <= len(second.prompt) + len(second.reply)
    assert together == [agreements(pair()[1], V, [each], yes)[0] for each in (first, second)]


def test_nothing_is_guessed_behind_what_the_draft_cannot_read_or_hold() -> None:
    small = HistoryModel(V, seed=1, n_ctx=10)
    reply = written(HistoryModel(V, seed=1), [1, 2, 3], 20)

    (agreed,) = agreements(small, V, [past([1, 2, 3], reply)], yes)
    (unread,) = agreements(HistoryModel(V, seed=1), V + 9, [past([1, 2, 3], [*reply[:5], V + 1, *reply[5:]])], yes)
    (prompt,) = agreements(HistoryModel(V, seed=1), V + 9, [past([1, V + 1, 3], reply)], yes)

    assert agreed == [True] * 8 + [False] * 12
    assert unread == [True] * 5 + [False] * 16
    assert not any(prompt)


def test_tokens_beyond_the_smaller_vocabulary_are_never_a_choice() -> None:
    draft = HistoryModel(V, seed=4)
    reply = written(draft, [1], 30)
    n_target = max(reply)  # so the greatest is padding

    (agreed,) = agreements(draft, n_target, [past([1], reply)], yes)

    assert not any(same for same, token in zip(agreed, reply, strict=True) if token >= n_target)


def test_it_stops_when_nobody_wants_it_and_leaves_an_empty_cache() -> None:
    draft = HistoryModel(V, seed=1)
    seen: list[float] = []

    def heard(done: float) -> bool:
        seen.append(done)
        return len(seen) < 3

    with pytest.raises(Interrupted):
        agreements(draft, V, [past([1] * 600, [2] * 300)], heard)

    assert len(seen) == 3
    assert draft.n_past == 0


def test_the_steps_are_those_that_drafting_would_have_taken() -> None:
    target, draft = pair()
    prompt, k = [3, 1], 4
    reply = written(target, prompt, 80)
    (agreed,) = agreements(draft, V, [past(prompt, reply)], yes)
    guesser, context, at, steps = DraftModel(draft, GREEDY, V), Context(prompt), 0, 0

    while at < len(reply):
        drafted = guesser.propose(context, k, Coupled(0)).tokens
        same = next((i for i, token in enumerate(drafted) if reply[at + i : at + i + 1] != [token]), len(drafted))
        taken = reply[at : at + same + 1]
        context.extend(taken)
        at, steps = at + len(taken), steps + 1

    assert counted(agreed, (PROSE,) * 80, k) == {PROSE: Counted(80, steps)}


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 16))
def test_every_token_is_counted_once_and_longer_drafts_never_take_more_steps(agreed: list[bool], k: int) -> None:
    kinds = (PROSE,) * len(agreed)

    shorter, longer = counted(agreed, kinds, k)[PROSE], counted(agreed, kinds, k + 1)[PROSE]

    assert shorter.tokens == longer.tokens == len(agreed)
    assert longer.steps <= shorter.steps <= len(agreed)


def test_the_length_that_pays_best_depends_on_the_prices() -> None:
    replies, agreed = [past([1], [1] * 100)], [[True] * 100]

    free = verdict(replies, agreed, FLAT, 0.0, 9.0)
    dear = verdict(replies, agreed, FLAT, 0.2, 9.0)
    checks = verdict(replies, agreed, CostTable({1: 0.1, 32: 3.2}), 0.05, 9.0)

    assert free.k == 16
    assert [free.all.per_step, free.speed_up] == pytest.approx([100 / 6, 100 / 6])
    assert dear.speed_up < 1
    assert checks.k == 1
    assert checks.speed_up == pytest.approx(2 * 0.1 / 0.25)


def test_text_is_told_apart_by_its_lines() -> None:
    text = "Try this:\n```py\nx = 1\n\n```\n- one\n 2. two\nand -- so on"
    pieces = [text[i : i + 3].encode() for i in range(0, len(text), 3)]

    kinds = kinds_of(pieces)

    lines = {text[:at].count("\n"): kind for at, kind in zip(range(0, len(text), 3), kinds, strict=True)}
    assert [lines[line] for line in (0, 1, 2, 4, 5, 6, 7)] == [
        Kind.PROSE, Kind.CODE, Kind.CODE, Kind.CODE, Kind.LIST, Kind.LIST, Kind.PROSE,
    ]  # fmt: skip
    assert kinds_of([]) == ()
    assert kinds_of([b"", b"\xff"]) == (Kind.PROSE, Kind.PROSE)


def test_the_verdict_is_one_line_and_says_nothing_on_little_text() -> None:
    by_kind = {Kind.CODE: Counted(310, 100), Kind.PROSE: Counted(170, 100)}
    found = Verdict(20, 4, Counted(480, 200), by_kind, 1.31, 8.7)

    assert found.line("qwen-0.5b") == (
        "on your last 20 replies qwen-0.5b would have given 2.4 tokens per step (code 3.1, prose 1.7): "
        "about x1.3 here (est), 9 s"
    )
    little = Verdict(1, 4, Counted(60, ENOUGH - 1), {}, 2.0, 1.0)
    assert little.line("x") == "not enough yet to say what x would give: your last reply makes 31 steps of 32"
