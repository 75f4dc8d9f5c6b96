"""What the machine has, as each system says it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specchat import machine
from specchat.machine import free_memory, total_memory

VM_STAT = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10.
Pages active:                         300000.
Pages inactive:                          200.
Pages speculative:                      3000.
Pages throttled:                           0.
Pages wired down:                     100000.
Pages purgeable:                       40000.
"Translation faults":              123456789.
"""


def test_free_memory_on_linux_is_what_can_be_had_and_not_only_what_is_unused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  16000000 kB\nMemFree:  100 kB\nMemAvailable:  9000000 kB\n")
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(sys, "platform", "linux")

    assert free_memory() == 9_000_000 * 1024


def test_free_memory_on_macos_counts_the_pages_that_are_given_up_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, stdout=VM_STAT))

    assert free_memory() == 16384 * (10 + 200 + 3000 + 40000)


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
def test_free_memory_that_a_system_does_not_tell_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "absent")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(subprocess, "run", absent)

    assert free_memory() is None


def test_total_memory_is_what_the_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  16000000 kB\nMemFree:  100 kB\n")
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, "17179869184\n")
    )

    monkeypatch.setattr(sys, "platform", "linux")
    assert total_memory() == 16_000_000 * 1024
    monkeypatch.setattr(sys, "platform", "darwin")
    assert total_memory() == 1 << 34


@pytest.mark.parametrize(("platform", "said"), [("darwin", "unknown oid"), ("linux", "")])
def test_total_memory_that_a_system_does_not_tell_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, said: str
) -> None:
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "absent")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, said))

    assert total_memory() is None
