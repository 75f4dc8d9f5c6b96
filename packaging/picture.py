"""Draws packaging/picture.svg, the picture in the README, from a scripted session: `make picture`.

The app is the real one and so is the arithmetic of its figures; what a model would have written, and what of it was
guessed, stands below.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from specchat.provenance import Author, Origin
from specchat.settings import Settings, ViewSettings
from tests.tui.conftest import normalised
from tests.tui.scripted import Piece, Script, app_on
from tests.tui.test_snapshots import ask, at_rest

PICTURE = Path(__file__).with_name("picture.svg")
SIZE = (116, 36)
QUESTION = "Rename load to read_all, sort what it gives, and say what changed"
FILE = Origin(Author.FILE, "notes.py", 12, 1, 0)


def plain(text: str) -> Piece:
    """One token of the model's own."""
    return Piece(text)


def copied(text: str, tokens: int, drafted: int) -> Piece:
    """A step that took its tokens from the file, but for the last one."""
    return Piece(text, "lookup", tokens - 1, drafted, Author.FILE, FILE)


def drafted(text: str, tokens: int, guessed: int = 4) -> Piece:
    """A step that the draft model proposed."""
    return Piece(text, "draft", tokens - 1, guessed, Author.DRAFT)


REPLY = [
    drafted("`read_all` gives the lines ", 5),
    plain("sorted "),
    drafted("now, and its two ", 4),
    plain("callers "),
    drafted("use the new name:\n\n", 5),
    copied("```python\n", 3, 6),
    copied("def ", 1, 6),
    drafted("read_all", 2, 3),
    copied("(path: Path) -> list[str]:\n", 9, 8),
    copied('    """The lines of a file', 6, 12),
    plain(", "),
    drafted("sorted", 1, 2),
    copied(', without their ends."""\n', 7, 7),
    copied('    with path.open(encoding="utf-8") as file:\n', 13, 12),
    copied("        return ", 2, 12),
    plain("sorted("),
    copied('line.rstrip("\\n") for line in file', 11, 12),
    plain(")\n\n\n"),
    copied("def main() -> None:\n", 7, 8),
    copied("    for line in ", 4, 12),
    copied('read_all(Path("notes.txt")):\n', 9, 8),
    copied("        print(line)\n", 5, 8),
    copied("```\n\n", 2, 2),
    drafted("The docstring says ", 4),
    plain("so "),
    drafted("too. ", 2),
    plain("Order "),
    drafted("does not matter to ", 4),
    copied("`main`", 3, 4),
    drafted(", which prints ", 3),
    plain("every "),
    drafted("line, and nothing else ", 5),
    drafted("reads the ", 2),
    copied("old name.", 3, 4),
]


def picture(folder: Path) -> str:
    """The screen after the reply, as SVG."""
    app = app_on(folder, Script([REPLY]), Settings(view=ViewSettings(theme="textual-dark", tint="token")))
    app.animation_level = "none"

    async def drawn() -> str:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            await ask(pilot, QUESTION)
            return await at_rest(pilot)

    return normalised(asyncio.run(drawn()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPECCHAT_STATE_DIR"] = folder
        os.environ.pop("NO_COLOR", None)
        PICTURE.write_text(picture(Path(folder)), encoding="utf-8")
