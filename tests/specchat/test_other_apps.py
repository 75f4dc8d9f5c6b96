"""Models are found where other programs keep them, and those folders are only looked at."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from specchat.other_apps import Found, find_models, stores

BLOB = "sha256-" + "a" * 64


def put(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF" + bytes(size - 4))
    return path


def hub_file(home: Path, repo: str, revision: str, name: str, blob: str, size: int = 10) -> None:
    """As the hub cache has it: the bytes under a number, a link under the name."""
    folder = home / ".cache" / "huggingface" / "hub" / f"models--{repo.replace('/', '--')}"
    content = put(folder / "blobs" / blob, size)
    link = folder / "snapshots" / revision / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(content, link.parent))


def manifest(store: Path, name: str, digest: str | list[str], media: str = "image.model") -> None:
    path = store / "manifests" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    digests = [digest] if isinstance(digest, str) else digest
    layers = [{"mediaType": f"application/vnd.ollama.{media}", "digest": each, "size": 1} for each in digests]
    path.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_file_of_the_hub_cache_is_found_once_under_its_repository(tmp_path: Path) -> None:
    hub_file(tmp_path, "owner/name-GGUF", "1" * 40, "m-q8_0.gguf", "b1")
    hub_file(tmp_path, "owner/name-GGUF", "2" * 40, "m-q8_0.gguf", "b1")
    hub_file(tmp_path, "owner/name-GGUF", "2" * 40, "config.json", "b2")

    (found,) = find_models({}, tmp_path, "linux")

    assert (found.app, found.name, found.size) == ("Hugging Face", "owner/name-GGUF/m-q8_0.gguf", 10)
    assert found.path.name == "m-q8_0.gguf"


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_split_model_is_found_as_one_with_the_size_of_all_parts(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        hub_file(tmp_path, "o/n", "1" * 40, f"Q4/m[x]-{number:05}-of-00003.gguf", f"b{number}", 10 * number)

    (found,) = find_models({}, tmp_path, "linux")

    assert found.path.name == "m[x]-00001-of-00003.gguf"
    assert found.size == 60


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_link_to_nothing_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    store = tmp_path / ".lmstudio" / "models"
    put(store / ".trash" / "x.gguf")
    (store / "o").mkdir()
    (store / "o" / "gone.gguf").symlink_to(tmp_path / "nothing")

    assert find_models({}, tmp_path, "linux") == []


def test_the_folders_of_lm_studio_and_llama_cpp_are_searched(tmp_path: Path) -> None:
    put(tmp_path / ".lmstudio" / "models" / "owner" / "repo" / "a.gguf")
    put(tmp_path / ".cache" / "llama.cpp" / "owner_repo_b.gguf")
    put(tmp_path / ".cache" / "llama.cpp" / "owner_repo_b.gguf.downloadInProgress")

    found = find_models({}, tmp_path, "linux")

    assert [(each.app, each.name) for each in found] == [
        ("LM Studio", "owner/repo/a.gguf"),
        ("llama.cpp", "owner_repo_b.gguf"),
    ]


def test_a_moved_lm_studio_is_followed(tmp_path: Path) -> None:
    put(tmp_path / "disk" / "lm" / "models" / "a.gguf")
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'disk' / 'lm'}\n")
    put(tmp_path / "downloads" / "b.gguf")
    settings = {"downloadsFolder": str(tmp_path / "downloads")}
    (tmp_path / "disk" / "lm" / "settings.json").write_text(json.dumps(settings))

    assert [each.name for each in find_models({}, tmp_path, "linux")] == ["a.gguf", "b.gguf"]


def test_the_models_of_ollama_are_found_by_the_names_they_have_there(tmp_path: Path) -> None:
    store = tmp_path / ".ollama" / "models"
    put(store / "blobs" / BLOB, 77)
    manifest(store, "registry.ollama.ai/library/llama3/8b", BLOB.replace("-", ":", 1))
    manifest(store, "registry.ollama.ai/library/gone/latest", "sha256:" + "b" * 64)
    manifest(store, "registry.ollama.ai/library/odd/latest", "../../../etc/passwd")
    manifest(store, "registry.ollama.ai/library/many/latest", [BLOB.replace("-", ":", 1)] * 2)
    manifest(store, "registry.ollama.ai/library/embed/latest", BLOB.replace("-", ":", 1), "image.license")
    (store / "manifests" / "registry.ollama.ai" / "library" / "broken").write_text("{")
    (store / "manifests" / "loose").write_text("[]")

    (found,) = find_models({}, tmp_path, "linux")

    assert (found.app, found.name, found.size) == ("Ollama", "llama3:8b", 77)
    assert found.path == store / "blobs" / BLOB


def test_ollamas_models_of_other_registries_keep_their_owners(tmp_path: Path) -> None:
    store = tmp_path / ".ollama" / "models"
    put(store / "blobs" / BLOB)
    manifest(store, "hf.co/owner/name-GGUF/Q4_K_M", BLOB.replace("-", ":", 1))

    (found,) = find_models({}, tmp_path, "linux")

    assert (found.name, found.short_name) == ("hf.co/owner/name-GGUF:Q4_K_M", "name-Q4_K_M")


@pytest.mark.parametrize(
    ("name", "path", "short"),
    [
        ("qwen2.5:7b", BLOB, "qwen2.5-7b"),
        ("llama3:latest", BLOB, "llama3"),
        ("someone/llama3:8b-q4_0", BLOB, "llama3-8b-q4_0"),
        ("hf.co/o/n_gguf:latest", BLOB, "n"),
        ("owner/repo/A.GGUF", "A.GGUF", "A.GGUF"),
    ],
)
def test_a_model_is_called_by_what_people_call_it_and_never_by_a_checksum(name: str, path: str, short: str) -> None:
    assert Found("Ollama", name, Path(path), 1).short_name == short


@pytest.mark.parametrize(
    ("environ", "app", "folder"),
    [
        ({"HF_HUB_CACHE": "/a"}, "Hugging Face", "/a"),
        ({"HF_HOME": "/a"}, "Hugging Face", "/a/hub"),
        ({"XDG_CACHE_HOME": "/a"}, "Hugging Face", "/a/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/a"}, "llama.cpp", "/a/llama.cpp"),
        ({"LLAMA_CACHE": "/a"}, "llama.cpp", "/a"),
        ({"OLLAMA_MODELS": "/a"}, "Ollama", "/a"),
    ],
)
def test_the_variables_of_each_program_are_honoured(environ: dict[str, str], app: str, folder: str) -> None:
    assert (app, Path(folder)) in stores(environ, Path("/home"), "linux")


def test_each_system_has_its_own_caches() -> None:
    home = Path("/home")

    assert ("llama.cpp", home / "Library" / "Caches" / "llama.cpp") in stores({}, home, "darwin")
    assert ("llama.cpp", Path("/l") / "llama.cpp") in stores({"LOCALAPPDATA": "/l"}, home, "win32")
