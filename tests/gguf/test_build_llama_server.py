"""The parts of the script that builds a llama-server, without its ten minutes."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gguf.build_llama_server import build, compiling, fetching, install, main, target_folder, unpacked
from tests.gguf.llama_server import binary

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="made on systems with links")


def packed(folder: Path, inside: str) -> Path:
    """A source distribution with one file."""
    made = folder / "made" / inside
    made.parent.mkdir(parents=True)
    made.write_text("project(llama)\n")
    archive = folder / "llama_cpp_python-1.2.3.tar.gz"
    with tarfile.open(archive, "w:gz") as packing:
        packing.add(folder / "made", "llama_cpp_python-1.2.3")
    return archive


def put_program(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "llama-server").write_text("#!/bin/sh\n")
    (folder / "llama-server").chmod(0o755)
    (folder / "libllama.so.0").write_text("library")
    (folder / "libllama.so").symlink_to("libllama.so.0")


def test_the_source_is_that_of_the_installed_engine_and_nothing_else_is_fetched(tmp_path: Path) -> None:
    command = fetching("1.2.3", tmp_path)
    assert command[-1] == "llama-cpp-python==1.2.3"
    assert {"--no-deps", "--no-binary"} <= set(command)


def test_the_server_alone_is_compiled_for_speed_and_without_the_network(tmp_path: Path) -> None:
    configure, compile_it = compiling(tmp_path / "source", tmp_path / "build")
    assert {"-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_UI=OFF"} <= set(
        configure
    )
    assert compile_it[-2:] == ["--target", "llama-server"]


def test_llama_cpp_is_found_inside_the_archive(tmp_path: Path) -> None:
    packed(tmp_path, "vendor/llama.cpp/CMakeLists.txt")
    assert unpacked(tmp_path).parts[-2:] == ("vendor", "llama.cpp")


def test_an_archive_without_it_and_no_archive_are_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="left 0 source distributions"):
        unpacked(tmp_path)
    packed(tmp_path, "README.md")
    with pytest.raises(SystemExit, match=r"has no vendor/llama\.cpp"):
        unpacked(tmp_path)


def test_the_program_comes_with_its_libraries_and_replaces_what_was_there(tmp_path: Path) -> None:
    put_program(tmp_path / "built")
    target = tmp_path / "cache" / "bin"
    target.mkdir(parents=True)
    (target / "old").write_text("old")
    install(tmp_path / "built", target)
    assert sorted(each.name for each in target.iterdir()) == ["libllama.so", "libllama.so.0", "llama-server"]
    assert (target / "libllama.so").is_symlink()


def test_a_build_that_made_no_program_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "bin"
    put_program(target)
    (tmp_path / "built").mkdir()
    with pytest.raises(SystemExit, match="made no llama-server"):
        install(tmp_path / "built", target)
    assert (target / "llama-server").exists()


def test_all_of_it_in_order_and_only_once(tmp_path: Path) -> None:
    ran: list[str] = []

    def run(command: Sequence[str]) -> None:
        ran.append(command[0] if command[0] == "cmake" else "pip")
        if "--dest" in command:
            packed(Path(command[command.index("--dest") + 1]), "vendor/llama.cpp/CMakeLists.txt")
        if "--build" in command:
            put_program(Path(command[command.index("--build") + 1]) / "bin")

    assert build(tmp_path / "bin", run, "1.2.3")
    assert ran == ["pip", "cmake", "cmake"]
    assert not build(tmp_path / "bin", run, "1.2.3")
    assert ran == ["pip", "cmake", "cmake"]


def test_the_tests_find_what_the_script_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECCHAT_TEST_MODELS", str(tmp_path))
    monkeypatch.delenv("SPECCHAT_LLAMA_SERVER", raising=False)
    put_program(target_folder())
    assert binary() == target_folder() / "llama-server"
    main()
    assert "is there already" in capsys.readouterr().out
