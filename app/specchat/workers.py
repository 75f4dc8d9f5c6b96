"""How the processes beside specchat are started: by a file in an installed one, by a word in a stand-alone build.

A stand-alone build has no Python that could be given a file: its one program starts itself again, and `run` sends the
new process to its work before a command line is read.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

WORD = "--specchat-worker"
WORKERS = ("hub_worker", "template_worker", "trial_worker")


def frozen() -> bool:
    """Whether this is a stand-alone build, which brings its own Python."""
    return bool(getattr(sys, "frozen", False))


def worker_command(file: Path) -> list[str]:
    """The command that runs a worker; `file` is where its module lies, or would lie."""
    if frozen():
        return [sys.executable, WORD, file.stem]
    return [sys.executable, "-P", str(file)]  # -P: the files beside it are no modules to it


def pip_command() -> list[str]:
    """The command that runs pip."""
    if frozen():
        return [sys.executable, WORD, "pip"]
    # -P: a pip.py in the folder that specchat was started from must not run in pip's place.
    return [sys.executable, "-P", "-m", "pip"]


def run(arguments: Sequence[str]) -> int | None:
    """What a stand-alone build does first: the work that the arguments name, or None when they are a command line."""
    if not arguments or arguments[0] != WORD:
        return None
    _, name, *rest = arguments
    if name == "pip":
        code: int = importlib.import_module("pip._internal.cli.main").main(rest)
        return code
    if name not in WORKERS:
        raise SystemExit(f"specchat: there is no worker {name}")
    importlib.import_module(f"specchat.{name}").main()
    return 0
