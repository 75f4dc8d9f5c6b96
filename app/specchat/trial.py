"""Loads a model file nobody vouches for in a process of its own first, so that the app outlives one that breaks it.

llama.cpp ends its process over some damaged or crafted files. A file that has passed is not tried again until it, or
the engine, changes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import IO, Any

from specchat.catalogue import Model
from specchat.console import size
from specchat.downloads import Store
from specchat.headers import brings_next_layer, check_usable, read_header
from specchat.kept import Kept
from specchat.own_models import linked
from specchat.workers import worker_command
from speculation.heads.eagle3 import ARCHITECTURE as EAGLE3
from speculation.heads.eagle3 import why_unfit
from speculation.llama import ENGINE_VERSION, LlamaModel, target_facts
from speculation.types import CannotLoad, Interrupted

WORKER = Path(__file__).with_name("trial_worker.py")
NOTE = "trying it in a process of its own"  # what is going on, beside a bar
POLL_S = 0.05
LINE_BYTES = 1 << 16
SLOWEST_DISK = 20_000_000  # bytes a second that a file is read at, before it counts as hanging
PATIENCE_S = 60.0  # without a sign of life, beside that
MEMORY_BYTES = 2_000_000_000  # for vocabulary, cache and arithmetic, beside a copy of the weights
_AND = "it was tried in a process of its own and is not loaded"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a trial may take."""

    silence_s: float  # without a sign of life
    memory_bytes: int  # of its own, mapped weights not counted

    @classmethod
    def of(cls, file_bytes: int) -> Limits:
        """For a model of a size."""
        return cls(PATIENCE_S + file_bytes / SLOWEST_DISK, MEMORY_BYTES + file_bytes * 5 // 4)


def vouched_for(path: Path, models: Iterable[Model], store: Store) -> bool:
    """Whether a file is one of the catalogue, whose checksum was compared when it came here."""
    return any(not model.origin and store.path(model) == path for model in models)


def tried(path: Path, passes: Kept, progress: Callable[[float], bool], target: LlamaModel | None = None) -> Path:
    """The path to load a model by, once its header is sound and a trial has passed, now or earlier.

    `progress` hears 0..1 and may return False to stop. An EAGLE-3 head is tried beside the `target` that it would guess
    for, and refused without. Raises HeaderError, CannotLoad, Interrupted.
    """
    key = str(path.absolute())
    if (known := _passed(passes.get(key))) is not None:
        return known
    model = linked(path, "trial", ())  # reads the header of each part
    assert model.place is not None
    files = [model.place.with_name(part.name) for part in model.file.parts]
    more: dict[str, Any] = {}
    if model.architecture == EAGLE3:
        key, more = _beside(model.place, target)
        if (known := _passed(passes.get(key))) is not None:
            return known
        files.append(Path(more["target"]))
    elif brings_next_layer(read_header(model.place)):
        more["next_layer"] = True
    try:
        before = [_identity(file) for file in files]
        try_out(model.place, Limits.of(sum(file.stat().st_size for file in files)), progress, WORKER, more)
        if before == [_identity(file) for file in files]:
            passes.put(key, {"engine": ENGINE_VERSION, "files": before})
    except OSError as error:
        raise CannotLoad(f"cannot use {model.place}: {error.strerror or error}") from error
    return model.place


def _beside(place: Path, target: LlamaModel | None) -> tuple[str, dict[str, Any]]:
    """By what a trial of a head is known, and what it takes beside the file. Raises CannotLoad, HeaderError."""
    header = read_header(place)
    if target is None or header.head is None:
        check_usable(header)
        raise CannotLoad(f"cannot use {place} by itself")
    if reason := why_unfit(target_facts(target), header.head):  # over which the engine would end the process
        raise CannotLoad(reason)
    model = target.weights.path.absolute()
    return f"{place.absolute()} beside {model}", {"target": str(model), "head": asdict(header.head)}


def try_out(
    path: Path,
    limits: Limits,
    progress: Callable[[float], bool],
    worker: Path = WORKER,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Load a file in a child process, decode with it, and end the process. Raises CannotLoad, Interrupted.

    `more` of the request: the target of a head and what the header of the head says, or that the file brings a layer
    for the token after the next one, which is tried too.
    """
    with tempfile.TemporaryFile() as log:
        try:
            child = _started(worker, log)
        except OSError as error:
            raise CannotLoad(f"{path.name} cannot be tried in a process of its own: {error}") from error
        heard = _Heard(child)
        try:
            heard.ask({"path": str(path), "search": [each for each in sys.path if each], **more})
            answer = _watch(child, heard, path, limits, progress)
        finally:
            child.kill()
            child.wait()
            heard.close()
        if answer.get("ok") is True:
            return
        if "error" in answer:
            raise CannotLoad(str(answer["error"]))
        log.seek(0)
        raise CannotLoad(_fate(path, child.returncode, log.read().decode("utf-8", "replace")))


def _started(worker: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        worker_command(worker),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,  # Ctrl-C in the terminal is not meant for it
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # the same, on Windows
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # or a debugger would be started over a crash
    )


class _Heard:
    """What a child says: its last line, and when that came."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.last: Mapping[str, Any] = {}
        self.at_s = monotonic()
        self._thread = threading.Thread(target=self._listen, name="trial", daemon=True)
        self._thread.start()

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send the request. Its input stays open: the child ends when that does."""
        assert self._child.stdin is not None
        with suppress(OSError):  # it has ended, which its answer shows too
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()

    def close(self) -> None:
        """The child has ended."""
        self._thread.join()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()

    def to_the_end(self) -> Mapping[str, Any]:
        """The last line of a child that has ended."""
        self._thread.join()
        return self.last

    def _listen(self) -> None:
        assert self._child.stdout is not None
        while line := self._child.stdout.readline(LINE_BYTES):
            with suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, dict):
                    self.last, self.at_s = said, monotonic()


def _watch(
    child: subprocess.Popen[bytes], heard: _Heard, path: Path, limits: Limits, progress: Callable[[float], bool]
) -> Mapping[str, Any]:
    """The last line that the child says before it ends. Raises CannotLoad, Interrupted; the child lives on then."""
    while child.poll() is None:
        if not progress(min(1.0, float(heard.last.get("done", 0.0)))):
            raise Interrupted(f"loading {path.name} was stopped")
        if monotonic() - heard.at_s > limits.silence_s:
            problem = f"keeps the engine busy without an end (nothing came of it for {limits.silence_s:.0f} s)"
            raise CannotLoad(f"{path.name} {problem}; {_AND}")
        if (own := _own_memory(child.pid)) is not None and own > limits.memory_bytes:
            raise CannotLoad(f"{path.name} makes the engine take more than {size(limits.memory_bytes)}; {_AND}")
        with suppress(subprocess.TimeoutExpired):
            child.wait(POLL_S)
    return heard.to_the_end()


def _fate(path: Path, code: int, said: str) -> str:
    """What became of a child that gave no answer."""
    if code in (-9, -getattr(signal, "SIGKILL", 9)):
        return f"the system ended the trial of {path.name}, most likely for lack of memory; it is not loaded"
    if code == 0:
        return f"{path.name} ends the process that loads it; {_AND}"
    name = str(code)
    with suppress(ValueError):
        name = signal.Signals(-code).name if code < 0 else name
    found = re.search(r"GGML_ASSERT\(.*\) failed", said)
    return f"{path.name} makes the engine crash ({name}{f': {found[0]}' if found else ''}); {_AND}"


def _own_memory(pid: int) -> int | None:
    """Bytes that a process holds and shares with no file; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        import resource

        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(resident) - int(shared)) * resource.getpagesize()
    return None


def _identity(file: Path) -> list[Any]:
    state = file.stat()
    return [str(file), state.st_size, state.st_mtime_ns, state.st_ino]


def _passed(known: Any) -> Path | None:
    """The file to load by, where what is kept of a trial is still true."""
    with suppress(OSError, TypeError, KeyError, IndexError, AttributeError, ValueError):
        files = [Path(each[0]) for each in known["files"]]
        if known["engine"] == ENGINE_VERSION and files and known["files"] == [_identity(file) for file in files]:
            return files[0]
    return None
