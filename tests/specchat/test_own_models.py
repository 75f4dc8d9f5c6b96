"""The list of the user's own models: what is linked stays where it is, and nothing in the list is trusted blindly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.catalogue import LINKED
from specchat.headers import BrokenFile, UnsupportedFile
from specchat.hub import HubFile, Repository
from specchat.own_models import OwnModels, described, fetchable, free_name, linked
from specchat.repositories import choose, parse_spec
from specchat.tables import CatalogueError
from tests.gguf import tiny
from tests.specchat.test_headers import LLAMA, TEXT, array, gguf, number, tensor, text, words

VOCABULARY = array("tokenizer.ggml.tokens", TEXT, 1, text("a"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "Модели　x"
    folder.mkdir()
    return tiny.write_attention(folder / "My Model (1).Q8_0.gguf")


def part(folder: Path, number_: int, count: int = 2, *, stem: str = "big") -> Path:
    path = folder / f"{stem}-{number_:05}-of-{count:05}.gguf"
    keys = [number("split.no", number_ - 1), number("split.count", count)]
    first = [LLAMA, VOCABULARY] if number_ == 1 else []
    path.write_bytes(gguf(*first, *keys, tensors=(tensor(f"x{number_}", 8),), data=bytes(32)))
    return path


def test_a_linked_model_comes_back_from_the_list_as_it_was_put(tmp_path: Path, model: Path) -> None:
    own = OwnModels(tmp_path / "models")
    one = linked(model, "", ())

    own.put(one)

    assert OwnModels(tmp_path / "models").models() == (one,)
    assert (one.id, one.title, one.origin, one.place) == ("my-model-1-.q8_0", "tiny-llama", LINKED, model)
    assert (one.architecture, one.context, one.file.size) == ("llama", tiny.CONTEXT_LENGTH, model.stat().st_size)
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["own.json"]


def test_a_name_that_is_no_text_survives(tmp_path: Path, model: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("names are text there")
    odd = Path(os.fsdecode(os.fsencode(model.parent) + b"/b\xe9d.gguf"))
    os.rename(model, odd)
    own = OwnModels(tmp_path / "models")

    own.put(linked(odd, "odd", ()))

    (found,) = own.models()
    assert found.place == odd
    assert found.place.exists()


def test_putting_a_model_again_replaces_it_and_forgetting_leaves_the_file(tmp_path: Path, model: Path) -> None:
    own = OwnModels(tmp_path / "models")
    own.put(linked(model, "a", ()))
    own.put(linked(model, "b", ()))
    own.put(linked(model, "a", ()))
    assert [each.id for each in own.models()] == ["b", "a"]

    own.forget("a")
    own.forget("nothing")

    assert [each.id for each in own.models()] == ["b"]
    assert model.exists()


def test_a_split_model_is_linked_whole_by_any_of_its_parts(tmp_path: Path) -> None:
    parts = [part(tmp_path, number_) for number_ in (1, 2)]
    own = OwnModels(tmp_path / "models")

    one = linked(parts[1], "", ())
    own.put(one)

    assert one.place == parts[0]
    assert one.id == "big"
    assert [each.name for each in one.file.parts] == [path.name for path in parts]
    assert one.file.size == sum(path.stat().st_size for path in parts)
    assert own.models() == (one,)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    first = part(tmp_path, 1)

    with pytest.raises(BrokenFile, match=r"is part 1 of 2, and big-00002-of-00002.gguf is not beside it"):
        linked(first, "", ())


def test_a_part_that_is_cut_is_named(tmp_path: Path) -> None:
    first, second = part(tmp_path, 1), part(tmp_path, 2)
    os.truncate(second, second.stat().st_size - 1)

    with pytest.raises(BrokenFile, match=r"big-00002-of-00002.gguf: is incomplete"):
        linked(first, "", ())


def test_a_part_under_another_name_is_told_what_to_do(tmp_path: Path) -> None:
    path = part(tmp_path, 1).rename(tmp_path / "renamed.gguf")

    with pytest.raises(BrokenFile, match="give all parts such names"):
        linked(path, "", ())


def test_what_is_no_chat_model_is_not_linked(tmp_path: Path) -> None:
    path = tmp_path / "mmproj.gguf"
    path.write_bytes(gguf(words("general.architecture", "clip"), tensors=(tensor("x", 8),), data=bytes(32)))

    with pytest.raises(UnsupportedFile, match="holds no model that writes text"):
        linked(path, "", ())


def test_names_are_made_from_files_and_never_twice() -> None:
    assert free_name("Qwen2.5-7B.Q4_K_M.GGUF", ()) == "qwen2.5-7b.q4_k_m"
    assert free_name("x.gguf", ("x", "x-2")) == "x-3"
    assert free_name("llama3:8b", ()) == "llama3-8b"
    assert free_name("日本.gguf", ()) == "model"
    assert free_name("m-00001-of-00003.gguf", ()) == "m"


def test_a_hostile_name_in_a_header_becomes_a_short_harmless_title(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    name = words("general.name", "\x1b[31m\nred" + "x" * 500)
    path.write_bytes(gguf(LLAMA, name, VOCABULARY, tensors=(tensor("x", 8),), data=bytes(32)))

    title = linked(path, "", ()).title

    assert title.isprintable()
    assert len(title) <= 60


def test_a_model_of_the_hub_is_pinned_and_described_once_it_is_here(tmp_path: Path, model: Path) -> None:
    own = OwnModels(tmp_path / "models")
    name = "hf:owner/name:Q8_0"
    spec = parse_spec(name)
    found = Repository("owner/name", "c" * 40, "mit", (HubFile("sub/m-q8_0.gguf", 7, "a" * 64),))

    one = fetchable(own, name, spec, found, choose(spec, found), ("m-q8_0",))
    own.put(one)

    assert own.models() == (one,)
    assert one.id == "m-q8_0-2"
    assert one.place == tmp_path / "models" / "hub" / f"owner--name@{'c' * 12}" / "m-q8_0.gguf"
    known = described(one, model)
    assert (known.title, known.architecture, known.context) == ("tiny-llama", "llama", tiny.CONTEXT_LENGTH)


def test_the_list_survives_a_folder_that_moves(tmp_path: Path) -> None:
    spec = parse_spec("hf:owner/name")
    found = Repository("owner/name", "c" * 40, "mit", (HubFile("m.gguf", 7, "a" * 64),))
    own = OwnModels(tmp_path / "one")
    own.put(fetchable(own, "hf:owner/name", spec, found, choose(spec, found), ()))

    (tmp_path / "one").rename(tmp_path / "two")

    (moved,) = OwnModels(tmp_path / "two").models()
    assert moved.place is not None
    assert moved.place.is_relative_to(tmp_path / "two")


ENTRY = {
    "id": "x", "title": "X", "origin": "linked", "path": "/x.gguf", "architecture": "llama", "context": 1,
    "licence": "unknown", "quantization": "Q8_0", "files": [{"name": "x.gguf", "size": 1, "sha256": ""}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", "must be a table"),
        ('{"models": 3}', "models: must be one or more tables"),
        (json.dumps({"models": [{**ENTRY, "id": "../x"}]}), "id: '../x' must be lower-case letters"),
        (json.dumps({"models": [{**ENTRY, "path": 7}]}), 'model "x" path: must be a text'),
        (json.dumps({"models": [{**ENTRY, "files": []}]}), 'model "x" files: must be one or more tables'),
        (json.dumps({"models": [{**ENTRY, "files": [{"name": "x", "size": 1, "sha256": "z"}]}]}), "64 hexadecimal"),
        (json.dumps({"models": [{**ENTRY, "hub": {"repo": "x", "revision": "y", "file": "z"}}]}), "owner/name"),
    ],
)
def test_a_damaged_list_names_the_file_and_the_key_and_is_never_overwritten(
    tmp_path: Path, model: Path, content: str, said: str
) -> None:
    own = OwnModels(tmp_path)
    own.file.write_text(content)

    with pytest.raises(CatalogueError, match=r"own.json: ") as caught:
        own.models()
    with pytest.raises(CatalogueError):
        own.put(linked(model, "", ()))

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert own.file.read_text() == content


def test_two_processes_that_add_at_once_lose_nothing(tmp_path: Path, model: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom specchat.own_models import OwnModels, linked\n"
        "own = OwnModels(Path(sys.argv[1]))\n"
        "for number in range(10): own.put(linked(Path(sys.argv[2]), f'{sys.argv[3]}{number}', ()))\n"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    children = [
        subprocess.Popen([sys.executable, "-c", script, tmp_path / "models", model, name], env=environ)
        for name in ("a", "b")
    ]

    assert [child.wait(60) for child in children] == [0, 0]

    assert {each.id for each in OwnModels(tmp_path / "models").models()} == {
        f"{name}{number_}" for name in "ab" for number_ in range(10)
    }
