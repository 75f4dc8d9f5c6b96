"""`specchat heads` on a tiny random model: trained, stopped, taken up, listed, used in a reply, deleted."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specchat.cli import main
from specchat.heads import command
from specchat.heads.collected import Collected
from specchat.heads.file import load, weights_of
from specchat.heads.places import (
    Source,
)
from specchat.heads.training import collect, learn
from specchat.loading import EngineOptions, load_engines
from specchat.session import ChatSession, Guess, ReplySettings
from speculation.heads.examples import Examples
from speculation.heads.fitting import Learner
from speculation.heads.head import Kind
from speculation.llama import EngineLog
from speculation.sampling import GREEDY
from tests.specchat.heads.making import head_file, texts, train

QUESTION = "one two three one two three one two"


@pytest.mark.parametrize("kind", list(Kind))
def test_a_trained_head_is_a_file_of_its_own_and_guesses_in_replies_that_stay_the_same(
    kind: Kind, own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(model, "--kind", str(kind)) == 0

    said = capsys.readouterr()
    assert said.out == f"{head_file(own, str(kind))}\n"
    assert "1 to 3 tokens ahead" in said.err
    assert stat.S_IMODE(head_file(own, str(kind)).stat().st_mode) == 0o600
    engines = load_engines(model, EngineOptions(n_ctx=512, n_threads=1), EngineLog())
    assert list(engines.heads) == [Guess(kind)]
    texts, steps = {}, {}
    for guess in (Guess.OFF, Guess(kind)):
        session = ChatSession(engines, ReplySettings(sampling=GREEDY, seed=1, max_tokens=60))
        session.guess = guess
        list(session.reply(QUESTION))
        assert session.last_reply is not None
        texts[guess], steps[guess] = session.last_reply.text, session.last_reply.steps
        session.messages = []
    engines.close()
    assert texts[Guess.OFF] == texts[Guess(kind)]
    assert {step.guesser for step in steps[Guess(kind)]} <= {"plain", str(kind)}
    assert sum(step.drafted for step in steps[Guess(kind)]) > 0


def test_without_a_head_it_cannot_be_chosen_and_the_error_says_how_to_make_one(model: Path) -> None:
    engines = load_engines(model, EngineOptions(n_ctx=512, n_threads=1), EngineLog())
    session = ChatSession(engines, ReplySettings())

    with pytest.raises(ValueError, match=r"no eagle head: specchat heads train MODEL --kind eagle"):
        session.guess = Guess.EAGLE

    assert not engines.target.keeps_hidden
    engines.close()


def test_states_are_kept_for_those_alone_who_may_guess_with_them(model: Path) -> None:
    train(model)
    engines = load_engines(model, EngineOptions(n_ctx=512, n_threads=1), EngineLog())
    session = ChatSession(engines, ReplySettings())

    kept = {}
    for guess in (Guess.AUTO, Guess.LOOKUP, Guess.EAGLE, Guess.OFF):
        session.guess = guess
        kept[guess] = engines.target.keeps_hidden

    engines.close()
    assert kept == {Guess.AUTO: True, Guess.LOOKUP: False, Guess.EAGLE: True, Guess.OFF: False}


def test_a_second_training_takes_up_what_was_collected_only_when_told_to(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    before = sorted(texts(own).glob("text-*"))
    capsys.readouterr()

    assert train(model, "--kind", "medusa") == 2
    assert "--resume goes on with them" in capsys.readouterr().err
    assert not head_file(own, "medusa").exists()

    assert train(model, "--kind", "medusa", "--resume") == 0
    assert sorted(texts(own).glob("text-*")) == before
    assert head_file(own, "medusa").exists()


def test_ctrl_c_while_collecting_keeps_the_text_and_resume_goes_on(
    own: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped_early(collected: Collected, texts: object, positions: int, progress: Callable[[float], bool]) -> bool:
        return collect(collected, texts, positions, lambda done: done < 300)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "collect", stopped_early)
    assert train(model) == 130
    assert "positions are kept, and --resume goes on" in capsys.readouterr().err
    begun = Collected("target", Source.WRITTEN, weights_of(model)).positions
    assert 0 < begun < 1000
    monkeypatch.undo()
    for name, where in {"DATA_DIR": "data", "CACHE_DIR": "cache", "STATE_DIR": "state", "CONFIG": "own.toml"}.items():
        monkeypatch.setenv(f"SPECCHAT_{name}", str(own / where))
    monkeypatch.setattr(command, "harmless", lambda shelf, path: path)

    assert train(model, "--resume") == 0

    assert load(head_file(own))[1].positions >= 1000


def test_ctrl_c_while_learning_keeps_what_was_learned_and_resume_ends_where_a_whole_run_does(
    own: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(model, "--epochs", "3") == 0
    whole, _ = load(head_file(own))
    head_file(own).unlink()
    assert not list(texts(own).glob("learned-*"))
    monkeypatch.setattr(command, "learn", lambda learner, progress, keep: learn(learner, lambda done: done < 0.4, keep))
    assert train(model, "--epochs", "3", "--resume") == 130
    assert "--resume goes on from there" in capsys.readouterr().err
    assert not head_file(own).exists()
    monkeypatch.setattr(command, "learn", learn)

    assert train(model, "--epochs", "3", "--resume") == 0

    resumed, _ = load(head_file(own))
    for name, each in whole.networks[0].items():
        assert np.array_equal(each, resumed.networks[0][name]), name


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end_keeps_what_was_done_as_ctrl_c_does(
    number: signal.Signals,
    own: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ended(learner: Learner, progress: Callable[[float], bool], keep: Callable[[], None]) -> bool:
        os.kill(os.getpid(), number)
        return learn(learner, progress, keep)

    monkeypatch.setattr(command, "learn", ended)

    assert train(model) == 130

    assert "--resume goes on from there" in capsys.readouterr().err
    assert (texts(own) / "learned-eagle.npz").exists()
    assert signal.getsignal(number) is signal.SIG_DFL


def test_ctrl_c_before_the_learning_begins_keeps_the_text_and_learns_nothing(
    own: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(collected: Collected) -> Examples:
        os.kill(os.getpid(), signal.SIGINT)
        return examples(collected)

    examples = Collected.examples
    monkeypatch.setattr(Collected, "examples", stopped)
    monkeypatch.setattr(Learner, "solve", lambda learner: pytest.fail("it went on"))

    assert train(model) == 130

    assert list(texts(own).glob("text-*"))


def test_what_was_learned_is_kept_behind_each_epoch(model: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = []

    def cut_off(learner: Learner, progress: Callable[[float], bool], keep: Callable[[], None]) -> bool:
        def keep_and_note() -> None:
            keep()
            noted.append((learner.step, learner.steps, (texts(own) / "learned-eagle.npz").exists()))

        return learn(learner, progress, keep_and_note)

    monkeypatch.setattr(command, "learn", cut_off)

    assert train(model, "--epochs", "3") == 0

    steps = noted[-1][1]
    assert noted == [(steps * epoch // 3, steps, True) for epoch in (1, 2, 3)]
    assert not (texts(own) / "learned-eagle.npz").exists()


def test_list_names_every_head_and_what_is_wrong_with_broken_ones(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["heads", "list"]) == 0
    assert "no heads are here" in capsys.readouterr().err
    train(model)
    (own / "data" / "heads" / "other\x1b[2J.medusa.npz").write_bytes(b"nonsense")
    capsys.readouterr()

    assert main(["heads", "list"]) == 0

    broken, good = capsys.readouterr().out.splitlines()
    assert "\x1b" not in broken
    assert broken.endswith("cannot be used: it is damaged, or no head")
    assert good.startswith("target  eagle: right in ")
    assert main(["heads", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [set(each) >= {"path", "problem"} for each in listed] == [True, False]
    assert listed[1]["kind"] == "eagle"


def test_rm_deletes_heads_and_text_and_refuses_what_is_not_there(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)

    assert main(["heads", "rm", "target", "nobody"]) == 4
    assert head_file(own).exists()
    assert main(["heads", "rm", "target"]) == 0

    assert not head_file(own).exists()
    assert not (own / "cache" / "heads" / "target").exists()


def test_rm_of_texts_keeps_the_heads_and_is_what_a_second_training_is_told_of(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    assert train(model) == 2
    assert "`specchat heads rm --texts target` deletes them" in capsys.readouterr().err

    assert main(["heads", "rm", "--texts", "target"]) == 0

    assert head_file(own).exists()
    assert not (own / "cache" / "heads" / "target").exists()
    assert main(["heads", "rm", "--texts", "target"]) == 4
    assert "no text of target is here" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["--positions", "10"], ["--epochs", "0"], ["--seed", "-1"], ["-t", "-3"], ["-t", "0"], ["-t", "513"]],
    ids=" ".join,
)
def test_numbers_that_make_no_sense_are_refused_before_anything_is_loaded(words: list[str]) -> None:
    assert main(["heads", "train", "nowhere.gguf", *words]) == 2


def test_a_machine_without_the_package_that_unpacks_is_told_what_to_install(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)

    assert train(model) == 4

    assert "pip install 'specchat[heads]'" in capsys.readouterr().err
