"""Which back end a machine could use, what is said of the one in use, and the command that gets the other."""

from __future__ import annotations

import pytest

from specchat.doctor.back_ends import CMAKE, BackEnd, Engine, check_back_end, check_processor, compiled, usable
from specchat.doctor.finding import Finding, Verdict
from specchat.doctor.hardware import Hardware, Vendor
from specchat.doctor.installation import Installation, Installer
from speculation.devices import Device

PIP = Installation(Installer.PIP, "/env/bin/python", "linux")
BARE = Hardware("linux", "x86_64")
NVIDIA = Hardware("linux", "x86_64", frozenset({Vendor.NVIDIA}), "570.86", tools=frozenset({"nvcc"}))
MAC = Hardware("darwin", "arm64", frozenset({Vendor.APPLE}), tools=frozenset({"clang"}))
RADEON = Hardware("linux", "x86_64", frozenset({Vendor.AMD}), has_kfd=True, has_vulkan=True)
INTEL = Hardware("linux", "x86_64", frozenset({Vendor.INTEL}), has_vulkan=True)
WINDOWS_AMD = Hardware("win32", "AMD64", frozenset({Vendor.AMD}), has_vulkan=True)


def engine(*names: str, features: str = "", devices: tuple[Device, ...] = ()) -> Engine:
    return Engine("llama-cpp-python 0.3.36", names, features, devices)


def back_end(machine: Hardware, *names: str, devices: tuple[Device, ...] = (), here: Installation = PIP) -> Finding:
    (finding,) = check_back_end(engine(*names, devices=devices), machine, here, "0.3.36")
    return finding


@pytest.mark.parametrize(
    ("machine", "first"),
    [
        (BARE, BackEnd.CPU),
        (NVIDIA, BackEnd.CUDA),
        (MAC, BackEnd.METAL),
        (RADEON, BackEnd.ROCM),
        (INTEL, BackEnd.VULKAN),
        (WINDOWS_AMD, BackEnd.VULKAN),
        (Hardware("linux", "x86_64", frozenset({Vendor.INTEL})), BackEnd.CPU),  # no loader of Vulkan
        (Hardware("linux", "x86_64", has_vulkan=True), BackEnd.CPU),  # a loader, and no GPU
    ],
)
def test_the_fastest_back_end_of_each_machine(machine: Hardware, first: BackEnd) -> None:
    assert usable(machine)[0] is first
    assert usable(machine)[-1] is BackEnd.CPU


@pytest.mark.parametrize(
    ("name", "known"), [("MTL", BackEnd.METAL), ("CUDA", BackEnd.CUDA), ("HIP", BackEnd.ROCM), ("BLAS", "BLAS")]
)
def test_names_of_ggml_are_understood_and_unknown_ones_kept(name: str, known: BackEnd | str) -> None:
    assert compiled(engine(name)) == [known]


def test_the_processor_alone_is_right_where_there_is_nothing_else() -> None:
    finding = back_end(BARE, "CPU")

    assert finding.verdict is Verdict.OK
    assert not finding.advice


@pytest.mark.parametrize(
    ("machine", "best"),
    [(NVIDIA, BackEnd.CUDA), (MAC, BackEnd.METAL), (RADEON, BackEnd.ROCM), (INTEL, BackEnd.VULKAN)],
)
def test_a_better_back_end_is_a_note_with_the_command_that_gets_it(machine: Hardware, best: BackEnd) -> None:
    finding = back_end(machine, "CPU")

    assert finding.verdict is Verdict.NOTE
    assert f"could use {best}" in finding.said
    assert PIP.rebuild(CMAKE[best], "0.3.36") in finding.advice


def test_a_compiler_that_is_missing_is_asked_for_first_and_one_that_is_there_is_not() -> None:
    without = Hardware("linux", "x86_64", frozenset({Vendor.NVIDIA}), "570.86")

    assert back_end(without, "CPU").advice.startswith(
        "install the CUDA toolkit first (nvcc is missing), then: CMAKE_ARGS"
    )
    assert back_end(NVIDIA, "CPU").advice.startswith("CMAKE_ARGS")


def test_gpus_in_use_are_named_with_their_memory() -> None:
    finding = back_end(NVIDIA, "CUDA", "CPU", devices=(Device("CUDA0", 9_000_000_000, 12_000_000_000),))

    assert finding.verdict is Verdict.OK
    assert "CUDA0 (9.0 GB of 12.0 GB free)" in finding.said


def test_a_back_end_that_finds_no_gpu_is_a_note_about_the_driver() -> None:
    finding = back_end(NVIDIA, "CUDA", "CPU")

    assert finding.verdict is Verdict.NOTE
    assert "finds no GPU" in finding.said
    assert "driver" in finding.advice


def test_an_engine_without_any_back_end_is_a_problem() -> None:
    assert back_end(BARE).verdict is Verdict.PROBLEM


def test_a_stand_alone_build_says_that_it_cannot_be_changed() -> None:
    finding = back_end(NVIDIA, "CPU", here=Installation(Installer.STAND_ALONE, "specchat", "linux"))

    assert finding.advice.startswith("this stand-alone build cannot be changed; CMAKE_ARGS")
    assert "pipx install" in finding.advice


def processor(features: str, flags: set[str], here: Installation = PIP) -> Finding:
    machine = Hardware("linux", "x86_64", cpu_flags=frozenset(flags))
    (finding,) = check_processor(engine("CPU", features=features), machine, here, "0.3.36", 4)
    return finding


def test_what_the_processor_can_and_the_engine_leaves_is_a_note_with_the_build_for_this_machine() -> None:
    finding = processor("CPU : SSE3 = 1 | AVX = 1 | AVX2 = 0 | ", {"avx", "avx2", "fma", "sse3"})

    assert finding.verdict is Verdict.NOTE
    assert "leaves AVX2, FMA unused" in finding.said
    assert "-DGGML_NATIVE=on" in finding.advice


def test_an_engine_that_uses_all_is_right() -> None:
    finding = processor("CPU : AVX = 1 | AVX2 = 1 | F16C = 1 | REPACK = 1 | ", {"avx", "avx2", "f16c", "mmx"})

    assert finding.verdict is Verdict.OK
    assert "the engine uses AVX, AVX2, F16C" in finding.said


def test_where_the_system_does_not_tell_what_the_processor_can_nothing_is_missing() -> None:
    assert processor("CPU : NEON = 1 | ", set()).verdict is Verdict.OK
