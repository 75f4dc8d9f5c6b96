"""`specchat doctor` as a shell sees it, in a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specchat.catalogue_file import catalogue_path, load_catalogue
from specchat.doctor.command import checks
from specchat.folders import history_path

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    left_out = ("SPECCHAT", "XDG", "HF_", "PIP_")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(left_out)}, "HOME": str(tmp_path)}


@pytest.fixture
def run(env: dict[str, str]) -> Run:
    def call(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "specchat", "doctor", *args],
            env=env | more,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )

    return call


def found(result: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """The verdicts of each check."""
    verdicts: dict[str, list[str]] = {}
    for each in json.loads(result.stdout)["findings"]:
        verdicts.setdefault(each["check"], []).append(each["verdict"])
    return verdicts


def test_a_fresh_home_has_no_problem_and_every_check_says_something(run: Run) -> None:
    result = run("--quick", "--json")

    report = json.loads(result.stdout)
    assert report["schema"] == "specchat.doctor/1"
    assert report["problems"] == 0
    assert result.returncode == 0
    assert {check.name for check in checks(is_quick=True, is_full=False)} <= set(found(result))


def test_a_broken_settings_file_and_an_open_store_are_problems_and_exit_1(run: Run, tmp_path: Path) -> None:
    config, data = tmp_path / "config.toml", tmp_path / "data"
    config.write_text("[guess]\nmode = 3\n")
    store = history_path({"SPECCHAT_DATA_DIR": str(data)})
    store.parent.mkdir(parents=True, mode=0o755)
    store.parent.chmod(0o755)
    store.write_bytes(b"not a database" * 100)
    store.chmod(0o644)

    result = run("--quick", "--json", SPECCHAT_CONFIG=str(config), SPECCHAT_DATA_DIR=str(data))

    assert result.returncode == 1
    verdicts = found(result)
    assert "problem" in verdicts["settings"]
    assert "problem" in verdicts["chats"]
    if sys.platform != "win32":
        assert "problem" in verdicts["private files"]


def test_a_model_of_the_wrong_size_is_a_problem_with_the_command_that_mends_it(run: Run, tmp_path: Path) -> None:
    name = load_catalogue(catalogue_path()).find("smollm2-135m").file.name
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / name).write_bytes(b"GGUF")

    result = run("--quick", SPECCHAT_MODELS_DIR=str(tmp_path / "models"))

    assert result.returncode == 1
    assert "has not the size of smollm2-135m" in result.stdout
    assert "specchat models pull smollm2-135m" in result.stdout


@pytest.mark.gguf
def test_with_a_model_here_the_ceiling_is_measured_and_kept(run: Run, tmp_path: Path) -> None:
    from tests.conftest import model_file

    models = tmp_path / "models"
    models.mkdir()
    here = model_file("smollm2-135m")
    (models / here.name).symlink_to(here)

    result = run("--full", "--json", SPECCHAT_MODELS_DIR=str(models), SPECCHAT_CACHE_DIR=str(tmp_path / "cache"))

    (ceiling,) = [each for each in json.loads(result.stdout)["findings"] if each["check"] == "ceiling"]
    assert ceiling["values"]["ceiling"] > 0
    assert found(result)["models"] == ["ok"]


def test_the_list_of_the_network_says_what_is_shut_and_by_what(run: Run) -> None:
    result = run("--network", "--json", HF_HUB_OFFLINE="1")

    listed = json.loads(result.stdout)
    assert listed["schema"] == "specchat.doctor.network/1"
    ways = {way["name"]: way for way in listed["ways"]}
    assert not ways["model hub"]["open"]
    assert ways["model hub"]["why"] == "HF_HUB_OFFLINE is set"
    assert ways["package index"]["open"]


def test_offline_shuts_every_way_to_models(run: Run) -> None:
    listed = json.loads(run("--network", "--json", SPECCHAT_OFFLINE="1").stdout)

    assert not any(way["open"] for way in listed["ways"])
