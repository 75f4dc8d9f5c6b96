"""What this machine has: cores to decode with, memory for models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_MEMORY = Path("/proc/meminfo")


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


def free_memory() -> int | None:
    """Bytes of memory that programs can still have, caches counted as free; None where the system does not say."""
    if sys.platform == "darwin":
        return _macos_free_memory()
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", _MEMORY.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024


def total_memory() -> int | None:
    """Bytes of memory that this machine has, of which programs share; None where the system does not say."""
    try:
        if sys.platform == "darwin":
            said = subprocess.run(["sysctl", "-n", "hw.memsize"], capture_output=True, text=True, check=False).stdout
            return int(said) if said.strip().isdigit() else None
        found = re.search(r"^MemTotal:\s*(\d+) kB$", _MEMORY.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024


def _macos_free_memory() -> int | None:
    try:
        said = subprocess.run(["vm_stat"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    page = re.search(r"page size of (\d+) bytes", said)
    # What is inactive, speculative or purgeable is given up as soon as somebody asks for memory.
    counts = re.findall(r"^Pages (?:free|inactive|speculative|purgeable):\s*(\d+)\.", said, re.MULTILINE)
    return int(page[1]) * sum(map(int, counts)) if page is not None and counts else None


def _siblings(cpu: int) -> str:
    """A name that the threads of one physical core share."""
    try:
        text = (_CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        text = ""
    return text if re.fullmatch(r"[\d,-]+", text) else str(cpu)


def memory_in_use() -> int | None:
    """Bytes of memory that this process holds now, mapped weights that were read included; None where not known."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
