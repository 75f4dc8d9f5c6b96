"""The stand-alone folder, as someone without Python has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from specchat import __version__
from specchat.workers import WORD
from tests.conftest import model_file
from tests.packaging.conftest import ROOT, bare_environment, script

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its terminal has no pty")
CONTROLS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def run(folder: Path, home: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / "specchat"), *map(str, words)]
    return subprocess.run(
        command, env=bare_environment(home, **more), cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_it_starts_without_python(folder: Path, tmp_path: Path) -> None:
    assert run(folder, tmp_path, "--version").stdout.split() == ["specchat", __version__]
    assert "qwen2.5-coder-1.5b" in run(folder, tmp_path, "models", "list").stdout


def test_it_holds_every_data_file_of_the_program(folder: Path) -> None:
    tree = ROOT / "app" / "specchat"
    data = [path.relative_to(tree) for path in tree.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    data = [path for path in data if not any(part.startswith(".") for part in path.parts)]

    assert len(data) >= 7
    assert [path for path in data if not (folder / "_internal/specchat" / path).exists()] == []
    assert (folder / "_internal/specchat/models.toml").read_bytes() == (ROOT / "models.toml").read_bytes()


@pytest.mark.gguf
def test_it_answers(folder: Path, tmp_path: Path) -> None:
    answered = run(folder, tmp_path, "ask", "--max-tokens", "4", "-m", model_file("smollm2-135m"), "Say hello")

    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.strip()
    assert "4 tokens" in answered.stderr


def test_its_processes_are_itself(folder: Path, tmp_path: Path) -> None:
    pip = run(folder, tmp_path, WORD, "pip", "--version")
    pulled = run(folder, tmp_path, "models", "pull", "-y", "hf:a/b:Q4_K_M", HF_ENDPOINT="http://127.0.0.1:9")
    unknown = run(folder, tmp_path, WORD, "os")

    assert pip.stdout.startswith("pip ")
    assert "cannot reach the hub" in pulled.stderr
    assert unknown.returncode == 1
    assert "there is no worker os" in unknown.stderr


@pytest.mark.gguf
def test_the_app_opens_answers_and_leaves(folder: Path, tmp_path: Path) -> None:
    words = ["--max-tokens", "4", "--private", "-m", str(model_file("smollm2-135m"))]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        program = str(folder / "specchat")
        os.execve(program, [program, *words], dict(bare_environment(tmp_path, TERM="xterm-256color")))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 34, 110, 0, 0))
    screen = Screen(terminal)

    screen.wait_for("Type a question")
    screen.wait_for("CPU")  # the model is loaded
    os.write(terminal, b"Say hello\r")
    screen.wait_for("tok/step")
    os.write(terminal, b"\x11")  # Ctrl+Q
    screen.to_the_end()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


class Screen:
    """What a program wrote to a terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._seen = b""

    def wait_for(self, text: str) -> None:
        """Until it is written; a program that ends before fails the test, and pytest's time limit one that hangs."""
        while text.encode() not in CONTROLS.sub(b"", self._seen):
            try:
                self._seen += os.read(self._terminal, 65536)
            except OSError:
                pytest.fail(f"it ended without {text!r}: {CONTROLS.sub(b'', self._seen)[-2000:]!r}")

    def to_the_end(self) -> None:
        """Until the other end is closed."""
        with suppress(OSError):
            while os.read(self._terminal, 65536):
                pass


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"LD_LIBRARY_PATH": "/folder", "LD_LIBRARY_PATH_ORIG": "/mine"}, {"LD_LIBRARY_PATH": "/mine"}),
        ({"LD_LIBRARY_PATH": "/folder"}, {}),
        ({"OTHER": "1"}, {"OTHER": "1"}),
    ],
)
def test_programs_that_it_starts_do_not_load_its_libraries(
    monkeypatch: pytest.MonkeyPatch, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    monkeypatch.setattr("os.environ", dict(before))

    script("entry").restore_library_path()

    assert os.environ == after
