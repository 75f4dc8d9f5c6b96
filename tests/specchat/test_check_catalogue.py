"""`specchat models check-catalogue` against a hub on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specchat.catalogue import Catalogue
from specchat.catalogue_file import catalogue_path, load_catalogue
from specchat.check_catalogue import findings
from specchat.hub import HubError, HubFile, Repository
from tests.specchat.hub_server import COMMIT, Fault, Hub, Repo, serving

CONTENT = {"one-q8_0.gguf": b"GGUF one", "two-q8_0.gguf": b"GGUF two, longer"}
Run = Callable[..., subprocess.CompletedProcess[str]]


def entry(
    name: str,
    file: str,
    *,
    repo: str = "owner/tiny-GGUF",
    revision: str = COMMIT,
    size: int | None = None,
    sha256: str = "",
    licence: str = "Apache-2.0",
) -> str:
    content = CONTENT.get(file, b"GGUF")
    pinned = f'revision = "{revision}"\n' if revision else ""
    return f"""
[[model]]
id = "{name}"
title = "{name}"
roles = ["target"]
architecture = "llama"
context = 100
licence = "{licence}"
[model.file]
name = "{name}.gguf"
quantization = "Q8_0"
size = {size or len(content)}
sha256 = "{sha256 or hashlib.sha256(content).hexdigest()}"
[[model.source]]
kind = "hub"
repo = "{repo}"
{pinned}file = "{file}"
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    repos = {"owner/tiny-GGUF": Repo(CONTENT), "owner/closed": Repo(CONTENT, token="secret", gated=True)}
    with serving(Hub(repos)) as hub:
        yield hub


@pytest.fixture
def run(tmp_path: Path, hub: Hub) -> Run:
    theirs = ("SPECCHAT", "XDG", "HF_", "HUGGING")
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(theirs) and "proxy" not in key.lower()
    }
    env = {**kept, "HOME": str(tmp_path), "SPECCHAT_CATALOGUE": str(tmp_path / "models.toml"), "HF_ENDPOINT": hub.url}

    def call(entries: str, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "models.toml").write_text(f"schema = 1\n{entries}")
        command = [sys.executable, "-m", "specchat", "models", "check-catalogue", *args]
        there = {**env, **more}
        return subprocess.run(
            command, env=there, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )

    return call


def test_what_the_hub_has_too_is_right_and_a_repository_is_asked_for_once(run: Run, hub: Hub) -> None:
    result = run(entry("one", "one-q8_0.gguf") + entry("two", "two-q8_0.gguf"), "one", "two")

    assert (result.returncode, result.stdout) == (0, "one: right\ntwo: right\n")
    assert [path for _, path, _ in hub.seen] == [f"/api/models/owner/tiny-GGUF/revision/{COMMIT}"]
    assert result.stderr == "2 right\n"


def test_what_differs_is_said_and_is_exit_1(run: Run) -> None:
    entries = "".join((
        entry("good", "one-q8_0.gguf"),
        entry("size", "one-q8_0.gguf", size=9),
        entry("sum", "one-q8_0.gguf", sha256="a" * 64),
        entry("terms", "one-q8_0.gguf", licence="MIT"),
    ))  # fmt: skip

    result = run(entries, "good", "size", "sum", "terms")

    lines = result.stdout.splitlines()
    assert result.returncode == 1
    assert lines[0] == "good: right"
    assert lines[1] == "size: wrong: one-q8_0.gguf has 8 bytes, in the catalogue 9"
    assert lines[2].startswith("sum: wrong: the sha256 of one-q8_0.gguf is ")
    assert lines[3] == "terms: wrong: its licence is apache-2.0, in the catalogue MIT"


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            entry("one", "one-q8_0.gguf", repo="owner/nothing"),
            "gone: the hub shows no repository owner/nothing",
        ),
        (
            entry("one", "one-q8_0.gguf", revision="d" * 40),
            f"gone: owner/tiny-GGUF has no revision {'d' * 40}",
        ),
        (entry("one", "three.gguf"), "gone: owner/tiny-GGUF has no three.gguf at c0ffee000000"),
    ],
)
def test_what_the_hub_no_longer_has_is_gone_and_exit_1(run: Run, entries: str, said: str) -> None:
    result = run(entries, "one")

    assert result.returncode == 1
    assert result.stdout.startswith(f"one: {said}")


def test_a_gated_repository_is_no_fault_of_the_catalogue(run: Run) -> None:
    result = run(entry("one", "one-q8_0.gguf", repo="owner/closed"), "one")

    assert result.returncode == 0
    assert result.stdout.startswith("one: gated: owner/closed is gated: accept its terms at ")


def test_a_model_without_a_commit_is_told_the_one_that_has_its_bytes(run: Run) -> None:
    entries = entry("one", "one-q8_0.gguf", revision="") + entry("two", "one-q8_0.gguf", revision="", sha256="a" * 64)

    result = run(entries, "one", "two")

    lines = result.stdout.splitlines()
    assert result.returncode == 1
    assert lines[0] == f'one: unpinned: the file is the right one; pin it with revision = "{COMMIT}"'
    assert lines[1].startswith("two: wrong: the sha256")


def test_as_json_each_finding_has_its_repository_and_commit(run: Run) -> None:
    result = run(entry("one", "one-q8_0.gguf"), "one", "--json")

    assert json.loads(result.stdout) == [
        {"id": "one", "verdict": "right", "detail": "", "repo": "owner/tiny-GGUF", "revision": COMMIT}
    ]


def test_offline_nothing_is_asked_and_the_whole_catalogue_is_exit_9(run: Run, hub: Hub) -> None:
    result = run("", HF_HUB_OFFLINE="1")

    lines = result.stdout.splitlines()
    assert result.returncode == 9
    assert [line.split(":")[0] for line in lines] == [model.id for model in load_catalogue(catalogue_path()).models]
    assert "cannot be checked: cannot fetch Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF: HF_HUB_OFFLINE" in lines[0]
    assert lines[-1].endswith(": cannot be checked: not asked any more")
    assert hub.seen == []


def test_a_hub_that_fails_on_one_repository_is_asked_about_the_next(hub: Hub) -> None:
    catalogue = load_catalogue(catalogue_path())
    asked: list[str] = []

    def look(name: str, revision: str | None) -> Repository:
        asked.append(name)
        kind = "server" if len(asked) == 1 else "network"
        raise HubError({"error": kind, "detail": "503"}, name)

    found = list(findings(catalogue, catalogue.models[:5], look))

    assert [each.verdict for each in found] == ["unchecked"] * 5
    assert len(asked) == 2


def test_a_page_instead_of_a_hub_is_exit_9(run: Run, hub: Hub) -> None:
    hub.always = {"list": Fault("list", "page")}

    result = run(entry("one", "one-q8_0.gguf"), "one")

    assert result.returncode == 9
    assert "is no model hub, perhaps a login page" in result.stdout


def test_a_public_list_of_a_gated_repository_is_compared_and_said_to_be_gated() -> None:
    catalogue = load_catalogue(catalogue_path())
    model = catalogue.find("gemma3-1b")
    files = (HubFile(model.file.name, model.file.size, model.file.sha256),)

    def verdict(licence: str, commit: str) -> list[tuple[str, str]]:
        answer = Repository("x/y", commit, licence, files, gated=True)
        return [(each.verdict, each.detail) for each in findings(catalogue, [model], lambda *_: answer)]

    source = pinned(catalogue)
    assert verdict("gemma", source)[0][0] == "gated"
    assert verdict("", source)[0][0] == "gated"
    assert verdict("apache-2.0", source)[0][0] == "wrong"
    assert "the hub took f9c28bcd8573 for eeeeeeeeeeee" in verdict("gemma", "e" * 40)[0][1]


def pinned(catalogue: Catalogue) -> str:
    """The commit of a model."""
    return getattr(catalogue.find("gemma3-1b").sources[0], "revision", "")
