"""`specchat models list` and what people are told of memory, licences and their own catalogue."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

import pytest

from specchat import listing, models
from specchat.catalogue import CatalogueError
from specchat.errors import Declined, NotHere
from specchat.listing import context_words, list_models
from specchat.models import pull_models
from specchat.recommended import GIB
from specchat.shelf import Shelf

BROKEN = 'schema = 1\n[[model]]\nid = "qwen3-4b"\ncontext = "long"\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own on a machine with 8 GiB, of which 3 GB are free."""
    for name in list(os.environ):
        if name.startswith(("SPECCHAT", "XDG", "HF_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPECCHAT_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("SPECCHAT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setattr("specchat.shelf.total_memory", lambda: 8 * GIB)
    monkeypatch.setattr(listing, "free_memory", lambda: 3_000_000_000)
    return tmp_path


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the whole catalogue with two models here."""
    put("smollm2-135m", "qwen3-4b")
    list_models(Namespace(json=False, fits=False))
    return capsys.readouterr().out.splitlines()


def put(*names: str) -> None:
    """Have models here, as far as their sizes tell."""
    shelf = Shelf()
    shelf.store.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        model = shelf.catalogue.find(name)
        with shelf.store.path(model).open("wb") as file:
            file.truncate(model.file.size)


def test_the_list_fits_80_columns_and_begins_with_what_is_here(listed: list[str]) -> None:
    assert len(listed) == 48
    assert max(map(len, listed)) <= 79
    assert listed[0].split() == ["NAME", "QUANT", "SIZE", "STATE", "CTX", "LICENCE", "DRAFT"]
    assert listed[1].split() == ["qwen3-4b", "Q4_K_M", "2.5", "GB", "here", "40k", "open", "qwen3-0.6b-q4"]
    assert listed[2].split() == ["smollm2-135m", "Q4_1", "98.4", "MB", "here", "8k", "open", "-"]
    assert [line.split()[0] for line in listed[3:5]] == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]


def test_the_list_marks_licences_what_only_drafts_and_what_has_no_commit(listed: list[str]) -> None:
    rows = {line.split()[0]: line.split() for line in listed}

    assert rows["qwen2.5-coder-3b"][-2] == "research"
    assert rows["gemma3-4b"][-2] == "terms"
    assert rows["qwen3-0.6b-q4"][-1] == "(draft)"
    assert "no pin" in next(line for line in listed if line.startswith("qwen3.6-27b"))
    assert "gemma4-e4b-mtp" not in rows


def test_only_what_fits_into_free_memory_is_listed_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    list_models(Namespace(json=True, fits=True))

    said = capsys.readouterr()
    listed = json.loads(said.out)
    assert all(entry["memory_bytes"] <= 3_000_000_000 for entry in listed)
    assert {"qwen2.5-coder-3b", "gemma3-1b"} <= {entry["id"] for entry in listed}
    assert "qwen3-4b" not in {entry["id"] for entry in listed}
    assert "what fits into 3.0 GB of free memory" in said.err


def test_where_memory_is_not_known_all_are_listed_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(listing, "free_memory", lambda: None)

    list_models(Namespace(json=True, fits=True))

    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 47
    assert "is not known, so all models are listed" in said.err


def test_as_json_a_model_has_all_that_is_known_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    list_models(Namespace(json=True, fits=False))

    entries = {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}
    llama, qwen = entries["llama3.1-8b"], entries["qwen3.6-27b"]
    assert (llama["terms"], llama["memory"], llama["tokenizer"]) == ("conditions", "dense", "llama3")
    assert llama["pairs"][0]["evidence"] == "reported"
    assert (llama["checked"], llama["checked_on"]) == ("found", "2026-10")
    assert entries["gemma3-1b"]["sampling"] == {"temperature": 1.0, "top_k": 64, "top_p": 0.95, "min_p": 0.0}
    assert (qwen["state"], qwen["hub"]["revision"]) == ("no pin", None)


@pytest.mark.parametrize(("tokens", "said"), [(0, "-"), (512, "512"), (8192, "8k"), (131072, "128k"), (262144, "256k")])
def test_lengths_are_said_short(tokens: int, said: str) -> None:
    assert context_words(tokens) == said


def test_a_larger_pair_is_suggested_where_there_is_room_and_nothing_is_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    list_models(Namespace(json=False, fits=False))
    assert "this machine has room" not in capsys.readouterr().err

    monkeypatch.setattr("specchat.shelf.total_memory", lambda: 16 * GIB)
    put("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
    list_models(Namespace(json=False, fits=False))

    said = capsys.readouterr().err
    assert said.endswith(
        "this machine has room for qwen2.5-coder-7b with qwen2.5-coder-0.5b: specchat models pull qwen2.5-coder-7b\n"
    )
    assert Shelf().catalogue.default_target == "qwen2.5-coder-1.5b"


def test_the_larger_pair_is_what_it_starts_with_where_only_that_is_here() -> None:
    put("qwen2.5-coder-7b")

    assert Shelf().catalogue.default_target == "qwen2.5-coder-7b"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("qwen3.6-27b", "`specchat models pull hf:unsloth/Qwen3.6-27B-GGUF:Q4_K_M` asks the hub"),
        ("gemma4-e4b-mtp", "is of no use alone"),
    ],
)
def test_what_cannot_be_fetched_says_why_before_anything_is_asked(name: str, said: str, home: Path) -> None:
    with pytest.raises(NotHere, match=said):
        pull_models(Namespace(names=[name], yes=True))
    with pytest.raises(NotHere, match=said):
        Shelf().locate(name, agreed=True)

    assert not (home / "models").exists()


def test_a_licence_with_conditions_is_shown_and_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    with pytest.raises(Declined, match="no terminal to ask on about the licence; add -y"):
        pull_models(Namespace(names=["qwen2.5-coder-3b"], yes=False))
    said = capsys.readouterr().err
    assert "licence LicenseRef-Qwen-Research, from Qwen/Qwen2.5-Coder-3B-Instruct-GGUF at f74adce6aa16" in said
    assert "Qwen Research License forbids commercial use: https://" in said

    monkeypatch.setattr(models, "can_ask", lambda: True)
    monkeypatch.setattr(models, "confirmed", lambda question: False)
    with pytest.raises(Declined, match="nothing fetched"):
        pull_models(Namespace(names=["gemma3-4b", "gemma3-1b"], yes=False))
    assert capsys.readouterr().err.count("Gemma Terms of Use has conditions") == 1
    assert not (home / "models").exists()


def test_a_broken_catalogue_of_the_users_ends_a_command_with_file_line_and_key(home: Path) -> None:
    (home / "models.toml").write_text(BROKEN)

    with pytest.raises(CatalogueError, match=r'models\.toml, line 4: model "qwen3-4b" context: must be') as caught:
        list_models(Namespace(json=False, fits=False))

    assert caught.value.exit_code == 2


def test_who_wants_to_go_on_gets_the_shipped_catalogue_and_the_complaint(home: Path) -> None:
    (home / "models.toml").write_text(BROKEN)
    (home / "models").mkdir()
    (home / "models" / "own.json").write_text("{")
    told: list[str] = []

    shelf = Shelf(told.append)

    assert shelf.catalogue.find("qwen3-4b").context == 40960
    assert "models.toml, line 4: " in told[0]
    assert told[0].endswith("; using the shipped catalogue")
    assert "own.json: is not valid JSON" in told[1]
    assert len(told) == 2


def test_the_users_models_are_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "models.toml").write_text('schema = 1\n[[model]]\nid = "qwen3-4b"\ntitle = "Ours"\n')

    list_models(Namespace(json=True, fits=False))

    assert '"title": "Ours"' in capsys.readouterr().out
