"""A progress bar for tests of whatever fetches and checks files."""

from __future__ import annotations


class Recorder:
    """Progress that checks the promises made to a bar."""

    def __init__(self) -> None:
        self.total_bytes: int | None = None
        self.done_bytes = 0
        self.notes: list[str] = []

    def start(self, total_bytes: int) -> None:
        assert self.total_bytes is None, "started twice"
        self.total_bytes = total_bytes

    def advance(self, more_bytes: int) -> None:
        assert self.total_bytes is not None, "not started"
        assert more_bytes >= 0, "went back"
        self.done_bytes += more_bytes
        assert self.done_bytes <= self.total_bytes, "went beyond the total"

    def note(self, text: str) -> None:
        self.notes.append(text)
