"""What this machine has for an engine to run on: GPUs, their drivers, the compilers to build with. Runs no program."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Vendor(StrEnum):
    """Who made a GPU."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"
    INTEL = "Intel"
    APPLE = "Apple"


# Identifiers of the PCI registry, as Linux shows them.
_PCI_VENDORS = {"0x10de": Vendor.NVIDIA, "0x1002": Vendor.AMD, "0x8086": Vendor.INTEL}
# What each compiler is looked for under beside the search path, where its installer puts it.
_TOOLS = {
    "nvcc": ("usr/local/cuda/bin/nvcc",),
    "hipcc": ("opt/rocm/bin/hipcc",),
    "glslc": (),
    "clang": (),
}
_NVIDIA = (
    "proc/driver/nvidia/version",
    "dev/nvidiactl",  # all that a container shows
    "dev/nvhost-gpu",  # Jetson
    "usr/lib/wsl/lib/libcuda.so.1",
    "Windows/System32/nvcuda.dll",
)
_VULKAN = (
    *(f"usr/lib/{folder}/libvulkan.so.1" for folder in ("x86_64-linux-gnu", "aarch64-linux-gnu", ".")),
    "usr/lib64/libvulkan.so.1",
    "Windows/System32/vulkan-1.dll",
)


@dataclass(frozen=True, slots=True)
class Hardware:
    """The facts that decide which back end a machine could use."""

    system: str  # as sys.platform has it
    machine: str  # x86_64, arm64, ...
    vendors: frozenset[Vendor] = frozenset()  # of GPUs
    nvidia_driver: str = ""  # its version, where the system says
    has_kfd: bool = False  # AMD's door to computing, which only some of its GPUs have
    has_vulkan: bool = False  # its loader is installed
    tools: frozenset[str] = frozenset()  # compilers that are here
    cpu_flags: frozenset[str] = frozenset()  # abilities of the processor, as Linux names them


def hardware(
    root: Path = Path("/"),
    system: str = sys.platform,
    machine: str | None = None,
    which: Callable[[str], str | None] = shutil.which,
) -> Hardware:
    """Look around on the file system below `root`, and for programs with `which`."""
    kind = platform.machine() if machine is None else machine
    vendors = {
        vendor
        for file in sorted(root.glob("sys/class/drm/card*/device/vendor"))
        if (vendor := _PCI_VENDORS.get(_text(file).strip())) is not None
    }
    if _is_any(root, _NVIDIA) or which("nvidia-smi") is not None:
        vendors.add(Vendor.NVIDIA)
    if (root / "dev/kfd").exists():
        vendors.add(Vendor.AMD)
    if system == "darwin" and kind == "arm64":
        vendors.add(Vendor.APPLE)
    return Hardware(
        system=system,
        machine=kind,
        vendors=frozenset(vendors),
        nvidia_driver=_driver(_text(root / "proc/driver/nvidia/version")),
        has_kfd=(root / "dev/kfd").exists(),
        has_vulkan=_is_any(root, _VULKAN) or which("vulkaninfo") is not None,
        tools=frozenset(name for name, places in _TOOLS.items() if which(name) is not None or _is_any(root, places)),
        cpu_flags=_cpu_flags(_text(root / "proc/cpuinfo")),
    )


def _driver(said: str) -> str:
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", said)
    return found[1] if found else ""


def _cpu_flags(said: str) -> frozenset[str]:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", said, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def _is_any(root: Path, places: tuple[str, ...]) -> bool:
    return any((root / place).exists() for place in places)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
