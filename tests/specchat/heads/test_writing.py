"""The text that heads learn from, written by a scripted model or read again from chats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from specchat.conversation import Message, Role
from specchat.heads.writing import LENGTH, Frame, NoFrame, Replies, Written, frame_of, read_again, room_for
from speculation.llama import Part, Read
from tests.gguf import tiny
from tests.specchat.heads.making import train


class Scripted:
    """Writes the token after the last one, up to 9, with the token and its place as the state."""

    n_texts, n_ctx, n_batch = 3, 40, 16

    def __init__(self) -> None:
        self.texts: dict[int, list[int]] = {}
        self.n_read = 0

    def read(self, parts: Sequence[Part]) -> list[Read]:
        assert sum(len(part.tokens) for part in parts) <= self.n_batch
        found = []
        for text, start, tokens in parts:
            known = self.texts.setdefault(text, [])
            assert start == len(known)
            known += [int(token) for token in tokens]
            self.n_read += len(tokens)
            row = np.full(12, -50.0, dtype=np.float32)
            row[(known[-1] + 1) % 10] = 5.0
            hidden = [[token, start + i] for i, token in enumerate(tokens)]
            found.append(Read(np.array(hidden, dtype=np.float32), row))
        return found

    def forget(self, text: int) -> None:
        del self.texts[text]

    def keep(self, text: int, n: int) -> int:
        del self.texts.setdefault(text, [])[n:]
        return n


class Uncut(Scripted):
    """A cache that can only be emptied."""

    def keep(self, text: int, n: int) -> int:
        self.texts.pop(text, None)
        return 0


def test_replies_are_what_follows_the_closing_of_the_question_with_a_state_for_each_token() -> None:
    frame = Frame(np.array([11, 10], dtype=np.int32), np.array([9, 3], dtype=np.int32), frozenset({11}))
    source = Replies(Scripted(), frame, np.random.default_rng(0))

    found: list[Written] = []
    while len(found) < 4:
        found += next(source)

    for text in found:
        tokens = text.tokens.tolist()
        assert tokens[:2] == [9, 3]
        assert all(b == (a + 1) % 10 for a, b in pairwise(tokens[1:]))
        assert text.hidden[:, 0].tolist() == tokens
        assert (np.diff(text.hidden[:, 1]) == 1).all()
        assert len(tokens) >= 24


@pytest.mark.parametrize(("model", "n_read"), [(Scripted(), 30 + 20 + 48), (Uncut(), 30 + 50 + 48 + 48)])
def test_of_a_chat_every_token_is_read_once_where_the_cache_can_be_cut(model: Scripted, n_read: int) -> None:
    first, second = [*range(10)], [*range(10, 40)]
    replies = [[1] * 20, [2] * 10, [3] * 18, [3] * 18, [4] * 200]
    prompts = [first, [*first, *replies[0], 5, *second[:9]], second, second, second]  # of the next chat twice the same

    found = [text for texts in read_again(model, zip(prompts, replies, strict=True)) for text in texts]

    assert [text.tokens.tolist() for text in found] == replies[:4]
    for text, prompt in zip(found, prompts, strict=False):
        assert text.hidden.tolist() == [[token, len(prompt) + i] for i, token in enumerate(text.tokens)]
    assert model.n_read == n_read


class Wide(Scripted):
    """With room for a long frame, of which a batch takes a part."""

    n_texts, n_ctx = 2, 500


def test_a_frame_longer_than_a_batch_is_read_in_pieces_and_leaves_all_the_room_for_text() -> None:
    before, after = np.full(50, 11, dtype=np.int32), np.array([9, *[3] * 20], dtype=np.int32)
    frame = Frame(before, after, frozenset({99}))  # which nothing ends
    source = Replies(Wide(), frame, np.random.default_rng(0))

    found: list[Written] = []
    while not found:
        found += next(source)

    text = found[0]
    assert text.tokens[:22].tolist() == [*after.tolist(), 4]
    assert text.hidden[:, 0].tolist() == text.tokens.tolist()
    assert text.hidden[0, 1] >= 50
    assert (np.diff(text.hidden[:, 1]) == 1).all()
    assert text.hidden[-1, 1] + 1 == LENGTH + len(frame) - 1


def test_a_long_template_of_a_model_is_no_hindrance(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "".join(map(chr, np.random.default_rng(0).integers(97, 122, size=700)))
    path = tiny.write_attention(own / "long.gguf", chat_template=said + tiny.CHATML)

    assert train(path) == 0

    assert "long.eagle.npz" in capsys.readouterr().out


def test_a_model_whose_context_a_frame_fills_is_refused() -> None:
    frame = Frame(np.zeros(400, dtype=np.int32), np.zeros(40, dtype=np.int32), frozenset())

    assert room_for(frame, 5000) == LENGTH + 440
    assert room_for(frame, 512) == 512
    with pytest.raises(NoFrame, match="writes 440 tokens around a question, which leaves too few of 511"):
        room_for(frame, 511)


@pytest.mark.parametrize(("before", "after", "side"), [([1], [], "behind"), ([], [7], "before")])
def test_a_template_that_writes_nothing_on_one_side_of_a_question_is_refused(
    before: list[int], after: list[int], side: str
) -> None:
    def prompt(messages: Sequence[Message]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return np.array([*before, *map(ord, messages[0].text), *after], dtype=np.int32)

    with pytest.raises(NoFrame, match=f"nothing {side} a question, so it cannot ask itself any; --from-chats learns"):
        frame_of(prompt, frozenset())


def test_the_frame_is_what_the_template_writes_around_any_question() -> None:
    def prompt(messages: Sequence[Message]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:

        (message,) = messages
        assert isinstance(message, Message)
        assert message.role is Role.USER
        return np.array([1, 2, *map(ord, message.text), 7, 8, 9], dtype=np.int32)

    frame = frame_of(prompt, frozenset())

    assert frame.before.tolist() == [1, 2]
    assert frame.after.tolist() == [7, 8, 9]
