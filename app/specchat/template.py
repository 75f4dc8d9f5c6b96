"""Chat templates: the jinja source in a GGUF file, run where it can neither reach out nor run away.

A template is a program that came with a download. It runs in jinja2's immutable sandbox, which limits neither
time nor memory; so that runs in a process of its own, which ends when it takes too much of either.
"""

from __future__ import annotations

import json
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from specchat.workers import worker_command

# For files that bring no template, or one that cannot be used. ChatML is what most small models were taught.
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WORKER = Path(__file__).with_name("template_worker.py")
_START_SECONDS = 30.0  # a slow disk and a virus scanner


class TemplateError(Exception):
    """A chat template that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What compiling or one rendering may take. Only Linux limits memory; elsewhere time alone bounds it."""

    characters: int = 32_000_000  # more than any context holds
    seconds: float = 5.0
    memory_bytes: int = 500_000_000


LIMITS = Limits()


class Template:
    """A compiled chat template. Its process ends with it, or earlier by close()."""

    def __init__(
        self,
        source: str,
        *,
        bos: str = "",
        eos: str = "",
        now: Callable[[], datetime] = datetime.now,
        limits: Limits = LIMITS,
    ) -> None:
        """Compile; bos and eos are the texts of those tokens. Raises TemplateError."""
        self.source = source
        self._setup = {"source": source, "bos": bos, "eos": eos, **asdict(limits)}
        self._now = now
        self._limits = limits
        self._lock = threading.Lock()
        self._start()

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt that asks for the next reply. Raises TemplateError, also past the limits."""
        request = {"messages": [dict(message) for message in messages], "time": self._now().isoformat()}
        with self._lock:
            if not self._worker.alive:
                self._start()
            return self._worker.ask(request, self._limits)

    def close(self) -> None:
        """End the process. Rendering again starts another."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        self._worker = _Worker()
        self._end = weakref.finalize(self, self._worker.end)
        try:
            self._worker.ask(self._setup, self._limits)
        except TemplateError:
            self._end()
            raise


class _Worker:
    """The process of one template."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(
                worker_command(_WORKER),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in the terminal is not meant for it
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # the same, on Windows
            )
        except OSError as error:
            raise TemplateError(f"chat templates cannot run here: {error}") from error
        self._exchange(b"", _START_SECONDS, 100)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], limits: Limits) -> str:
        """The text of an answer. Raises TemplateError, after which the process may have ended."""
        line = json.dumps({**request, "seconds": limits.seconds}).encode() + b"\n"
        # JSON spells a character with at most twelve.
        answer = self._exchange(line, limits.seconds, 12 * limits.characters + 10_000)
        if "error" in answer:
            raise TemplateError(answer["error"])
        return answer["text"]

    def end(self) -> None:
        with suppress(OSError), self._process:  # which closes its pipes, and waits
            self._process.kill()

    def _exchange(self, line: bytes, seconds: float, most: int) -> dict[str, str]:
        """Write a line and read one. The process does not outlive a failure, for its answer may still come."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            with suppress(OSError):  # it has ended, which reading shows too
                self._process.stdin.write(line)
                self._process.stdin.flush()
            read = self._process.stdout.readline(most)
            timer.cancel()
            timer.join()
            if late.is_set():
                raise TemplateError(f"the chat template takes more than {seconds:g} seconds")
            if not read.endswith(b"\n"):
                raise TemplateError("the chat template broke the process that it runs in")
            answer: dict[str, str] = json.loads(read)
            return answer
        except BaseException:
            timer.cancel()
            self.end()
            raise
