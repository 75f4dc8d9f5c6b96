"""`specchat models` with files of the user's own and models of the hub, as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specchat.errors import Declined
from specchat.hub import HubFile, Repository
from specchat.shelf import Shelf
from tests.gguf import tiny
from tests.specchat.hub_server import Fault, Hub, Repo, serving
from tests.specchat.test_headers import gguf, tensor, words
from tests.specchat.test_other_apps import manifest

Run = Callable[..., subprocess.CompletedProcess[str]]
SPEC = "hf:owner/tiny-GGUF:Q8_0"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return tiny.write_attention(tmp_path_factory.mktemp("tiny") / "x.gguf").read_bytes()


@pytest.fixture
def model(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "elsewhere" / "My tiny.gguf"
    path.parent.mkdir()
    path.write_bytes(content)
    return path


@pytest.fixture
def hub(content: bytes) -> Iterator[Hub]:
    files = {"tiny-q8_0.gguf": content, "tiny-q4_0.gguf": content[:-64] + bytes(64), "README.md": b"# tiny"}
    with serving(Hub({"owner/tiny-GGUF": Repo(files)})) as hub:
        yield hub


@pytest.fixture
def env(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A home of its own and the hub on this machine, for children and for what runs in here."""
    theirs = ("SPECCHAT", "XDG", "HF_", "HUGGING", "OLLAMA", "LLAMA")
    for name in list(os.environ):
        if name.startswith(theirs) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(tmp_path),
        "SPECCHAT_MODELS_DIR": str(tmp_path / "models"),
        "PIP_NO_INDEX": "1",
        "HF_ENDPOINT": hub.url,
    }.items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


@pytest.fixture
def run(env: dict[str, str], tmp_path: Path) -> Run:
    def call(*args: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "specchat", *map(str, args)]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60,
            check=False,
        )  # fmt: skip

    return call


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.stderr.startswith("specchat: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_an_added_file_is_a_model_like_any_other_and_stays_where_it_is(run: Run, model: Path, tmp_path: Path) -> None:
    added = run("models", "add", model, "--alias", "mine")

    assert (added.returncode, added.stdout) == (0, "mine\n")
    assert str(model) in added.stderr
    listed = {entry["id"]: entry for entry in json.loads(run("models", "list", "--json").stdout)}
    assert (listed["mine"]["origin"], listed["mine"]["here"], listed["mine"]["path"]) == ("linked", True, str(model))
    assert "linked" in next(line for line in run("models", "list").stdout.splitlines() if line.startswith("mine"))
    assert run("models", "path", "mine").stdout.strip() == str(model)
    assert run("models", "verify", "mine").stdout == "mine: header sound, no checksum to compare with\n"
    answered = run("ask", "-q", "-m", "mine", "--draft", "mine", "-g", "draft", "--max-tokens", "4", "hello")
    assert (answered.returncode, answered.stderr) == (0, "")
    assert files_in(tmp_path / "models") == ["own.json"]


def test_a_forgotten_file_is_still_there(run: Run, model: Path, content: bytes) -> None:
    run("models", "add", model, "--alias", "mine")

    removed = run("models", "rm", "mine")

    assert removed.returncode == 0
    assert "its file stays at" in removed.stderr
    assert model.read_bytes() == content
    assert run("models", "path", "mine").returncode == 4


def test_a_file_that_went_away_is_said_so_with_the_way_out(run: Run, model: Path) -> None:
    run("models", "add", model, "--alias", "mine")
    model.unlink()

    result = run("ask", "-m", "mine", "hello")

    assert result.returncode == 4
    assert "is gone, where mine is linked to; put it back, or forget it: specchat models rm mine" in one_line(result)
    assert "gone" in run("models", "list").stdout
    assert run("models", "rm", "mine").returncode == 0


def test_adding_a_file_twice_or_under_a_taken_name_is_told(run: Run, model: Path) -> None:
    assert run("models", "add", model).stdout == "my-tiny\n"

    again = run("models", "add", model)
    taken = run("models", "add", model, "--alias", "smollm2-135m")
    odd = run("models", "add", model, "--alias", "No/Name")

    assert (again.returncode, again.stdout) == (0, "")
    assert "here already, as my-tiny" in again.stderr
    assert (taken.returncode, odd.returncode) == (2, 2)
    assert "another model has this name" in one_line(taken)
    assert "lower-case letters, digits" in one_line(odd)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!DOCTYPE html>", "is no GGUF file (it begins with b'<!DO')"),
        (gguf(words("general.architecture", "llama"), n_keys=2), "ends in the middle of a key"),
        (
            gguf(words("general.architecture", "newarch"), tensors=(tensor("x", 8),), data=bytes(32)),
            'is sound, but its architecture "newarch" is unknown to the engine of this specchat',
        ),
    ],
)
def test_a_file_that_cannot_be_a_model_is_not_added(run: Run, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.gguf").write_bytes(content)

    result = run("models", "add", "x.gguf")

    assert result.returncode == 4
    assert said in one_line(result)
    assert not (tmp_path / "models" / "own.json").exists()


def test_info_says_what_the_file_of_a_model_or_path_says(run: Run, model: Path) -> None:
    run("models", "add", model, "--alias", "mine")

    by_name, by_path = (json.loads(run("models", "info", "--json", name).stdout) for name in ("mine", model))
    shown = run("models", "info", "mine").stdout
    missing = run("models", "info", "smollm2-135m").stdout

    assert (by_name["name"], by_name["state"], by_name["origin"]) == ("mine", "linked", "linked")
    assert (by_path["architecture"], by_path["template"], by_path["tokenizer"]) == ("llama", True, "gpt2 qwen2")
    assert by_path["tensors"] == {"F32": sum(by_path["tensors"].values())}
    assert by_path["vocabulary_sha256"] == by_name["vocabulary_sha256"]
    assert f"({model.stat().st_size:,} bytes)" in shown
    assert "SmolLM2 135M Instruct" in missing


def test_models_of_other_programs_are_found_and_added_where_they_lie(run: Run, tmp_path: Path, content: bytes) -> None:
    place = tmp_path / ".lmstudio" / "models" / "owner" / "repo" / "tiny-Q8_0.gguf"
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    place.with_name("mmproj.gguf").write_bytes(
        gguf(words("general.architecture", "clip"), tensors=(tensor("x", 8),), data=bytes(32))
    )

    listed = run("models", "find")
    assert listed.stdout.split()[0] == "tiny-q8_0"
    assert listed.stdout.endswith(" -       LM Studio, owner/repo/tiny-Q8_0.gguf\n")
    assert "left out: LM Studio, owner/repo/mmproj.gguf is sound, but holds no model that writes text" in listed.stderr
    assert not (tmp_path / "models").exists()

    assert " added " in run("models", "find", "--add").stdout
    assert " linked " in run("models", "find").stdout
    assert run("models", "path", "tiny-q8_0").stdout.strip() == str(place)


def test_a_model_of_ollama_gets_the_name_it_has_there_and_no_checksum(run: Run, tmp_path: Path) -> None:
    store = tmp_path / ".ollama" / "models"
    blob = store / "blobs" / f"sha256-{'a' * 64}"
    blob.parent.mkdir(parents=True)
    nameless = tiny._File(blob, "llama", tiny.VOCABULARY, seed=0)
    del nameless.writer.kv_data[0]["general.name"]
    nameless.embeddings()
    nameless.close()
    manifest(store, "registry.ollama.ai/library/some-model/7b", f"sha256:{'a' * 64}")

    added = run("models", "find", "--add")

    assert added.stdout.split()[0] == "some-model-7b"
    assert added.stdout.endswith(" added   Ollama, some-model:7b\n")
    facts = json.loads(run("models", "info", "--json", "some-model-7b").stdout)
    assert (facts["title"], facts["path"]) == ("some-model:7b", str(blob))


def test_nothing_to_find_names_where_it_looked(run: Run) -> None:
    result = run("models", "find")

    assert result.returncode == 0
    assert "(Hugging Face, LM Studio, llama.cpp, Ollama)" in result.stderr


def test_a_model_of_the_hub_is_pulled_pinned_and_usable_by_both_its_names(
    run: Run, tmp_path: Path, content: bytes
) -> None:
    pulled = run("models", "pull", "-y", SPEC)

    path = Path(pulled.stdout.strip())
    assert pulled.returncode == 0
    assert path.read_bytes() == content
    assert path.is_relative_to(tmp_path / "models" / "hub")
    assert "licence apache-2.0, from owner/tiny-GGUF at c0ffee000000, as tiny-q8_0" in pulled.stderr
    assert files_in(tmp_path / "models") == [f"hub/{path.parent.name}/tiny-q8_0.gguf", "own.json"]
    listed = {entry["id"]: entry for entry in json.loads(run("models", "list", "--json").stdout)}
    assert (listed["tiny-q8_0"]["origin"], listed["tiny-q8_0"]["context"]) == (SPEC, tiny.CONTEXT_LENGTH)
    assert run("models", "verify", "tiny-q8_0").stdout == "tiny-q8_0: right\n"
    for name in ("tiny-q8_0", SPEC):
        assert run("ask", "-q", "-m", name, "--max-tokens", "2", "hello").returncode == 0


@pytest.mark.parametrize("args", [("models", "pull", SPEC), ("ask", "-q", "-m", SPEC, "--max-tokens", "1", "hello")])
def test_what_a_fetch_had_no_time_to_note_of_its_file_is_noted_later(
    run: Run, tmp_path: Path, args: tuple[str, ...]
) -> None:
    run("models", "pull", "-y", SPEC)
    own = tmp_path / "models" / "own.json"
    known = json.loads(own.read_text())
    known["models"][0] |= {"architecture": "unknown", "context": 0, "title": "tiny-q8_0"}  # as while it is fetched
    own.write_text(json.dumps(known))

    assert run(*args).returncode == 0

    (entry,) = json.loads(own.read_text())["models"]
    assert (entry["architecture"], entry["context"]) == ("llama", tiny.CONTEXT_LENGTH)


def test_a_model_that_is_here_asks_the_hub_nothing(run: Run, hub: Hub) -> None:
    run("models", "pull", "-y", SPEC)
    hub.seen.clear()

    assert run("models", "pull", SPEC).returncode == 0
    assert run("ask", "-q", "-m", SPEC, "--max-tokens", "1", "hello").returncode == 0

    assert hub.seen == []


def test_without_a_terminal_and_without_yes_nothing_of_the_hub_is_fetched(run: Run, tmp_path: Path) -> None:
    pulled = run("models", "pull", SPEC)
    asked = run("ask", "-m", SPEC, "hello")

    assert pulled.returncode == 6
    assert "no terminal to ask on; add -y" in pulled.stderr
    assert asked.returncode == 4
    assert f"run `specchat models pull {SPEC}` first, or add -y" in asked.stderr
    assert not (tmp_path / "models" / "hub").exists()


def test_several_quantizations_are_listed_with_their_sizes(run: Run) -> None:
    result = run("models", "pull", "-y", "hf:owner/tiny-GGUF")

    lines = result.stderr.splitlines()
    assert result.returncode == 2
    assert [line.split()[0] for line in lines[:2]] == ["Q4_0", "Q8_0"]
    assert all(line.endswith(".gguf") for line in lines[:2])
    assert "name one, for example hf:owner/tiny-GGUF:Q4_0" in lines[2]


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("hf:owner/tiny-GGUF:Q2_K", 2, "owner/tiny-GGUF has no Q2_K; it has Q4_0, Q8_0"),
        ("hf:owner/nothing:Q8_0", 4, "the hub shows no repository owner/nothing"),
        ("hf:what", 2, "the form is hf:owner/name:QUANTIZATION"),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(run: Run, name: str, code: int, said: str) -> None:
    result = run("models", "pull", "-y", name)

    assert result.returncode == code
    assert said in one_line(result)


def test_a_broken_off_pull_is_listed_goes_on_and_can_be_removed(
    run: Run, hub: Hub, tmp_path: Path, content: bytes
) -> None:
    hub.always = {"bytes": Fault("bytes", "403")}
    hub.faults = [Fault("bytes", "close", len(content) // 2)]
    assert run("models", "pull", "-y", SPEC).returncode == 9
    assert " part" in next(line for line in run("models", "list").stdout.splitlines() if line.startswith("tiny-q8_0"))
    hub.always = {}
    hub.seen.clear()

    assert run("models", "pull", "-y", SPEC).returncode == 0
    assert int(hub.ranges()[0][6:-1]) > len(content) // 4

    refused = run("models", "rm", "tiny-q8_0")
    assert (refused.returncode, "add -y" in refused.stderr) == (6, True)
    assert run("models", "rm", "-y", "tiny-q8_0").returncode == 0
    assert files_in(tmp_path / "models") == ["own.json"]
    assert not list((tmp_path / "models" / "hub").iterdir())


def test_a_pull_that_brought_nothing_leaves_no_trace(run: Run, hub: Hub, tmp_path: Path) -> None:
    hub.always = {"bytes": Fault("bytes", "403")}

    assert run("models", "pull", "-y", SPEC).returncode == 9

    assert files_in(tmp_path / "models") == ["own.json"]
    assert "tiny-q8_0" not in run("models", "list").stdout


def test_a_published_file_that_is_no_model_does_not_stay(run: Run, hub: Hub, tmp_path: Path) -> None:
    hub.repos["owner/odd"] = Repo({"odd-q8_0.gguf": b"GGUF" + bytes(500)})

    result = run("models", "pull", "-y", "hf:owner/odd")

    assert result.returncode == 4
    assert "is no GGUF file (of version 0)" in result.stderr
    assert files_in(tmp_path / "models") == ["own.json"]


@pytest.mark.usefixtures("env")
def test_a_model_of_the_catalogue_is_recognised_by_its_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    smollm = shelf.catalogue.find("smollm2-135m")
    same = Repository("owner/other", "c" * 40, "", (HubFile("x.gguf", 5, smollm.file.sha256),))
    monkeypatch.setattr("specchat.shelf.repository", lambda name, revision, waiting: same)

    assert shelf.hub_model("hf:owner/other") == smollm


@pytest.mark.usefixtures("env")
def test_the_size_is_shown_and_a_no_fetches_nothing(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from specchat import models

    questions: list[str] = []

    def no(question: str) -> bool:
        questions.append(question)
        return False

    monkeypatch.setattr(models, "can_ask", lambda: True)
    monkeypatch.setattr(models, "confirmed", no)

    with pytest.raises(Declined, match="nothing fetched"):
        models.pull_models(Namespace(names=[SPEC], yes=False))

    assert questions[0].startswith("Fetch ")
    assert "tiny-q8_0: " in capsys.readouterr().err
    assert hub.ranges() == []
    assert not (tmp_path / "models" / "hub").exists()
