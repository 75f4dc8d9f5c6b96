"""A child process that works until it is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def killed_after(program: str, arguments: Sequence[Path], seconds: float, signal: int) -> None:
    """Run a program that says "ready" before it begins, and kill it so many seconds after that."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={"PYTHONPATH": ":".join([str(_ROOT), *sys.path])},
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        timer = threading.Timer(seconds, child.send_signal, [signal])
        timer.start()
        assert child.wait(30) == -signal
