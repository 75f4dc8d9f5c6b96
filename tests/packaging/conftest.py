"""What is built once for these tests: the archives, and the stand-alone folder."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """A script of packaging/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"specchat_packaging_{name}", ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def bare_environment(home: Path, **more: str) -> Mapping[str, str]:
    """Of someone who has no Python, and keeps what specchat writes in `home`."""
    return {"HOME": str(home), "PATH": str(home / "nothing"), "LANG": "C.UTF-8", **more}


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the source archive, and of the wheel that was built from it."""
    out = tmp_path_factory.mktemp("archives")
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert built.returncode == 0, built.stdout[-3000:]
    return out


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-alone folder: about 40 s."""
    if os.name == "posix" and not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("PyInstaller needs a Python that was built with its shared library")
    place = tmp_path_factory.mktemp("folder")
    command = [
        sys.executable,
        "-m",
        "PyInstaller",
        "--noconfirm",
        "--log-level=WARN",
        str(ROOT / "packaging/specchat.spec"),
    ]
    command += [f"--distpath={place / 'dist'}", f"--workpath={place / 'build'}"]
    built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert built.returncode == 0, built.stdout[-3000:]
    return place / "dist" / "specchat"
