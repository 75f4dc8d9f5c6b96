"""The ceiling of this machine: reading speed over writing speed, which no guessing can beat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specchat.doctor.finding import Finding, note, ok
from specchat.kept import Kept, as_prices

if TYPE_CHECKING:
    from speculation.cost import CostTable


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of one model here."""

    model: str
    prices: CostTable

    @property
    def width(self) -> int:
        """The most tokens that were measured in one step."""
        return max(self.prices.seconds)

    @property
    def reads_per_s(self) -> float:
        """Tokens a second, read or checked in steps of that width."""
        return self.width / self.prices.forward_s(self.width)

    @property
    def writes_per_s(self) -> float:
        """Tokens a second without guesses."""
        return 1 / self.prices.forward_s(1)

    @property
    def ceiling(self) -> float:
        """How many times faster than plain decoding a reply could get if every guess were right."""
        return self.reads_per_s / self.writes_per_s


def known(prices: Mapping[str, Any], engine: str, preferred: str) -> Measured | None:
    """The price list of the preferred model, else of the one that was measured last, with this engine."""
    form = re.compile(rf"(.+) \d+ .+ \d+ threads {re.escape(engine)}")
    found = [
        Measured(match[1], table)
        for key, kept in prices.items()
        if (match := form.fullmatch(key)) and (table := as_prices(kept)) is not None and len(table.seconds) > 1
    ]
    return next((each for each in reversed(found) if each.model == preferred), found[-1] if found else None)


def measured(path: Path, threads: int, prices: Kept) -> Measured | None:
    """Load a model and time its steps; the list is kept for chats. Raises CannotLoad, DoesNotFit."""
    from specchat.loading import EngineOptions, load_engines
    from speculation.llama import EngineLog

    engines = load_engines(path, EngineOptions(n_ctx=512, n_threads=threads), EngineLog(), prices=prices)
    try:
        return None if engines.cost is None else Measured(engines.target.weights.name, engines.cost)
    finally:
        engines.close()


def check_ceiling(found: Measured | None, *, is_quick: bool) -> Finding:
    """What guessing can give here at most."""
    if found is None:
        advice = "without --quick a model that is here is measured" if is_quick else "specchat models pull fetches one"
        return note("ceiling", "not measured on this machine yet", advice)
    said = (
        f"guessing can make {found.model} at most x{found.ceiling:.1f} as fast: it writes {found.writes_per_s:.1f} "
        f"tokens/s one by one and checks {found.reads_per_s:.1f} tokens/s, {found.width} at a time"
    )
    values = {
        "model": found.model,
        "writes_per_s": found.writes_per_s,
        "checks_per_s": found.reads_per_s,
        "ceiling": found.ceiling,
    }
    if found.ceiling < 1.1:
        return note("ceiling", said, "on this machine auto will mostly write plainly; a GPU changes that", **values)
    return ok("ceiling", said, **values)
