"""`specchat heads` on a tiny random model: trained, stopped, taken up, listed, used in a reply, deleted."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from specchat.cli import main
from specchat.conversation import Message, Role
from specchat.heads import command
from specchat.heads.collected import Collected
from specchat.heads.file import BadHead, load, save, weights_of, write_arrays
from specchat.heads.training import collect, learn
from specchat.heads.writing import Frame, Replies, Written, frame_of, read_again
from specchat.loading import EngineOptions, load_engines
from specchat.session import ChatSession, Guess, ReplySettings
from speculation.heads.head import Kind
from speculation.llama import EngineLog, Part, Read
from speculation.sampling import GREEDY
from tests.gguf import tiny

QUESTION = "one two three one two three one two"


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of this test alone."""
    for name, where in {"DATA_DIR": "data", "CACHE_DIR": "cache", "STATE_DIR": "state", "CONFIG": "own.toml"}.items():
        monkeypatch.setenv(f"SPECCHAT_{name}", str(tmp_path / where))
    monkeypatch.setattr(command, "harmless", lambda shelf, path: path)
    return tmp_path


@pytest.fixture
def model(own: Path) -> Path:
    return tiny.write_attention(own / "target.gguf")


def train(model: Path, *more: str) -> int:
    return main(["heads", "train", str(model), "--positions", "1000", "--epochs", "1", "-t", "1", *more])


def head_file(own: Path, kind: str = "eagle") -> Path:
    return own / "data" / "heads" / f"target.{kind}.npz"


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
    before = sorted((own / "cache" / "heads" / "target").glob("text-*"))
    capsys.readouterr()

    assert train(model, "--kind", "medusa") == 2
    assert "--resume goes on with them" in capsys.readouterr().err
    assert not head_file(own, "medusa").exists()

    assert train(model, "--kind", "medusa", "--resume") == 0
    assert sorted((own / "cache" / "heads" / "target").glob("text-*")) == before
    assert head_file(own, "medusa").exists()


def test_ctrl_c_while_collecting_keeps_the_text_and_resume_goes_on(
    own: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped_early(collected: Collected, texts: object, positions: int, progress: Callable[[float], bool]) -> bool:
        return collect(collected, texts, positions, lambda done: done < 300)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "collect", stopped_early)
    assert train(model) == 130
    assert "positions are kept, and --resume goes on" in capsys.readouterr().err
    begun = Collected("target", json.loads((own / "cache/heads/target/weights.json").read_text())).positions
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
    (own / "cache" / "heads" / "target" / "learned-eagle.npz").unlink()
    monkeypatch.setattr(command, "learn", lambda learner, progress: learn(learner, lambda done: done < 0.4))
    assert train(model, "--epochs", "3", "--resume") == 130
    assert "--resume goes on from there" in capsys.readouterr().err
    assert not head_file(own).exists()
    monkeypatch.setattr(command, "learn", learn)

    assert train(model, "--epochs", "3", "--resume") == 0

    resumed, _ = load(head_file(own))
    for name, each in whole.networks[0].items():
        assert np.array_equal(each, resumed.networks[0][name]), name


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
    assert main(["heads", "rm", "../data"]) == 4
    assert main(["heads", "rm", "target"]) == 0

    assert not head_file(own).exists()
    assert not (own / "cache" / "heads" / "target").exists()


@pytest.mark.parametrize(
    "words", [["--positions", "10"], ["--epochs", "0"], ["--seed", "-1"]], ids=["positions", "epochs", "seed"]
)
def test_numbers_that_make_no_sense_are_refused_before_anything_is_loaded(words: list[str]) -> None:
    assert main(["heads", "train", "nowhere.gguf", *words]) == 2


def test_a_machine_without_the_package_that_unpacks_is_told_what_to_install(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)

    assert train(model) == 4

    assert "pip install 'specchat[heads]'" in capsys.readouterr().err


def test_a_chat_without_kept_replies_of_the_model_is_no_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(model, "--from-chats") == 4

    assert "the kept chats have 0 tokens of target" in capsys.readouterr().err


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[int]]]:
    """Twelve replies of a hundred tokens, with their prompts, are kept."""
    rng = np.random.default_rng(0)
    kept = [([5, 6, 7], rng.integers(20, 200, size=100).tolist()) for _ in range(12)]
    monkeypatch.setattr(command, "_chats", lambda reader, name: iter(kept))
    return kept


def test_what_was_read_from_chats_does_not_stay_behind(own: Path, model: Path, chats: object) -> None:
    assert train(model, "--from-chats") == 0

    assert load(head_file(own))[1].positions == 1000
    assert not list((own / "cache" / "heads").iterdir())


def test_chats_and_what_the_model_wrote_itself_never_mix(
    own: Path, model: Path, chats: object, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    written = load(head_file(own))[1].positions
    collected = Collected("target", weights_of(model)).positions

    assert train(model, "--from-chats", "--kind", "medusa") == 0

    assert load(head_file(own, "medusa"))[1].positions == 1000 != written
    assert Collected("target", weights_of(model)).positions == collected


def test_reading_of_chats_that_was_stopped_reads_none_twice(
    own: Path, model: Path, chats: list[tuple[list[int], list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "collect", lambda to, source, most, progress: collect(to, source, 300, progress) and 0)
    assert train(model, "--from-chats") == 130
    monkeypatch.setattr(command, "collect", collect)
    monkeypatch.setattr(command, "learn", lambda learner, progress: False)

    assert train(model, "--from-chats", "--resume") == 130

    collected = Collected("target.chats", weights_of(model))
    assert collected.texts() == {np.array(reply, np.int32).tobytes() for _, reply in chats[:10]}
    assert collected.positions == 1000
    assert main(["heads", "rm", "target"]) == 0
    assert not list((own / "cache" / "heads").iterdir())


# -- Files -----------------------------------------------------------------------------------------------------


def test_a_head_comes_back_as_it_was_saved_up_to_half_precision(own: Path, model: Path) -> None:
    train(model)
    head, about = load(head_file(own))

    save(head, about)

    again, said = load(head_file(own))
    assert said == about
    assert np.array_equal(again.output, head.output)
    assert np.array_equal(again.ids, head.ids)
    assert again.accuracy == about.accuracy


def test_a_head_of_another_file_of_the_same_name_is_left_out_with_a_notice(own: Path, model: Path) -> None:
    train(model)
    tiny.write_attention(model, drift=0.05)

    engines = load_engines(model, EngineOptions(n_ctx=512, n_threads=1), EngineLog())

    assert not engines.heads
    assert "target.eagle.npz was trained for another file of target" in engines.notices
    engines.close()


@pytest.mark.parametrize(
    "fault", ["cut", "flipped", "shape", "nan", "header", "objects", "missing", "scales", "accuracy"]
)
def test_a_broken_file_gives_one_line_and_never_a_head(fault: str, own: Path, model: Path) -> None:
    train(model)
    path = head_file(own)
    data = bytearray(path.read_bytes())
    if fault == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif fault == "flipped":
        data[-200:-100] = bytes(100)
        path.write_bytes(data)
    else:
        with np.load(path) as found:
            arrays = {name: found[name].copy() for name in found.files}
        said = json.loads(arrays["about"].tobytes())
        if fault == "shape":
            arrays["0.skip"] = arrays["0.skip"][:-1]
        elif fault == "nan":
            arrays["output"][0, 0] = np.nan
        elif fault == "missing":
            del arrays["0.leave"]
        elif fault == "objects":
            arrays["ids"] = np.array([{}], dtype=object)
        else:
            said |= {
                "header": {"n_hidden": 10**9},
                "scales": {"feature_scale": -1.0},
                "accuracy": {"accuracy": [float("nan"), 0.1]},
            }[fault]
            arrays["about"] = np.frombuffer(json.dumps(said).encode(), dtype=np.uint8)
        if fault == "objects":
            np.savez(path, **arrays)
        else:
            write_arrays(path, arrays)

    with pytest.raises(BadHead) as caught:
        load(path)

    assert "\n" not in str(caught.value)
    assert "target.eagle.npz" in str(caught.value)


def test_what_was_collected_for_other_weights_is_not_mixed_in(own: Path) -> None:
    text = Written(np.arange(30, dtype=np.int32), np.zeros((30, 4), dtype=np.float16))
    first = Collected("m", "one")
    first.add([text])
    first.keep()

    assert Collected("m", "one").positions == 30
    assert Collected("m", "two").positions == 0
    assert Collected("m", "one").positions == 0


# -- Text ------------------------------------------------------------------------------------------------------


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


def test_the_frame_is_what_the_template_writes_around_any_question() -> None:
    def prompt(messages: Sequence[Message]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:

        (message,) = messages
        assert isinstance(message, Message)
        assert message.role is Role.USER
        return np.array([1, 2, *map(ord, message.text), 7, 8, 9], dtype=np.int32)

    frame = frame_of(prompt, frozenset())

    assert frame.before.tolist() == [1, 2]
    assert frame.after.tolist() == [7, 8, 9]
