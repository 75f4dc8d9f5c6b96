"""What the review looks like: snapshots/review/SCREEN-THEME-SIZE.svg."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from specchat.rewrite.recipes import Recipe, Variable
from specchat.tui.rewrite_results import summed_up
from specchat.tui.screens.rewrite_ask import RewriteAsk
from specchat.tui.screens.rewriting import RewritingScreen
from specchat.tui.screens.summary import SummaryScreen
from tests.tui.conftest import PICTURES, Compare
from tests.tui.reviews import Host, both, press
from tests.tui.test_rewriting import Done
from tests.tui.test_snapshots import SIZES, THEMES, at_rest, name_of

# What is pressed to come to each screen.
SCREENS = {
    "flagged": "",
    "words": "y",
    "side-by-side": "yv",
    "edit": "]e",
    "leave": "aq",
    "help": "?",
    "rewriting": "",
    "ask": "",
    "recipe": "",
    "summary": "",
}
RECIPE = Recipe(
    "proofread", "spelling", "Correct spelling and nothing else. Tone: {tone}.", (Variable("tone", "plain"),)
)
PRICE = "9,100 tokens: about 24 s if little changes, 2 min 10 s if all of it does (est)"
ROWS = [
    ("notes.md", "written, 3 of 4 changes; /undo 7f3a takes it back"),
    ("src/cache.py", "nothing to change"),
    ("logo.png", "logo.png is not text: it holds NUL bytes"),
]
CASES = [(screen, theme, size) for screen in SCREENS for theme in THEMES for size in SIZES]


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the terminal or the clock shows."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    # Cursors do not blink. To turn that off later is too late: textual keeps lines drawn without a cursor.
    monkeypatch.setattr(TextArea, "_toggle_cursor_blink_visible", lambda area: None)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda line: None)


def picture(screen: str, theme: str, size: tuple[int, int], tmp_path: Path) -> str:
    """What a screen looks like."""
    host = Host(both())
    host.theme = theme

    async def go() -> str:
        async with host.run_test(size=size) as pilot:
            await pilot.pause()
            await press(pilot, SCREENS[screen])
            if screen == "rewriting":
                running = RewritingScreen("src/cache.py", "make get() respect the deadline; keep the comments")
                await host.push_screen(running)
                running.show(Done())
                running.show_guesser("auto > lookup: the last 14 tokens match cache.py:88")
            elif screen in ("ask", "recipe"):
                ask = RewriteAsk(tmp_path, "notes.md src/*.py", "", ("fix spelling",), lambda: [RECIPE])
                await host.push_screen(ask)
                await host.workers.wait_for_complete()
                await pilot.pause()
                ask.tell_price(ask.meant.targets, PRICE, is_problem=False)
                if screen == "recipe":
                    await pilot.press("ctrl+r", "enter")
            elif screen == "summary":
                await host.push_screen(SummaryScreen(summed_up(ROWS), ROWS))
            return await at_rest(pilot)

    return asyncio.run(go())


@pytest.mark.parametrize(("screen", "theme", "size"), CASES, ids=[name_of(*case) for case in CASES])
def test_a_screen_looks_as_it_did(
    same_picture: Compare, tmp_path: Path, screen: str, theme: str, size: tuple[int, int]
) -> None:
    for name in ("notes.md", "src/cache.py", "src/keys.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    same_picture(f"review/{name_of(screen, theme, size)}", picture(screen, theme, size, tmp_path))


def test_every_kept_picture_is_compared() -> None:
    kept = {path.stem for path in (PICTURES / "review").glob("*.svg") if not path.stem.endswith(".new")}
    assert kept == {name_of(*case) for case in CASES}
