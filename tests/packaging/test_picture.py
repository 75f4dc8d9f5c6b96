"""The picture in the README."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from tests.packaging.conftest import ROOT, script


def test_the_picture_in_the_readme_shows_what_the_app_looks_like_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCHAT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    # Cursors do not blink. The script itself is quicker than they are.
    monkeypatch.setattr(TextArea, "_toggle_cursor_blink_visible", lambda area: None)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda line: None)
    picture = script("picture")

    drawn = picture.picture(tmp_path)

    assert picture.PICTURE.read_text(encoding="utf-8") == drawn, "`make picture` draws it anew; look at it then"
    assert "(packaging/picture.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
