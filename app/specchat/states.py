"""Saved states of caches, a file for each chat: bounded in number of bytes, tied to a model, verified before use.

A state that is missing, foreign or damaged is no error: the chat is read again. Each file holds what a chat says, so
folder and files are the user's own. The checksum finds damage, not intent: a forged state could end the process, and
what keeps others from putting one here is that nobody else can write into the folder, which is looked at before use.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np

from specchat.console import size
from specchat.folders import mark_as_cache, states_folder
from specchat.rewrite.disk import private_folder
from speculation.types import State, Tokens

MOST_BYTES = 2 << 30  # of all states
LEFT_FREE = 1 << 30  # bytes of the disk that states never take
ORPHAN_S = 3600.0  # after which a half-written file is taken for one of a killed process

_MAGIC = b"specchat state 1\n"
_MOST_HEADER = 1 << 16
_DIGEST = 32
_BINARY = getattr(os, "O_BINARY", 0)  # what Windows needs


class NoState(Exception):
    """No state can be kept or used; the text says why."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What a state belongs to: it means nothing to any other model, engine or kind of cache."""

    model: str  # a name for people
    weights: str  # which weights they are, see `fingerprint`
    engine: str
    cache: str  # `LlamaModel.state_kind`


@dataclass(frozen=True, slots=True, eq=False)
class SavedState:
    """A state that was found; its bytes are neither read nor verified yet."""

    path: Path
    head: bytes  # of the file, up to its tokens
    tokens: Tokens
    n_bytes: int


class StateFiles:
    """The states of a folder, by the key of a chat. Those that were not used for longest make room for new ones."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    def put(self, key: str, owner: Owner, tokens: Tokens, state: State) -> Path:
        """Keep a state in place of the one that the chat had. Raises NoState."""
        head = _MAGIC + json.dumps({**asdict(owner), "tokens": len(tokens), "bytes": len(state)}).encode() + b"\n"
        total = len(head) + tokens.nbytes + len(state) + _DIGEST
        if total > self._most_bytes:
            raise NoState(f"it takes {size(total)}, and all states together may take {size(self._most_bytes)}")
        path = self._path(key)
        part = path.with_suffix(f".{os.getpid()}.part")
        try:
            with private_folder(self.folder):
                self._make_room(total, path)
                part.unlink(missing_ok=True)
                digest = hashlib.blake2b(digest_size=_DIGEST)
                with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), "wb") as file:
                    for data in (head, tokens.astype("<i4").data, state.data):
                        digest.update(data)
                        file.write(data)
                    file.write(digest.digest())
                os.replace(part, path)  # not synced: what a power cut leaves of it is noticed
                mark_as_cache(self.folder)
        except OSError as error:
            raise NoState(f"{self.folder} cannot be written: {error.strerror or error}") from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return path

    def find(self, key: str, owner: Owner) -> SavedState:
        """The state of a chat, if it belongs to `owner`. Raises NoState."""
        path = self._path(key)
        with _opened(path) as file:
            head = _head(file)
            known = _known(head)
            for part, other in asdict(owner).items():
                if known[part] != other:
                    raise NoState(_foreign(part, str(known[part]), other))
            n_tokens, n_bytes = known["tokens"], known["bytes"]
            rest = os.fstat(file.fileno()).st_size - len(head) - _DIGEST
            if not isinstance(n_tokens, int) or not isinstance(n_bytes, int) or min(n_tokens, n_bytes) < 0:
                raise NoState("it is damaged")
            if rest != 4 * n_tokens + n_bytes:
                raise NoState("it is not all there")
            return SavedState(path, head, np.frombuffer(file.read(4 * n_tokens), dtype="<i4").astype(np.int32), n_bytes)

    def load(self, found: SavedState) -> State:
        """The verified bytes of a state that was found. Raises NoState; a damaged file is removed."""
        with _opened(found.path) as file:
            head = file.read(len(found.head))
            tokens = file.read(4 * len(found.tokens))
            state = np.empty(found.n_bytes, dtype=np.uint8)
            length = file.readinto(state.data)
            expected = file.read(_DIGEST + 1)
        digest = hashlib.blake2b(head, digest_size=_DIGEST)
        digest.update(tokens)
        digest.update(state.data)
        same = head == found.head and tokens == found.tokens.astype("<i4").tobytes() and length == found.n_bytes
        if not same or digest.digest() != expected:
            found.path.unlink(missing_ok=True)
            raise NoState("it is damaged")
        with suppress(OSError):
            os.utime(found.path)
        return state

    def drop(self, key: str) -> None:
        """Forget the state of a chat."""
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget all states."""
        for path in self._files():
            with suppress(OSError):
                path.unlink(missing_ok=True)

    @property
    def n_bytes(self) -> int:
        """What all states take."""
        return sum(known.st_size for _, known in _stats(self._files()))

    def _path(self, key: str) -> Path:
        return self.folder / f"{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.state"

    def _files(self) -> list[Path]:
        with suppress(OSError):
            return [path for path in self.folder.iterdir() if path.suffix in (".state", ".part")]
        return []

    def _make_room(self, wanted: int, replaced: Path) -> None:
        """Remove what was not used for longest until `wanted` bytes fit. Raises NoState where the disk is too full."""
        now = time.time()
        there = sorted(_stats(self._files()), key=lambda each: each[1].st_mtime_ns)
        old = [path for path, known in there if path.suffix == ".part" and now - known.st_mtime > ORPHAN_S]
        states = [(path, known.st_size) for path, known in there if path.suffix == ".state" and path != replaced]
        total = sum(n_bytes for _, n_bytes in states)
        for path, n_bytes in states:
            if total + wanted <= self._most_bytes:
                break
            old.append(path)
            total -= n_bytes
        for path in old:
            path.unlink(missing_ok=True)
        if shutil.disk_usage(self.folder).free < wanted + LEFT_FREE:
            raise NoState(f"the disk is nearly full, and it takes {size(wanted)}")


def kept_states() -> StateFiles:
    """The states of this user's chats."""
    return StateFiles(states_folder())


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """A file that only its user can have written. Raises NoState, also for what fails inside."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | _BINARY), "rb") as file:
            if hasattr(os, "geteuid"):
                for known in (os.fstat(file.fileno()), path.parent.stat()):
                    if known.st_uid != os.geteuid() or known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                        raise NoState("others can write to it")
            yield file
    except FileNotFoundError as error:
        raise NoState("there is none") from error
    except OSError as error:
        raise NoState(f"it cannot be read: {error.strerror or error}") from error


def _head(file: BufferedReader) -> bytes:
    head = file.read(len(_MAGIC))
    if head != _MAGIC:
        raise NoState("it is damaged or of another version of specchat")
    return head + file.readline(_MOST_HEADER)


def _known(head: bytes) -> dict[str, object]:
    with suppress(ValueError, RecursionError):
        known = json.loads(head[len(_MAGIC) :])
        if isinstance(known, dict) and {"model", "weights", "engine", "cache", "tokens", "bytes"} <= known.keys():
            return known
    raise NoState("it is damaged")


def _foreign(part: str, its: str, ours: str) -> str:
    if part in ("model", "weights"):
        return f"it is of another model: {its}" if part == "model" else "the file of the model is another one since"
    what = "another engine" if part == "engine" else "another kind of cache"
    return f"it is of {what}: {its}, not {ours}"


def _stats(paths: list[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for path in paths:
        with suppress(OSError):
            yield path, path.stat()
