"""One version everywhere, and recipes made from what pip says."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from specchat import __version__
from tests.packaging.conftest import ROOT, script

release, recipes = script("release"), script("recipes")
TODAY = date(2026, 11, 30)
TEMPLATES = ROOT / "packaging"
PURE = "https://index.example/rich-15.0.0-py3-none-any.whl"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (release.SOURCE, release.CHANGES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def part(name: str, url: str, **metadata: Any) -> dict[str, Any]:
    """What pip's report says of one package."""
    download = {"url": url, "archive_info": {"hashes": {"sha256": "ab" * 32}}}
    return {"metadata": {"name": name, "version": "1.2.3", **metadata}, "download_info": download}


OWN = part(
    "specchat", "https://index.example/specchat-1.2.3.tar.gz", project_url=["Homepage, https://specchat.example"]
)


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == release.SOURCE.as_posix()
    assert release.VERSION.fullmatch(__version__)
    for name in ("homebrew/specchat.rb", "aur/PKGBUILD", "aur/.SRCINFO", "specchat.spec", "release.md"):
        assert __version__ not in (TEMPLATES / name).read_text().replace("127.0.0.1", "")


def test_the_newest_heading_of_the_changelog_is_the_version_once_there_was_a_release() -> None:
    released = re.findall(r"^## \[(\d.*)\]", (ROOT / release.CHANGES).read_text(), re.MULTILINE)

    assert released[:1] in ([], [__version__])


def test_a_stamp_gives_source_and_changelog_the_version_and_leaves_the_rest(tree: Path) -> None:
    before = (tree / release.CHANGES).read_text()

    release.stamp(tree, "7.8.9", TODAY)

    assert '__version__ = "7.8.9"\n' in (tree / release.SOURCE).read_text()
    after = (tree / release.CHANGES).read_text()
    assert after == before.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [7.8.9] - 2026-11-30\n", 1)


def test_a_second_stamp_changes_nothing(tree: Path) -> None:
    release.stamp(tree, "7.8.9", TODAY)
    before = (tree / release.CHANGES).read_text()

    release.stamp(tree, "7.8.9", date(2027, 1, 1))

    assert (tree / release.CHANGES).read_text() == before


@pytest.mark.parametrize("version", ["7.8", "v7.8.9", "07.8.9", "7.8.9rc1", ""])
def test_a_version_of_another_form_is_refused_and_nothing_is_written(tree: Path, version: str) -> None:
    with pytest.raises(release.CannotStamp, match="is not a version"):
        release.stamp(tree, version, TODAY)
    assert __version__ in (tree / release.SOURCE).read_text()


def test_a_changelog_without_its_heading_is_refused_before_anything_is_written(tree: Path) -> None:
    (tree / release.CHANGES).write_text("# Changelog\n")

    with pytest.raises(release.CannotStamp, match=r"CHANGELOG\.md has 0 lines"):
        release.stamp(tree, "7.8.9", TODAY)
    assert __version__ in (tree / release.SOURCE).read_text()


def test_recipes_name_the_published_archive_and_every_dependency_but_those_left_out() -> None:
    report = {"install": [OWN, part("rich", PURE), part("numpy", "https://index.example/numpy.whl")]}
    found = recipes.archives(report)

    formula = recipes.formula((TEMPLATES / "homebrew/specchat.rb").read_text(), found)
    for text in (
        formula,
        *(recipes.aur((TEMPLATES / "aur" / name).read_text(), found) for name in ("PKGBUILD", ".SRCINFO")),
    ):
        assert "https://index.example/specchat-1.2.3.tar.gz" in text
        assert "https://specchat.example" in text
        assert "ab" * 32 in text
        assert not re.search(r"@[A-Z0-9]+@|A template", text)
    assert formula.count("resource ") == 1
    assert f'  resource "rich" do\n    url "{PURE}"\n' in formula


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([part("specchat", "https://index.example/specchat.tar.gz")], "has no homepage"),
        ([OWN, part("fast", "https://index.example/fast-1-cp311-linux.whl")], "holds machine code"),
        ([OWN, part("near", "file:///mirror/near-1-py3-none-any.whl")], "takes near from this machine"),
    ],
)
def test_what_cannot_stand_in_a_recipe_is_refused(parts: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(recipes.CannotMake, match=why):
        recipes.formula((TEMPLATES / "homebrew/specchat.rb").read_text(), recipes.archives({"install": parts}))


def test_pkgbuild_and_srcinfo_say_the_same() -> None:
    build, info = ((TEMPLATES / "aur" / name).read_text() for name in ("PKGBUILD", ".SRCINFO"))
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r"^\s*(\w+) = (.*)$", info, re.MULTILINE):
        values.setdefault(name, []).append(value)

    for name in (
        "pkgdesc",
        "pkgver",
        "pkgrel",
        "url",
        "arch",
        "license",
        "depends",
        "makedepends",
        "options",
        "source",
        "sha256sums",
    ):
        (line,) = re.findall(rf"^{name}=(.*)$", build, re.MULTILINE)
        stated = re.findall(r"'([^']*)'", line) or [line]
        assert stated == values[name], name


@pytest.mark.skipif(shutil.which("ruby") is None, reason="no ruby here")
def test_the_formula_is_ruby() -> None:
    subprocess.run(["ruby", "-wc", TEMPLATES / "homebrew/specchat.rb"], check=True, capture_output=True)


def test_the_formula_has_what_homebrew_asks_for() -> None:
    formula = (TEMPLATES / "homebrew/specchat.rb").read_text()

    for line in (
        "class Specchat < Formula",
        "  desc ",
        "  homepage ",
        "  url ",
        "  sha256 ",
        "  license ",
        "  test do",
    ):
        assert formula.count(f"\n{line}") == 1
    (description,) = re.findall(r'desc "(.*)"', formula)
    assert len(f"specchat: {description}") <= 80
    assert not description.lower().startswith(("a ", "an ", "the "))


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_the_pkgbuild_is_a_shell_script() -> None:
    subprocess.run(["bash", "-n", TEMPLATES / "aur/PKGBUILD"], check=True)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shellcheck_finds_nothing_in_the_pkgbuild() -> None:
    subprocess.run(["shellcheck", "-s", "bash", TEMPLATES / "aur/PKGBUILD"], check=True)


def test_every_file_that_the_release_list_names_exists() -> None:
    text = (TEMPLATES / "release.md").read_text()
    named = set(re.findall(r"packaging/[\w./]+\.\w+", text))

    assert {"packaging/release.py", "packaging/recipes.py"} <= named
    assert [name for name in named if not (ROOT / name).exists()] == []
