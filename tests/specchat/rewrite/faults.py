"""A disk that refuses, or a process that dies, at a chosen system call."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from specchat.rewrite import backups, disk, journal, write

CHANGING = ("open", "write", "fsync", "replace", "unlink", "ftruncate", "fchmod", "fchown", "setxattr", "utime")
READING = ("stat", "fstat", "read", "lseek", "listxattr", "getxattr", "listdir")


class Killed(BaseException):
    """The process is gone: nothing that it would do after this happens."""


class Calls:
    """Stands for the module `os`: counts calls, and lets one fail, or all from one on."""

    def __init__(self, at: int, fault: BaseException | None, names: tuple[str, ...]) -> None:
        self.made: list[str] = []
        self._at = at
        self._fault = fault
        self._names = names
        self._short = True

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._watched(name, real) if name in self._names else real

    def _watched(self, name: str, real: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self.made.append(name)
            at = len(self.made) - 1
            dead = isinstance(self._fault, Killed) and at > self._at
            if self._fault is not None and (at == self._at or dead):
                if name == "write" and at == self._at:
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])  # some of it had been taken
                raise self._fault
            if name == "write":  # a system may always take less than it was given
                return real(args[0], bytes(args[1])[: max(1, len(args[1]) // 2)])
            return real(*args, **options)

        return call


@contextmanager
def failing(at: int, fault: BaseException | None, names: tuple[str, ...] = CHANGING) -> Iterator[Calls]:
    """The calls of the modules that write, of which number `at` fails; counted from 0."""
    calls = Calls(at, fault, names)
    with pytest.MonkeyPatch.context() as patch:
        for module in (disk, write, journal, backups):
            patch.setattr(module, "os", calls)
        yield calls


FAULTS = {
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "broken": OSError(errno.EIO, "Input/output error"),
    "forbidden": PermissionError(errno.EPERM, "Operation not permitted"),
    "killed": Killed(),
}
