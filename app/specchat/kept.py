"""Small facts kept between runs in JSON files of the cache folder: price lists, and what guesses have been worth.

Numbers only, no text. A file that is missing, broken or cannot be written is no error: it is measured again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from speculation.cost import CostTable


class Kept:
    """One file of facts, by key."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, key: str) -> Any:
        """What is kept under a key; None where nothing readable is."""
        return self._all().get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value beside the others."""
        facts = {**self._all(), key: value}
        beside = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(facts, indent=1))
            beside.replace(self._file)
        except OSError:
            beside.unlink(missing_ok=True)

    def _all(self) -> dict[str, Any]:
        try:
            facts = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}


def kept_prices() -> Kept:
    """Price lists, measured once for each model, engine and number of threads."""
    return Kept(_folder() / "prices.json")


def kept_survival() -> Kept:
    """What lookups have been worth with each model."""
    return Kept(_folder() / "survival.json")


def as_prices(kept: Any) -> CostTable | None:
    """A price list from what was kept; None where it is none."""
    if not isinstance(kept, Mapping):
        return None
    try:
        seconds = {int(rows): float(s) for rows, s in kept.items()}
    except (ValueError, TypeError):
        return None
    return CostTable(seconds) if all(s > 0 for s in seconds.values()) and 1 in seconds else None


def _folder() -> Path:
    return Path(platformdirs.user_cache_dir("specchat", appauthor=False))
