"""Pictures of the screen, kept as SVG files and compared with what the screen draws now."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

PICTURES = Path(__file__).with_name("snapshots")
UPDATE = "UPDATE_SNAPSHOTS"  # not an option of pytest: those of a folder below testpaths are read too late

Compare = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def no_state_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app tidies copies to undo with, and deletes what heads read from chats: of who runs the tests, nothing."""
    monkeypatch.setenv("SPECCHAT_STATE_DIR", str(tmp_path_factory.getbasetemp() / "state"))
    monkeypatch.setenv("SPECCHAT_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


def normalised(svg: str) -> str:
    """The picture without what changes in every line with any of its text, and without fonts from the web."""
    fonts_gone = re.sub(r"\s*@font-face \{.*?\n *\}", "", svg, flags=re.DOTALL)
    same_ids = re.sub(r"\bterminal-\d+-", "t-", fonts_gone)
    return re.sub(r"[ \t]+$", "", same_ids.replace("><", ">\n<"), flags=re.MULTILINE).strip() + "\n"


@pytest.fixture
def same_picture() -> Compare:
    """Fails where a picture, an SVG, is not the one that is kept under a name."""

    def compare(name: str, svg: str) -> None:
        kept, new, drawn = PICTURES / f"{name}.svg", PICTURES / f"{name}.new.svg", normalised(svg)
        new.unlink(missing_ok=True)
        if os.environ.get(UPDATE):
            kept.write_text(drawn, encoding="utf-8")
        elif not kept.exists() or kept.read_text(encoding="utf-8") != drawn:
            new.write_text(drawn, encoding="utf-8")
            what = f"is not {kept.name}" if kept.exists() else "has no picture yet"
            pytest.fail(f"{new} {what}: look at both in a browser; {UPDATE}=1 keeps the new one", pytrace=False)

    return compare
