"""What this machine has: cores to decode with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")


def decoding_threads() -> int:
    """Cores worth a thread each: physical ones this process may use, and only the fast ones where there are two kinds.

    Two threads on one core share its arithmetic units, and a slow core makes the fast ones wait.
    """
    if sys.platform == "darwin":
        found = subprocess.run(
            ["sysctl", "-n", "hw.perflevel0.physicalcpu"], capture_output=True, text=True, check=False
        )
        if found.stdout.strip().isdigit():
            return max(1, int(found.stdout))
    if hasattr(os, "sched_getaffinity"):
        usable = os.sched_getaffinity(0)
        cores = {_siblings(cpu) for cpu in usable}
        return max(1, len(cores))
    return max(1, (os.cpu_count() or 2) // 2)


def _siblings(cpu: int) -> str:
    """A name that the threads of one physical core share."""
    try:
        text = (_CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        text = ""
    return text if re.fullmatch(r"[\d,-]+", text) else str(cpu)
