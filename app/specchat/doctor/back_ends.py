"""Which back end of the engine suits a machine, what is compiled in, and the command that gets a better one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from specchat.console import size
from specchat.doctor.finding import Finding, note, ok, problem
from specchat.doctor.hardware import Hardware, Vendor
from specchat.doctor.installation import Installation, Installer
from speculation.devices import Device


class BackEnd(StrEnum):
    """What a model can run on."""

    CUDA = "CUDA"
    METAL = "Metal"
    ROCM = "ROCm"
    VULKAN = "Vulkan"
    CPU = "CPU"


# How ggml calls them in different releases.
_NAMES = {
    "cuda": BackEnd.CUDA,
    "metal": BackEnd.METAL,
    "mtl": BackEnd.METAL,
    "rocm": BackEnd.ROCM,
    "hip": BackEnd.ROCM,
    "vulkan": BackEnd.VULKAN,
    "cpu": BackEnd.CPU,
}
CMAKE = {
    BackEnd.CUDA: "-DGGML_CUDA=on",
    BackEnd.METAL: "-DGGML_METAL=on",
    BackEnd.ROCM: "-DGGML_HIP=on",
    BackEnd.VULKAN: "-DGGML_VULKAN=on",
    BackEnd.CPU: "-DGGML_NATIVE=on",
}
_NEEDS = {  # the compiler, and what brings it
    BackEnd.CUDA: ("nvcc", "the CUDA toolkit"),
    BackEnd.ROCM: ("hipcc", "ROCm with its HIP compiler"),
    BackEnd.VULKAN: ("glslc", "the Vulkan SDK with glslc"),
    BackEnd.METAL: ("clang", "the command line tools of Xcode (xcode-select --install)"),
}
# Abilities of a processor that the engine's kernels use: as Linux names them, as llama.cpp does.
_CPU_ABILITIES = {
    "avx": "AVX",
    "avx2": "AVX2",
    "f16c": "F16C",
    "fma": "FMA",
    "bmi2": "BMI2",
    "avx512f": "AVX512",
    "avx512_vnni": "AVX512_VNNI",
    "avx512_bf16": "AVX512_BF16",
    "asimddp": "DOTPROD",
    "i8mm": "MATMUL_INT8",
    "sve": "SVE",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """What the installed engine is."""

    version: str
    back_ends: Sequence[str]  # compiled in, as ggml names them
    features: str  # what it says of itself, "CPU : AVX = 1 | ..."
    devices: Sequence[Device]  # GPUs that it finds


def usable(machine: Hardware) -> list[BackEnd]:
    """The back ends that could run here, the fastest first; the processor always can."""
    found = []
    if Vendor.NVIDIA in machine.vendors:
        found.append(BackEnd.CUDA)
    if Vendor.APPLE in machine.vendors:
        found.append(BackEnd.METAL)
    if machine.has_kfd and machine.system == "linux":
        found.append(BackEnd.ROCM)
    if machine.has_vulkan and machine.vendors & {Vendor.NVIDIA, Vendor.AMD, Vendor.INTEL}:
        found.append(BackEnd.VULKAN)
    return [*found, BackEnd.CPU]


def compiled(engine: Engine) -> list[BackEnd | str]:
    """What is compiled in; the engine's own word where we know no other."""
    return [_NAMES.get(name.lower(), name) for name in engine.back_ends]


def check_back_end(engine: Engine, machine: Hardware, here: Installation, pin: str) -> Iterator[Finding]:
    """The back end in use, and the best one for this machine with the command that gets it."""
    has, best = compiled(engine), usable(machine)[0]
    names = ", ".join(has) or "nothing"
    values = {"compiled": [str(each) for each in has], "usable": [str(each) for each in usable(machine)]}
    if not has:
        yield problem("back end", "the engine has none at all", here.rebuild(CMAKE[best], pin), **values)
    elif engine.devices:
        places = ", ".join(f"{each.name} ({size(each.free)} of {size(each.total)} free)" for each in engine.devices)
        yield ok("back end", f"{names}; in use: {places}", **values)
    elif best is BackEnd.CPU:
        yield ok("back end", f"{names}; in use: the processor, and no GPU is seen that could do better", **values)
    elif best in has:
        said = f"{names}; {best} is compiled in and finds no GPU it can use, so the processor works"
        yield note("back end", said, _why_no_device(best, machine), **values)
    else:
        said = f"{names}; in use: the processor. This machine could use {best}{_driver(best, machine)}"
        yield note("back end", said, _way_to(best, machine, here, pin), **values)


def check_processor(engine: Engine, machine: Hardware, here: Installation, pin: str, threads: int) -> Iterator[Finding]:
    """Whether the engine uses what the processor can do."""
    words = [part.partition("=") for part in engine.features.replace(":", "|").split("|")]
    on = {name.strip() for name, _, value in words if value.strip() == "1"}
    able = {theirs for ours, theirs in _CPU_ABILITIES.items() if ours in machine.cpu_flags}
    unused = sorted(able - on)
    used = ", ".join(sorted(on & set(_CPU_ABILITIES.values()))) or "no special instructions"
    said = f"{machine.machine}, {threads} {'thread' if threads == 1 else 'threads'}; the engine uses {used}"
    values = {"used": sorted(on), "unused": unused, "threads": threads}
    if unused and here.installer is not Installer.STAND_ALONE:
        build = here.rebuild(CMAKE[BackEnd.CPU], pin)
        yield note("processor", f"{said} and leaves {', '.join(unused)} unused", build, **values)
    else:
        yield ok("processor", said, **values)


def _way_to(best: BackEnd, machine: Hardware, here: Installation, pin: str) -> str:
    tool, brings = _NEEDS[best]
    first = "" if tool in machine.tools else f"install {brings} first ({tool} is missing), then: "
    other = "this stand-alone build cannot be changed; " if here.installer is Installer.STAND_ALONE else ""
    return f"{other}{first}{here.rebuild(CMAKE[best], pin)}"


def _why_no_device(best: BackEnd, machine: Hardware) -> str:
    if best is BackEnd.CUDA and machine.system == "linux" and not machine.nvidia_driver:
        return "look whether nvidia-smi shows the GPU; in a container it has to be passed in"
    return "look whether the driver of the GPU is installed and you may use it (group render or video on Linux)"


def _driver(best: BackEnd, machine: Hardware) -> str:
    return f" (driver {machine.nvidia_driver})" if best is BackEnd.CUDA and machine.nvidia_driver else ""
