"""The settings that hold, as text and as JSON, with where each comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specchat.settings.keys import KEYS, Place, flattened, kind_of
from specchat.settings.layers import Source
from specchat.settings.reading import Chosen
from specchat.settings.text import SettingsText, dotted

SCHEMA = "specchat.config/1"


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting: its key, its value as a file would have it, and what says so."""

    key: str
    value: Any
    source: Source
    where: str  # "" for what is built in


def shown_settings(chosen: Chosen, files: Mapping[Source, SettingsText]) -> list[Shown]:
    """Every setting; of those that a file decides with the line."""
    found = []
    for place, value in flattened(chosen.settings).items():
        origin = chosen.resolved.origin(place)
        where = files[origin.source].where(place) if origin.source in files else origin.where
        found.append(Shown(dotted(place), spelled(place, value), origin.source, where))
    return found


def spelled(place: Place, value: object) -> Any:
    """The value of a setting as a file has it."""
    return KEYS[kind_of(place)].metadata["allowed"].spell(value)


def lines(found: list[Shown], *, with_origin: bool) -> list[str]:
    """A line of TOML for each setting, and behind it what says so."""
    rows = [f"{each.key} = {json.dumps(each.value, ensure_ascii=False)}" for each in found]
    if not with_origin:
        return rows
    width = min(max(map(len, rows)), 44)
    said = [f"{each.source}: {each.where}" if each.where else str(each.source) for each in found]
    return [f"{row:{width}}  # {origin}" for row, origin in zip(rows, said, strict=True)]


def as_json(found: list[Shown], chosen: Chosen) -> dict[str, Any]:
    """The settings in the shape specchat.config/1."""
    return {
        "schema": SCHEMA,
        "file": str(chosen.file.path),
        "settings": {each.key: {"value": each.value, "source": each.source, "where": each.where} for each in found},
    }
