"""`specchat manual`: a page that roff takes without a word, that shows text as it is, and is the same everywhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.cli import main
from specchat.manual import page, roff
from specchat.paths import places
from tests.specchat.roff import between, plain

NASTY = r""".TH \n 'quoted' "twice" `ticks` ~ ^ --long-option C:\temp %d"""


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_any_text_becomes_one_line_of_ascii_that_says_the_same(text: str) -> None:
    line = roff(text)

    assert line.isascii()
    assert len(line.splitlines()) <= 1
    assert not line.startswith((".", "'"))  # which begin a request
    assert plain(line) == " ".join(text.split())


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manual"]) == 0
    assert capsys.readouterr().out == page() + "\n"


def test_a_manual_has_the_sections_that_people_look_for() -> None:
    titles = [line.removeprefix(".SH ") for line in page().splitlines() if line.startswith(".SH ")]

    assert titles == [
        "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS",
        "SETTINGS", "ENVIRONMENT", "FILES", "EXIT STATUS",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not here")
def test_roff_has_nothing_against_the_page() -> None:
    checked = _rendered(page(), "-ww")

    assert checked.stderr == ""
    assert "specchat - private chat for the terminal" in checked.stdout


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not here")
def test_mandoc_misses_nothing_but_a_date() -> None:
    lint = subprocess.run(
        ["mandoc", "-Tlint", "-W", "warning"], input=page(), capture_output=True, text=True, check=False
    )

    assert [line for line in lint.stdout.splitlines() if "missing date" not in line] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not here")
def test_roff_shows_characters_that_mean_something_to_it() -> None:
    assert NASTY in _rendered(f".TH X 1\n.nh\n.SH X\n{roff(NASTY)}", "-rLL=200n").stdout


def test_the_page_names_no_place_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("SPECCHAT_CONFIG", "SPECCHAT_DATA_DIR", "SPECCHAT_STATE_DIR", "SPECCHAT_LOG", "COLUMNS"):
        monkeypatch.setenv(name, "33")

    assert page() == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the page has the places of Linux")
def test_the_page_has_the_places_of_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    files = plain(between(page(), ".SH FILES", ".SH"))

    assert [str(place.path) for place in places({}) if f"~/{place.path.relative_to(tmp_path)}\n" not in files] == []


def _rendered(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["groff", "-man", "-Tutf8", "-P-cbou", *options]
    return subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=False)
