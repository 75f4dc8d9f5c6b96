"""How specchat came here, and the command that builds its engine anew in the same place."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from specchat.doctor.installation import Installation, Installer, installation

CUDA = "-DGGML_CUDA=on"


def found(prefix: Path, *, is_frozen: bool = False) -> Installer:
    return installation(prefix, "/env/bin/python", "linux", is_frozen=is_frozen).installer


def test_an_environment_without_marks_is_of_pip(tmp_path: Path) -> None:
    assert found(tmp_path) is Installer.PIP

    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")

    assert found(tmp_path) is Installer.PIP


def test_an_environment_of_uv_says_so_in_its_settings(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.9.1\n")

    assert found(tmp_path) is Installer.UV


@pytest.mark.parametrize(
    ("mark", "installer"), [("uv-receipt.toml", Installer.UV_TOOL), ("pipx_metadata.json", Installer.PIPX)]
)
def test_tools_leave_a_file_and_that_wins_over_who_made_the_environment(
    tmp_path: Path, mark: str, installer: Installer
) -> None:
    (tmp_path / "pyvenv.cfg").write_text("uv = 0.9.1\n")
    (tmp_path / mark).touch()

    assert found(tmp_path) is installer


def test_a_stand_alone_build_is_known_before_any_file(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").touch()

    assert found(tmp_path, is_frozen=True) is Installer.STAND_ALONE


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        (Installer.PIP, ["/env/bin/python", "-m", "pip", "install", "--force-reinstall", "--no-cache-dir"]),
        (Installer.PIPX, ["pipx", "runpip", "specchat", "install", "--force-reinstall", "--no-cache-dir"]),
        (Installer.UV, ["uv", "pip", "install", "--python", "/env/bin/python", "--reinstall", "--no-cache"]),
        (Installer.UV_TOOL, ["uv", "pip", "install", "--python", "/env/bin/python", "--reinstall", "--no-cache"]),
    ],
)
def test_each_installer_has_its_command_which_touches_the_engine_alone(
    installer: Installer, command: list[str]
) -> None:
    words = shlex.split(Installation(installer, "/env/bin/python", "linux").rebuild(CUDA, "0.3.36"))

    assert words[0] == "CMAKE_ARGS=-DGGML_CUDA=on"
    assert words[1:] == [*command, "--no-deps", "--no-binary", "llama-cpp-python", "llama-cpp-python==0.3.36"]


def test_a_path_with_a_space_stays_one_word() -> None:
    words = shlex.split(Installation(Installer.PIP, "/my env/bin/python", "linux").rebuild(CUDA, "1"))

    assert words[1] == "/my env/bin/python"


def test_windows_gets_the_form_of_its_own_shell() -> None:
    command = Installation(Installer.PIP, r"C:\my env\python.exe", "win32").rebuild(CUDA, "1")

    assert command.startswith('$env:CMAKE_ARGS = "-DGGML_CUDA=on"; & "C:\\my env\\python.exe" -m pip install')


def test_without_options_or_a_version_nothing_empty_is_left_in_the_command() -> None:
    command = Installation(Installer.PIPX, "python", "linux").rebuild("", "")

    assert command.startswith("pipx runpip specchat install")
    assert command.endswith("--no-binary llama-cpp-python llama-cpp-python")
