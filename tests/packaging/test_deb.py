"""The Debian package: what is in it, and that it runs from where it was unpacked."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from specchat import __version__
from tests.packaging.conftest import ROOT, bare_environment

LINUX = ROOT / "packaging" / "linux"
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")


@pytest.fixture(scope="module")
def package(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("deb")
    command = [sys.executable, str(ROOT / "packaging/deb.py"), str(folder), str(out), "--compress=gzip"]
    subprocess.run(command, check=True)
    (path,) = out.iterdir()
    return path


@needs_dpkg
def test_the_control_file_says_what_it_is_and_how_much_it_takes(package: Path) -> None:
    said = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout
    fields = dict(re.findall(r"^(\S+): (.*)$", said, re.MULTILINE))
    here = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()

    assert package.name == f"specchat_{__version__}_{here}.deb"
    assert (fields["Package"], fields["Version"], fields["Architecture"]) == ("specchat", __version__, here)
    assert fields["Depends"] == f"libc6 (>= {platform.libc_ver()[1]})"
    assert int(fields["Installed-Size"]) > 50_000  # KiB


@needs_dpkg
def test_everything_belongs_to_root_and_lies_where_debian_wants_it(package: Path) -> None:
    said = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=5) for line in said.splitlines()]
    paths = {line[5].split(" -> ")[0].removeprefix("./"): line[0] for line in lines}

    assert {line[1] for line in lines} == {"root/root"}
    for path in (
        "usr/share/applications/specchat.desktop",
        "usr/share/icons/hicolor/scalable/apps/specchat.svg",
        "usr/share/doc/specchat/copyright",
        "usr/share/man/man1/specchat.1.gz",
        "usr/share/bash-completion/completions/specchat",
        "usr/share/zsh/vendor-completions/_specchat",
        "usr/share/fish/vendor_completions.d/specchat.fish",
    ):
        assert paths[path] == "-rw-r--r--"
    assert paths["usr/lib/specchat/specchat"] == "-rwxr-xr-x"
    assert {path.split("/")[0] for path in paths if path} == {"usr"}


@needs_dpkg
def test_it_runs_from_where_it_was_unpacked(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "root"], check=True)

    command = [str(tmp_path / "root/usr/bin/specchat"), "--version"]
    ran = subprocess.run(command, env=bare_environment(tmp_path), capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["specchat", __version__]


@needs_dpkg
@pytest.mark.skipif(shutil.which("lintian") is None, reason="no lintian here")
def test_lintian_finds_nothing(package: Path) -> None:
    command = ["lintian", "--allow-root", "--fail-on=error,warning", str(package)]

    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    assert found.returncode == 0, found.stdout


def test_the_desktop_entry_opens_a_terminal_with_the_command_and_the_icon() -> None:
    lines = (LINUX / "specchat.desktop").read_text().splitlines()
    entry = dict(line.split("=", 1) for line in lines[1:])

    assert lines[0] == "[Desktop Entry]"
    assert (entry["Type"], entry["Exec"], entry["Icon"]) == ("Application", "specchat", "specchat")
    assert entry["Terminal"] == "true"
    assert all(entry[name].endswith(";") for name in ("Categories", "Keywords"))


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="no desktop-file-validate here")
def test_the_desktop_entry_is_valid() -> None:
    found = subprocess.run(
        ["desktop-file-validate", LINUX / "specchat.desktop"], stdout=subprocess.PIPE, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")


def test_the_icon_is_a_square_that_loads_nothing() -> None:
    icon = ET.parse(LINUX / "specchat.svg").getroot()

    _, _, width, height = map(int, icon.attrib["viewBox"].split())
    assert width == height
    assert not [each for each in icon.iter() if any(name.endswith("href") for name in each.attrib)]
