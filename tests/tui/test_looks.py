"""Every theme, no colours at all, and the terminal's own: the chat is drawn, and guesses are told apart by shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style
from textual.app import App
from textual.pilot import Pilot

from specchat.settings import Settings, ViewSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.rendering import theme_colours
from tests.tui.scripted import Script, app_on, mixed
from tests.tui.test_app import ask, drive

REPLY = """\
# Title

Some `code` and **bold** text with words enough for all.

```python
print(1)
```

| a | b |
|---|---|
| 1 | 2 |
"""


@pytest.mark.parametrize("theme", sorted(App().available_themes))
def test_a_chat_is_drawn_in_every_theme(tmp_path: Path, theme: str) -> None:
    app = app_on(tmp_path, Script([mixed(REPLY)]), Settings(view=ViewSettings(theme=theme)))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "show")
        assert app.theme == theme
        colours = theme_colours(app)
        for name in (colours.accent, colours.muted, colours.draft, colours.lookup):
            Style.parse(name)  # a colour that rich does not know raises
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert app.chat_view.transcript.views[-1].source == REPLY

    drive(app, keys)


def test_the_theme_is_changed_by_command_and_kept(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "/theme nord")
        assert app.theme == "nord"
        assert 'theme = "nord"' in (tmp_path / "config.toml").read_text()

    drive(app, keys)


def test_without_colours_guessed_tokens_still_read_as_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(tmp_path, Script([mixed(REPLY)]), Settings(view=ViewSettings(tint="token")))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "show")
        view = app.chat_view.transcript.views[-1]
        styles = [
            segment.style
            for y in range(view.size.height)
            for segment in view.render_line(y)
            if segment.style is not None and segment.text.strip()
        ]
        assert any(style.underline and not style.italic for style in styles)  # the draft model
        assert any(style.italic and not style.underline for style in styles)  # a copy
        assert any(style.italic and style.underline for style in styles)  # a copy from a file

    drive(app, keys)
