"""Small facts kept between runs in JSON files of the cache folder: price lists, and what guesses have been worth.

Numbers, and the places of model files; no text of chats. A file that is missing, broken or cannot be written is no
error: it is measured again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from specchat.folders import mark_as_cache, prices_path, survival_path, trials_path
from speculation.cost import CostTable


class Kept:
    """One file of facts, by key."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, key: str) -> Any:
        """What is kept under a key; None where nothing readable is."""
        return self.all().get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value beside the others."""
        self._write({**self.all(), key: value})

    def drop(self, keys: Collection[str]) -> None:
        """Forget what is kept under these keys."""
        self._write({key: value for key, value in self.all().items() if key not in keys})

    def all(self) -> dict[str, Any]:
        """Everything, by key."""
        try:
            facts = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def _write(self, facts: Mapping[str, Any]) -> None:
        beside = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            mark_as_cache(self._file.parent)
            beside.write_text(json.dumps(facts, indent=1))
            beside.replace(self._file)
        except OSError:
            with suppress(OSError):  # the folder may be none
                beside.unlink()


def kept_prices() -> Kept:
    """Price lists, measured once for each model, engine and number of threads."""
    return Kept(prices_path())


def kept_survival() -> Kept:
    """What lookups have been worth with each model."""
    return Kept(survival_path())


def kept_trials() -> Kept:
    """Which model files have been loaded once in a process of their own."""
    return Kept(trials_path())


def as_prices(kept: Any) -> CostTable | None:
    """A price list from what was kept; None where it is none."""
    if not isinstance(kept, Mapping):
        return None
    try:
        seconds = {int(rows): float(s) for rows, s in kept.items()}
    except (ValueError, TypeError):
        return None
    return CostTable(seconds) if all(s > 0 for s in seconds.values()) and 1 in seconds else None


def price_key(name: str, size_bytes: int, back_end: str, n_threads: int, engine: str) -> str:
    """What the price list of a model is kept under."""
    return f"{name} {size_bytes} {back_end} {n_threads} threads {engine}"


def draft_price_key(key: str) -> str:
    """What the price of one token of a draft model is kept under."""
    return f"{key} as draft"


def prices_of(prices: Kept, name: str, n_threads: int, engine: str) -> tuple[CostTable | None, CostTable | None]:
    """The price lists of a model that is not loaded: as a target, and of one token as a draft."""
    form = re.compile(rf"{re.escape(name)} \d+ .+ {n_threads} threads {re.escape(engine)}( as draft)?")
    found: list[CostTable | None] = [None, None]
    for key, kept in prices.all().items():
        if match := form.fullmatch(key):
            found[match[1] is not None] = as_prices(kept)
    return found[0], found[1]
