"""The price list of each model on this machine, kept on disk so that it is measured once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import platformdirs

from speculation.cost import CostTable


def prices_file() -> Path:
    """Where price lists are kept."""
    return Path(platformdirs.user_cache_dir("specchat", appauthor=False)) / "prices.json"


def kept_prices(file: Path, key: str) -> CostTable | None:
    """What was measured before; None where nothing readable is kept."""
    try:
        seconds = {int(rows): float(s) for rows, s in json.loads(file.read_text())[key].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return CostTable(seconds) if seconds.get(1, 0.0) > 0.0 else None


def keep_prices(file: Path, key: str, table: CostTable) -> None:
    """Keep a price list beside the others; a cache that cannot be written is no error."""
    try:
        kept = json.loads(file.read_text())
    except (OSError, ValueError):
        kept = {}
    kept = {**(kept if isinstance(kept, dict) else {}), key: {str(rows): s for rows, s in table.seconds.items()}}
    beside = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(kept, indent=1))
        beside.replace(file)
    except OSError:
        beside.unlink(missing_ok=True)
