"""What is shipped, and what importing a part of it loads."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from specchat import __version__
from specchat.catalogue_file import catalogue_path
from specchat.manual import page

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    (path,) = folder.glob("specchat-*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_both_packages_the_catalogue_the_man_page_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()

    beside = {f"specchat-{__version__}.{kind}" for kind in ("dist-info", "data")}
    assert {name.split("/")[0] for name in names} == {"specchat", "speculation", *beside}
    assert [name for name in names if ".data/" in name] == [
        f"specchat-{__version__}.data/data/share/man/man1/specchat.1"
    ]
    assert {"specchat/models.toml", "speculation/py.typed", "specchat/template_worker.py"} <= set(names)
    sources = [p.relative_to(ROOT).as_posix() for p in (ROOT / "speculation").rglob("*.py")]
    assert set(sources) <= set(names)


def test_the_catalogue_in_the_wheel_is_the_one_in_the_tree(wheel: zipfile.ZipFile) -> None:
    assert wheel.read("specchat/models.toml") == (ROOT / "models.toml").read_bytes()


def test_the_man_page_in_the_wheel_is_the_one_that_the_program_prints(wheel: zipfile.ZipFile) -> None:
    inside = wheel.read(f"specchat-{__version__}.data/data/share/man/man1/specchat.1").decode()

    assert inside == page() + "\n"


def test_an_editable_install_finds_the_catalogue() -> None:
    assert catalogue_path().read_bytes() == (ROOT / "models.toml").read_bytes()


def test_version_licence_and_command_are_in_the_metadata(wheel: zipfile.ZipFile) -> None:
    folder = f"specchat-{__version__}.dist-info"
    metadata = wheel.read(f"{folder}/METADATA").decode()

    assert f"Version: {__version__}" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "specchat = specchat.cli:main" in wheel.read(f"{folder}/entry_points.txt").decode()
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()


def test_the_changelog_and_the_engine_pin_are_in_step() -> None:
    pins = re.findall(r'"llama-cpp-python==([\d.]+)"', (ROOT / "pyproject.toml").read_text())

    assert len(pins) == 1
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_packaging_folder_is_no_package() -> None:
    assert not (ROOT / "packaging" / "__init__.py").exists()  # it would shadow the one that pip's world imports


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("specchat", {"specchat.cli", "numpy", "llama_cpp", "rich", "jinja2"}),
        ("specchat.cli", {"numpy", "llama_cpp", "rich", "jinja2"}),
        ("specchat.conversation", {"llama_cpp", "rich"}),
        ("specchat.catalogue", {"llama_cpp", "numpy", "rich"}),
        ("speculation.engine", {"llama_cpp", "specchat", "rich", "jinja2"}),
        ("speculation.testing", {"llama_cpp", "specchat", "rich"}),
        ("specchat.session", {"rich", "textual"}),
        ("specchat.tui.app", {"llama_cpp", "jinja2", "sqlite3"}),  # which the first frame does not wait for
    ],
)
def test_importing_a_module_loads_only_what_it_needs(module: str, never: set[str]) -> None:
    script = f"import sys, {module}; print(*({never!r} & set(sys.modules)))"

    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)

    assert found.stdout.split() == []
