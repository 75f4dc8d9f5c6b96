"""`specchat tune` and `specchat bench --history` on kept chats, with tiny models of random weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from specchat.cli import main
from specchat.conversation import Message, Role
from specchat.draft_replay import Kind, PastReply
from specchat.folders import history_path
from specchat.history.records import About
from specchat.history.store import Store
from specchat.settings import SettingsFile, settings_path
from specchat.statistics import tune_command
from specchat.statistics.history_bench import Agreed, agreed_by_kind, alone
from specchat.statistics.past import last_written, prices_from
from speculation.llama import EngineLog, LlamaWeights
from speculation.types import Step
from tests.gguf import tiny
from tests.specchat.statistics.making import chat, part, step

WORDS = " the and a of to in is you that it" * 4
OFF = '[guess]\nmode = "off"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("tiny")
    tiny.write_attention(found / "big.gguf")
    tiny.write_attention(found / "small.gguf", drift=0.05)
    return found


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SPECCHAT_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("big", "small"):
        assert main(["models", "add", str(folder / f"{name}.gguf"), "--alias", name]) == 0
    capsys.readouterr()


@pytest.fixture
def words(folder: Path) -> Iterator[tuple[int, ...]]:
    """A text as the tiny model reads it."""
    weights = LlamaWeights(folder / "big.gguf", EngineLog(), only_vocabulary=True)
    yield tuple(weights.vocabulary.encode(WORDS).tolist())
    weights.close()


def timed_steps(n: int) -> list[Step]:
    """Steps from which prices follow: wide checks cost hardly more."""
    return [step(seconds=0.1)] * n + [step("lookup", 7, 7, 0.11)] * n + [step("lookup", 31, 31, 0.12)] * n


def keep(n: int, tokens: Sequence[int], model: str = "big", steps: int = 6) -> None:
    with Store.open(history_path()) as store:
        for number in range(n):
            about = About(model, "small", "auto", "coupled", 0.7)
            store.put(chat(f"say{WORDS}", WORDS, part(timed_steps(steps), about, ended=1e9 + number), tokens=tokens))


def test_a_vocabulary_alone_reads_as_the_loaded_model_does(folder: Path, log: EngineLog) -> None:
    bare = LlamaWeights(folder / "big.gguf", log, only_vocabulary=True)
    loaded = LlamaWeights(folder / "big.gguf", log)

    assert bare.vocabulary.encode(WORDS).tolist() == loaded.vocabulary.encode(WORDS).tolist()
    assert bare.vocabulary.controls == loaded.vocabulary.controls
    assert bare.chat_template == loaded.chat_template
    bare.close()
    loaded.close()


@pytest.mark.usefixtures("models")
def test_tune_suggests_lookups_to_who_copies_with_guesses_off(
    words: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    settings_path().write_text(OFF)
    keep(6, words)

    assert main(["tune"]) == 0

    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "of your last 6 replies" in lines[0]
    assert any(line.startswith("off (now) ") for line in lines)
    assert "\nbetter: guess.mode = " in text
    assert "faster (est)" in text
    assert settings_path().read_text() == OFF
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    "settings", ['mode = "draft"', 'draft = "small"', 'mode = "off"\n[targets.big]\ndraft = "small"']
)
def test_tune_suggests_nothing_where_a_draft_model_guesses_too(
    words: tuple[int, ...], capsys: pytest.CaptureFixture[str], settings: str
) -> None:
    settings_path().write_text(f"[guess]\n{settings}\n")
    keep(6, words)

    assert main(["tune", "--write"]) == 0

    assert "nothing suggested: a draft model guesses too" in capsys.readouterr().out
    assert settings_path().read_text() == f"[guess]\n{settings}\n"


@pytest.mark.usefixtures("models")
def test_tune_writes_only_when_asked_to(words: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    settings_path().write_text(f"# mine\n{OFF}")
    keep(6, words)

    assert main(["tune", "--write", "--json"]) == 0

    best = json.loads(capsys.readouterr().out)["best"]
    now = SettingsFile(settings_path()).load().guess
    assert {key: getattr(now, key) for key in best["settings"]} == best["settings"]
    assert now.mode != "off"
    assert settings_path().read_text().startswith("# mine\n")


@pytest.mark.usefixtures("models")
def test_tune_says_when_there_is_too_little(words: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    keep(2, words)

    assert main(["tune", "--write"]) == 0

    assert "not enough yet to suggest anything" in capsys.readouterr().out
    assert not settings_path().exists()


@pytest.mark.usefixtures("models")
def test_tune_that_is_interrupted_writes_nothing(
    words: tuple[int, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(6, words)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tune_command, "tried_on", interrupted)

    assert main(["tune", "--write"]) == 130
    assert not settings_path().exists()


@pytest.mark.usefixtures("models")
def test_tune_leaves_out_what_it_cannot_replay_and_says_why(
    words: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(1, words, model="gone")
    keep(1, words, steps=1)

    assert main(["tune"]) == 0

    said = capsys.readouterr().err
    assert "gone wrote these replies and is not here" in said
    assert "nothing to tune by" in said


def test_tune_without_chats_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune"]) == 0

    assert "nothing to tune by" in capsys.readouterr().err


@pytest.mark.usefixtures("models")
def test_a_draft_model_is_tried_on_kept_replies(words: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    keep(3, words)

    assert main(["bench", "--history", "2", "--draft", "small"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("on your last 2 replies small would have given ")
    assert "(est)" in lines[0]
    assert lines[-1].startswith("its first choice is the token that was written: prose ")


@pytest.mark.usefixtures("models")
def test_a_trial_on_the_history_can_be_json(words: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    keep(1, words[:8])

    assert main(["bench", "--history", "5", "--draft", "small", "--json", "--model", "big"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["draft"], found["replies"], found["tokens"]) == ("big", "small", 1, 8)
    assert found["speed_up_est"] is None  # of fewer than 32 steps


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--history", "0"], 2, "--history 0: must be from 1 to"),
        (["--history", "3", "--model", "other"], 3, "no kept reply can be replayed"),
        (["--history", "3", "--draft", "nothing"], 4, 'there is no model "nothing"'),
        (["--history", "3"], 4, "the catalogue knows no draft for this model"),
    ],
)
def test_a_trial_that_cannot_be_made_is_refused(
    words: tuple[int, ...], capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    keep(1, words)

    assert main(["bench", *argv]) == code

    assert said in capsys.readouterr().err


def test_the_last_replies_are_found_on_all_branches_the_oldest_first() -> None:
    about = About("big")
    with Store.open(history_path()) as store:
        for number in (3, 1, 2):
            store.put(chat(f"q{number}", "a", part([step()], about, ended=float(number)), tokens=[number]))
        store.put(chat("no tokens", "a", part([step()], about, ended=9.0)))

        found = last_written(store, 2)

        assert [each.tokens for each in found] == [(2,), (3,)]
        assert found[1].history == (Message(Role.USER, "q3"),)
        assert last_written(store, 5, since=2.5) == found[1:]
        assert last_written(store, 5, model="other") == []


def test_prices_follow_from_steps_and_never_fall_with_width() -> None:
    table = prices_from([*timed_steps(5), *[step("lookup", 0, 1, 0.05)] * 9, step("lookup", 0, 60, 9.0)])

    assert table is not None
    assert dict(table.seconds) == pytest.approx({1: 0.1, 2: 0.1, 8: 0.11, 32: 0.12})


def test_without_plain_steps_there_is_no_price() -> None:
    assert prices_from([step("lookup", 0, 1, 0.05)] * 9) is None
    assert prices_from([]) is None


def test_agreement_is_counted_by_kind() -> None:
    past = [PastReply((1,), (1, 2, 3), (Kind.CODE, Kind.PROSE, Kind.CODE))]

    assert agreed_by_kind(past, [[True, True, False]]) == {Kind.CODE: Agreed(1, 2), Kind.PROSE: Agreed(1, 1)}


@pytest.mark.parametrize(
    ("same", "tokens", "is_enough"),
    [(190, 200, True), (189, 200, False), (100, 100, False)],
)
def test_a_draft_model_may_be_enough_alone_where_it_agrees_often(same: int, tokens: int, is_enough: bool) -> None:
    assert ("small alone may be enough" in alone("small", {Kind.CODE: Agreed(same, tokens)})) == is_enough
