"""Refusals of the store of chats, for people."""

from __future__ import annotations

from pathlib import Path

from specchat.attachments import label
from specchat.errors import InputRefused


class StoreRefused(InputRefused):
    """A store of chats that cannot be used; it is left as it is."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{label(str(path))} {problem}")
        self.path = path
        self.problem = problem


class NoSuchChat(InputRefused):
    """A chat that is not in the store, or not by that name."""

    def __init__(self, wanted: str, problem: str = "is no chat; see: specchat chats list") -> None:
        super().__init__(f"{label(wanted) or 'this'} {problem}")
        self.wanted = wanted


class ImportRefused(InputRefused):
    """A file that holds no chats that can be read; the text names the place."""

    def __init__(self, name: str, place: str, problem: str) -> None:
        super().__init__(f"{label(name)}{f', {place}' if place else ''}: {problem}")
        self.place = place
