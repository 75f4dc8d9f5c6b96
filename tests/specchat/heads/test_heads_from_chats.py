"""Heads that learn from kept chats: whose words go with them, and never stay for nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from specchat.cli import main
from specchat.heads import command
from specchat.heads.collected import Collected
from specchat.heads.file import load, weights_of
from specchat.heads.places import (
    Source,
    forget_texts_of_chats,
)
from specchat.heads.training import collect
from specchat.heads.writing import Written
from speculation.heads.fitting import Learner
from tests.specchat.heads.making import head_file, texts, train

Chats = list[tuple[list[int], list[int]]]


def replies(lengths: Sequence[int]) -> Chats:
    """Replies of so many tokens, with their prompts."""
    rng = np.random.default_rng(0)
    return [([5, 6, 7], rng.integers(20, 200, size=length).tolist()) for length in lengths]


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> Chats:
    """Twelve replies of a hundred tokens are kept."""
    found = replies([100] * 12)
    monkeypatch.setattr(command, "_chats", lambda reader, name: iter(found))
    return found


def test_a_chat_without_kept_replies_of_the_model_is_no_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(model, "--from-chats") == 4

    assert "the kept chats have 0 tokens of target" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([99] * 10, "990 tokens of target, and 1000 are needed"),
        ([500] * 9, "9 replies of target, and 10 of some length are needed"),
        ([500] * 9 + [20], "10 replies of target, and 10 of some length are needed"),
        ([2] * 9 + [2000], "10 replies of target, and 10 of some length are needed"),
    ],
    ids=["tokens", "replies", "too short to judge by", "too short to learn from"],
)
def test_too_few_replies_make_no_head_and_nothing_of_them_stays(
    lengths: list[int],
    said: str,
    own: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "_chats", lambda reader, name: iter(replies(lengths)))

    assert train(model, "--from-chats", "--positions", "10000") == 4

    err = capsys.readouterr().err
    assert f"the kept chats have {said}" in err
    assert len(err.splitlines()) == 1
    assert not head_file(own).exists()
    assert not list((own / "cache" / "heads").iterdir())


def test_too_few_texts_of_its_own_make_no_head_and_can_become_more(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collected = Collected("target", Source.WRITTEN, weights_of(model))
    rng = np.random.default_rng(0)
    collected.add([Written(rng.integers(9, size=200, dtype=np.int32), np.ones((200, 64), np.float16))] * 9)
    collected.keep()

    assert train(model, "--resume") == 4

    assert "specchat: 9 replies of target, and 10 of some length are needed" in capsys.readouterr().err
    assert collected.positions == Collected("target", Source.WRITTEN, weights_of(model)).positions


def test_chats_that_are_deleted_take_with_them_what_was_read_of_them_also_from_who_still_reads(
    own: Path, model: Path, chats: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    capsys.readouterr()

    def deleted_meanwhile(learner: Learner, progress: object, keep: Callable[[], None]) -> bool:
        forget_texts_of_chats()
        keep()
        return True

    monkeypatch.setattr(command, "learn", deleted_meanwhile)

    assert train(model, "--from-chats", "--kind", "medusa") == 4

    assert "what was collected for target was deleted meanwhile" in capsys.readouterr().err
    assert not texts(own, Source.CHATS).exists()
    assert list(texts(own).glob("text-*"))
    assert not head_file(own, "medusa").exists()
    assert {path.name for path in (own / "cache" / "heads" / "target").iterdir()} == {"written"}


def test_ctrl_c_while_chats_are_looked_through_reads_no_more_of_them(
    own: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looked_at = []

    def looked_through(reader: object, name: str) -> Iterator[tuple[list[int], list[int]]]:
        for each in replies([20_000] * 5):  # none of which fits
            looked_at.append(each)
            os.kill(os.getpid(), signal.SIGINT)
            yield each

    monkeypatch.setattr(command, "_chats", looked_through)

    assert train(model, "--from-chats") == 130

    assert len(looked_at) == 1
    assert "stopped; 0 positions are kept" in capsys.readouterr().err


def test_what_was_read_from_chats_does_not_stay_behind(own: Path, model: Path, chats: object) -> None:
    assert train(model, "--from-chats") == 0

    assert load(head_file(own))[1].positions == 1000
    assert not list((own / "cache" / "heads").iterdir())


def test_chats_and_what_the_model_wrote_itself_never_mix(
    own: Path, model: Path, chats: object, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    written = load(head_file(own))[1].positions
    collected = Collected("target", Source.WRITTEN, weights_of(model)).positions

    assert train(model, "--from-chats", "--kind", "medusa") == 0

    assert load(head_file(own, "medusa"))[1].positions == 1000 != written
    assert Collected("target", Source.WRITTEN, weights_of(model)).positions == collected


def test_reading_of_chats_that_was_stopped_reads_none_twice(
    own: Path, model: Path, chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "collect", lambda to, source, most, progress: collect(to, source, 300, progress) and 0)
    assert train(model, "--from-chats") == 130
    monkeypatch.setattr(command, "collect", collect)
    monkeypatch.setattr(command, "learn", lambda learner, progress, keep: False)

    assert train(model, "--from-chats", "--resume") == 130

    collected = Collected("target", Source.CHATS, weights_of(model))
    assert collected.texts() == {np.array(reply, np.int32).tobytes() for _, reply in chats[:10]}
    assert collected.positions == 1000
    assert main(["heads", "rm", "target"]) == 0
    assert not list((own / "cache" / "heads").iterdir())
