"""What is read off a machine, from files that stand in for those of each system."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.doctor.hardware import Hardware, Vendor, hardware


def nothing(_: str) -> str | None:
    """No program is on the search path."""
    return None


def look(root: Path, system: str = "linux", machine: str = "x86_64", programs: tuple[str, ...] = ()) -> Hardware:
    """The facts of a machine whose files are below `root`."""
    return hardware(root, system, machine, lambda name: f"/usr/bin/{name}" if name in programs else None)


def put(root: Path, name: str, text: str = "") -> None:
    """A file of the machine."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_machine_without_anything_has_nothing(tmp_path: Path) -> None:
    assert hardware(tmp_path, "linux", "x86_64", nothing) == Hardware("linux", "x86_64")


def test_the_driver_of_nvidia_is_named_by_its_version(tmp_path: Path) -> None:
    said = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 00:00:00 UTC 2025\nGCC version: 12\n"
    put(tmp_path, "proc/driver/nvidia/version", said)

    found = look(tmp_path)

    assert found.vendors == {Vendor.NVIDIA}
    assert found.nvidia_driver == "570.86.15"


@pytest.mark.parametrize(
    "name", ["dev/nvidiactl", "dev/nvhost-gpu", "usr/lib/wsl/lib/libcuda.so.1", "Windows/System32/nvcuda.dll"]
)
def test_each_file_that_only_nvidia_leaves_is_known(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)

    assert look(tmp_path).vendors == {Vendor.NVIDIA}


def test_nvidia_smi_on_the_path_is_enough(tmp_path: Path) -> None:
    assert look(tmp_path, programs=("nvidia-smi",)).vendors == {Vendor.NVIDIA}


def test_cards_of_linux_are_known_by_their_vendor(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/drm/card0/device/vendor", "0x8086\n")
    put(tmp_path, "sys/class/drm/card1/device/vendor", "0x1002\n")
    put(tmp_path, "sys/class/drm/card2/device/vendor", "0x1af4\n")  # of a virtual machine

    assert look(tmp_path).vendors == {Vendor.INTEL, Vendor.AMD}


def test_the_door_to_computing_says_amd(tmp_path: Path) -> None:
    put(tmp_path, "dev/kfd")

    found = look(tmp_path)

    assert found.has_kfd
    assert found.vendors == {Vendor.AMD}


@pytest.mark.parametrize(
    ("system", "machine", "vendors"),
    [("darwin", "arm64", {Vendor.APPLE}), ("darwin", "x86_64", set()), ("linux", "arm64", set())],
)
def test_only_macs_with_arm_have_a_gpu_of_apple(
    tmp_path: Path, system: str, machine: str, vendors: set[Vendor]
) -> None:
    assert look(tmp_path, system, machine).vendors == vendors


def test_vulkan_is_there_with_its_loader_or_its_program(tmp_path: Path) -> None:
    assert not look(tmp_path).has_vulkan
    assert look(tmp_path, programs=("vulkaninfo",)).has_vulkan

    put(tmp_path, "usr/lib/x86_64-linux-gnu/libvulkan.so.1")

    assert look(tmp_path).has_vulkan


def test_compilers_are_found_on_the_path_and_where_their_installers_put_them(tmp_path: Path) -> None:
    put(tmp_path, "usr/local/cuda/bin/nvcc")

    assert look(tmp_path, programs=("glslc",)).tools == {"nvcc", "glslc"}


@pytest.mark.parametrize("word", ["flags\t\t", "Features\t"])
def test_the_abilities_of_the_processor_are_those_of_its_first_core(tmp_path: Path, word: str) -> None:
    put(tmp_path, "proc/cpuinfo", f"processor\t: 0\n{word}: fpu avx2 fma\n\nprocessor\t: 1\n{word}: other\n")

    assert look(tmp_path).cpu_flags == {"fpu", "avx2", "fma"}


def test_a_file_that_is_no_text_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_bytes(b"flags : \xff avx\n")

    assert "avx" in look(tmp_path).cpu_flags
