"""Which models and names `specchat heads` refuses, and what it then leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specchat.cli import main
from specchat.headers import read_header
from specchat.heads import command
from specchat.heads.places import (
    Source,
    alone_with,
    models_with_texts,
    remove_texts,
    texts_of,
)
from specchat.loading import EngineOptions, load_engines
from speculation.llama import EngineLog
from tests.gguf import tiny
from tests.specchat.heads.making import head_file, texts, train


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../data", "a\\b"])
def test_rm_refuses_names_that_lead_elsewhere(
    name: str, own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    (own / "data" / "heads" / "...eagle.npz").write_bytes(b"")
    capsys.readouterr()

    assert main(["heads", "rm", name]) == 2
    assert main(["heads", "rm", "--texts", name]) == 2

    assert capsys.readouterr().err.count(f'"{name}" can be none: rename the file\n') == 2
    assert head_file(own).exists()
    assert list(texts(own).glob("text-*"))


@pytest.mark.parametrize("name", ["..gguf", "...gguf", "a\\b.gguf"])
def test_a_model_file_whose_name_can_be_none_of_a_folder_is_refused_and_can_be_chatted_with(
    name: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tiny.write_attention(own / name)

    assert train(path) == 2

    assert f'"{path.stem}" can be none' in capsys.readouterr().err
    assert not (own / "cache").exists()
    engines = load_engines(path, EngineOptions(n_ctx=64, n_threads=1), EngineLog())
    assert not engines.heads
    engines.close()


def test_what_is_collected_from_chats_is_in_no_folder_of_another_model(own: Path) -> None:
    for path in (texts_of("foo", Source.CHATS), texts_of("foo.chats", Source.WRITTEN), texts_of("foo", Source.WRITTEN)):
        path.mkdir(parents=True)
        (path / "text-00001.npz").touch()

    remove_texts("foo")

    assert models_with_texts() == {"foo.chats"}


def test_a_second_file_of_the_same_name_is_refused_and_the_text_of_the_first_stays(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    before = sorted(texts(own).iterdir())
    capsys.readouterr()
    tiny.write_attention(model, drift=0.05)

    assert train(model, "--resume") == 2

    assert "of another file of that name: `specchat heads rm --texts target` deletes it" in capsys.readouterr().err
    assert sorted(texts(own).iterdir()) == before


def test_one_of_several_files_of_a_model_is_refused_before_anything_is_collected(
    own: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "read_header", lambda path: replace(read_header(path), split=(1, 3)))

    assert train(model) == 2

    assert "target.gguf is one of 3 files of its model" in capsys.readouterr().err
    assert not (own / "cache").exists()


def test_a_model_that_takes_no_token_back_is_refused_before_anything_is_collected(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tiny.write_recurrent(own / "folds.gguf")) == 4

    assert "folds cannot take tokens back, so no head can guess for it" in capsys.readouterr().err
    assert not (own / "cache").exists()


def test_while_one_training_runs_a_second_and_rm_get_one_line_each(
    own: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(model)
    before = sorted(texts(own).iterdir())
    capsys.readouterr()

    with alone_with("target"):
        assert train(model, "--resume") == 4
        assert main(["heads", "rm", "target"]) == 4

    said = capsys.readouterr().err
    assert (
        said.splitlines()
        == ["specchat: another specchat trains a head for target or deletes one; wait for it or stop it"] * 2
    )
    assert sorted(texts(own).iterdir()) == before
    assert head_file(own).exists()
    assert main(["heads", "rm", "target"]) == 0
