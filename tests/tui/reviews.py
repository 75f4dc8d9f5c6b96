"""Two small rewrites and an app that shows their review."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from textual import on
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from specchat.rewrite.flags import Flag, Kind
from specchat.rewrite.hunks import review
from specchat.rewrite.source import source_of
from specchat.tui.reviewed import ReviewedFile
from specchat.tui.rewritten import facts_of
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.widgets.diff import DiffView
from specchat.tui.widgets.pick_list import PickList

INSTRUCTION = "make get() respect the deadline; keep the comments"
OLD = '''\
"""A cache of network replies."""

import time
from typing import Any

# network
RETRIES = 3
TIMEOUT_MS = 3000
BACKOFF = 1.5


class Cache:
    """Keeps replies until their deadline."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: dict[str, tuple[float, Any]] = {}

    def get(self, key: str) -> Any:
        """The reply, or None."""
        item = self._items.get(key)
        return None if item is None else item[1]

    def put(self, key: str, reply: Any, seconds: float) -> None:
        """Keep a reply for some seconds; the oldest one goes where there is no room for all of them."""
        if len(self._items) >= self._size:
            self._items.pop(next(iter(self._items)))
        self._items[key] = (time.time() + seconds, reply)
'''
NEW = (
    OLD.replace("TIMEOUT_MS = 3000", "TIMEOUT_MS = 30000")
    .replace(
        "        return None if item is None else item[1]\n",
        "        if item is None or item[0] < time.time():\n            return None\n        return item[1]\n",
    )
    .replace("next(iter(self._items))", "next(iter(self._items), None)")
)
README = "# Notes\n\nThe quick brown fox jumps over the lazy dog.\nend\n"
NEW_README = README.replace("jumps", "jumped")

Drive = Callable[["Host", Pilot[None]], Awaitable[None]]


def rewritten(old: str, new: str, name: str = "notes.txt", end: str = "\n") -> ReviewedFile:
    """A file of LF lines, rewritten; with another line end the old file has that one."""
    source = source_of(old.replace("\n", end).encode(), name)
    return ReviewedFile(review(source, new.splitlines()), facts=facts_of(source, 0o644))


def cache() -> ReviewedFile:
    """Three hunks, the first of them doubtful."""
    file = rewritten(OLD, NEW, "src/cache.py", "\r\n")
    reason = "a number changed that the request does not name"
    return ReviewedFile(
        file.review,
        (
            Flag(Kind.QUIET, "1", 8, reason, 0.46, 0.53),
            Flag(Kind.SHAKY, "1", 8, "model 0.53, old text 0.46", 0.46, 0.53),
        ),
        (),
        file.facts,
        "4300 tokens in 17 s  plain about 131 s, x7.7 est  9.71 tokens/step",
        least_sure={"1": 0.53, "2": 0.94, "3": 0.99},
    )


def both() -> list[ReviewedFile]:
    """The cache, and a README with one hunk."""
    return [cache(), rewritten(README, NEW_README, "README.md")]


class Host(App[None]):
    """Shows a review and keeps what it posts."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, files: Sequence[ReviewedFile]) -> None:
        super().__init__()
        self.review = ReviewScreen(files, INSTRUCTION)
        self.writes: list[ReviewScreen.Write] = []
        self.redos: list[ReviewScreen.Redo] = []
        self.left = 0
        self.animation_level = "none"

    def on_mount(self) -> None:
        """Open it at once."""

        def leave(_: None) -> None:
            self.left += 1

        self.push_screen(self.review, leave)

    @on(ReviewScreen.Write)
    def _write(self, message: ReviewScreen.Write) -> None:
        self.writes.append(message)

    @on(ReviewScreen.Redo)
    def _redo(self, message: ReviewScreen.Redo) -> None:
        self.redos.append(message)

    @property
    def diff(self) -> list[str]:
        """The lines of the diff, also those that are scrolled away."""
        return self.review.query_one(DiffView).shown

    @property
    def hunks(self) -> list[str]:
        """The lines of the list of hunks."""
        return self.review.query_one("#review-hunks", PickList).shown

    @property
    def shows_review(self) -> bool:
        """Whether nothing lies over the review."""
        return self.screen is self.review

    def text(self, part: str) -> str:
        """What stands in a part of the page."""
        return str(self.review.query_one(f"#review-{part}", Static).content)

    def said(self) -> list[str]:
        """The messages that the user saw."""
        return [each.message for each in self._notifications]


def drive(files: Sequence[ReviewedFile], steps: Drive, size: tuple[int, int] = (80, 24)) -> Host:
    """Show a review and do something with it."""
    host = Host(files)

    async def run() -> None:
        async with host.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            await steps(host, pilot)

    asyncio.run(run())
    return host


async def press(pilot: Pilot[None], keys: str) -> None:
    """Press keys, given as characters."""
    names = {
        "[": "left_square_bracket",
        "]": "right_square_bracket",
        "{": "left_curly_bracket",
        "}": "right_curly_bracket",
        "?": "question_mark",
    }
    for key in keys:
        await pilot.press(names.get(key, key))
    await pilot.pause()
