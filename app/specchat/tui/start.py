"""What the app begins with, and how a change of its settings finds its way into the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from specchat.settings import Settings, SettingsFile
from specchat.settings.keys import Place
from specchat.settings.layers import Origin, Source
from specchat.tui.seat import Wanted


def carried(before: Any, after: Any, stored: Any) -> Any:
    """`stored` with those fields changed that differ between `before` and `after`."""
    changes = {}
    for one in fields(after):
        was, now = getattr(before, one.name), getattr(after, one.name)
        if is_dataclass(now):
            changes[one.name] = carried(was, now, getattr(stored, one.name))
        elif was != now:
            changes[one.name] = now
    return replace(stored, **changes)


@dataclass(frozen=True, slots=True)
class Start:
    """What the command line asks for."""

    settings: Settings  # as they are in effect, flags included
    stored: Settings  # as the file has them: flags are never remembered
    file: SettingsFile
    wanted: Wanted
    trouble: str = ""  # of reading the settings
    history: Path | None = None  # the store of chats; None: there is none
    is_private: bool = False  # whether nothing is written to it
    resume: int | None = None  # the chat of the store to go on with
    origins: Mapping[Place, Origin] = field(default_factory=dict)  # of the settings that are not built in

    def decided(self) -> dict[str, str]:
        """What decides settings before the user's file does, by key: a change in the app holds for this run alone."""
        words = {Source.PROJECT: "the project's settings"}
        return {
            ".".join(place): words.get(origin.source, origin.where)
            for place, origin in self.origins.items()
            if origin.source.is_over_user_file
        }
