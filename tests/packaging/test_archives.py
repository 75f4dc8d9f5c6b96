"""The source archive, and the wheel as it is when it is installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from specchat import __version__
from tests.conftest import model_file
from tests.packaging.conftest import ROOT, bare_environment

PACKAGES = {"specchat": ROOT / "app" / "specchat", "speculation": ROOT / "speculation"}


@pytest.fixture(scope="module")
def wheel(archives: Path) -> Path:
    return archives / f"specchat-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment that has this wheel, and everything else from the one of the tests."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False)
    scripts = place / ("Scripts" if sys.platform == "win32" else "bin")
    command = [sys.executable, "-m", "pip", "--python", str(scripts / "python"), "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--disable-pip-version-check", str(wheel)], check=True)
    libraries = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    # A line in a .pth file is searched last, and no .pth file in that folder is read: nothing leads to the tree.
    (libraries / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts / "specchat"


def test_the_wheel_of_the_source_archive_holds_the_files_of_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if name.split("/")[0] in PACKAGES}
    tree = {"specchat/models.toml": (ROOT / "models.toml").read_bytes()}
    for package, place in PACKAGES.items():
        for path in place.rglob("*"):
            parts = path.relative_to(place).parts
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
                tree[f"{package}/{'/'.join(parts)}"] = path.read_bytes()

    assert set(inside) == set(tree)
    assert [name for name, content in inside.items() if content != tree[name]] == []


def test_the_source_archive_can_run_the_tests_and_make_the_packages(archives: Path) -> None:
    top = f"specchat-{__version__}"
    with tarfile.open(archives / f"{top}.tar.gz") as archive:
        names = set(archive.getnames())

    needed = {"pyproject.toml", "Makefile", "LICENSE", "CHANGELOG.md", "models.toml", "tests/conftest.py"}
    needed |= {f"packaging/{path}" for path in ("specchat.spec", "entry.py", "deb.py", "linux/specchat.desktop")}
    assert {f"{top}/{name}" for name in needed} <= names
    assert not [name for name in names if name.endswith((".gguf", ".pyc")) or "/.hypothesis/" in name]


def test_an_installed_specchat_runs_far_from_the_tree(installed: Path, tmp_path: Path) -> None:
    where = "import specchat, speculation; print(specchat.__file__, speculation.__file__)"

    def said(*command: object) -> str:
        return subprocess.run(
            [*map(str, command)],
            cwd=tmp_path,
            env=bare_environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    imported = said(installed.with_name("python"), "-c", where).split()
    assert all(Path(each).is_relative_to(installed.parents[1]) for each in imported)
    assert said(installed, "--version").split() == ["specchat", __version__]
    assert "qwen2.5-coder-1.5b" in said(installed, "models", "list")


@pytest.mark.gguf
def test_an_installed_specchat_answers(installed: Path, tmp_path: Path) -> None:
    command = [str(installed), "ask", "-q", "--max-tokens", "4", "-m", str(model_file("smollm2-135m")), "Say hello"]

    answered = subprocess.run(
        command, cwd=tmp_path, env=bare_environment(tmp_path), capture_output=True, text=True, check=False
    )

    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.strip()
