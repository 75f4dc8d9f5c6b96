"""A real llama-server as a process of the tests, and its log."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import THREADS

START_S, LINE_S = 60.0, 30.0
_ACCEPTED = re.compile(r"draft acceptance = .*\(\s*(\d+) accepted /\s*(\d+) generated\)")
N_GRAMS = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8")


def binary() -> Path:
    """The server: SPECCHAT_LLAMA_SERVER, the one that build_llama_server.py made, or one on the path."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specchat-test-models"
    built = Path(os.environ.get("SPECCHAT_TEST_MODELS") or cache) / "llama-server" / "bin" / "llama-server"
    for found in (os.environ.get("SPECCHAT_LLAMA_SERVER"), str(built), shutil.which("llama-server")):
        if found and os.access(found, os.X_OK):
            return Path(found)
    pytest.skip("no llama-server: set SPECCHAT_LLAMA_SERVER, or run tests/gguf/build_llama_server.py (ten minutes)")


class LlamaServer:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        self.url = re.findall(r"http://[\d.]+:\d+", self.wait("listening on http", START_S))[-1]

    @property
    def length(self) -> int:
        """Lines of the log so far."""
        with self._came:
            return len(self._lines)

    def wait(self, words: str, timeout_s: float = LINE_S, after: int = 0) -> str:
        """The first line of the log from `after` on that has these words, once it is there."""

        def found() -> str:
            return next((line for line in self._lines[after:] if words in line), "")

        with self._came:
            assert self._came.wait_for(lambda: found() or self._process.poll() is not None, timeout_s), self._lines
            assert found(), self._lines
            return found()

    def accepted(self, after: int = 0) -> tuple[int, int]:
        """Accepted and generated guesses of all replies that the log tells of from `after` on."""
        with self._came:
            counts = [found for line in self._lines[after:] for found in _ACCEPTED.findall(line)]
        return sum(int(a) for a, _ in counts), sum(int(b) for _, b in counts)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                self._lines.append(line)
                self._came.notify_all()
        with self._came:
            self._came.notify_all()


@contextmanager
def running(model: Path, options: Sequence[str] = (), n_ctx: int = 2048) -> Iterator[LlamaServer]:
    """A server with one slot on a port of its own; port 0 would be, but it does not tell which it got."""
    from tests.specchat.remote.chat_server import free_port

    program = binary()
    command = [str(program), "-m", str(model), "--host", "127.0.0.1", "--port", str(free_port()), "-np", "1"]
    command += ["-c", str(n_ctx), "-t", str(THREADS), *options]
    libraries = f"{program.parent}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}"
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
    )
    try:
        yield LlamaServer(process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
