"""The line of figures at the bottom; parts leave by priority when there is no room."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from specchat.console import printable, size
from specchat.live import Live, sparkline

_SPARKS = 20  # columns at most


@dataclass(frozen=True, slots=True)
class Engine:
    """What the line says of the engine."""

    back_end: str = ""
    memory_bytes: int | None = None
    drafted: str | None = None  # a loaded draft model that is not in use


class Status(Widget):
    """Guesser, tokens per step with the last forty, text not exact, accepted, speed, context, memory, back end."""

    DEFAULT_CSS = "Status { height: 1; background: $panel; color: $foreground; padding: 0 1; }"

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._live: Live | None = None
        self._engine = Engine()
        self._message = "starting"
        self._fetching = ""

    def show(self, live: Live | None) -> None:
        self._live = live
        self.refresh()

    def show_engine(self, engine: Engine) -> None:
        self._engine = engine
        self.refresh()

    def show_fetching(self, text: str) -> None:
        """How far the fetch of models is; "" while there is none."""
        self._fetching = printable(text)
        self.refresh()

    def say(self, message: str) -> None:
        """What is going on where there are no figures yet."""
        self._message = printable(message)
        self.refresh()

    def render(self) -> Text:
        return Text(fitted(self._parts(), self.size.width), no_wrap=True, end="")

    def _parts(self) -> list[tuple[int, str]]:
        live = self._live
        if live is None:
            parts = [(0, self._message), (1, self._fetching)]
            return [*parts, (2, _short(self._engine.back_end)), (3, _memory(self._engine.memory_bytes))]
        counted = live.totals
        guessing = live.guess if live.guesser in ("", "plain", live.guess) else f"{live.guess} > {live.guesser}"
        roomy = self.size.width >= 100
        sparks = _SPARKS if roomy else _SPARKS // 2
        per_step = "-" if counted.tokens_per_step is None else f"{counted.tokens_per_step:.2f}/step"
        parts = [(1, live.paused or guessing), (0, f"{per_step} {sparkline(live.recent[-sparks:], sparks)}".rstrip())]
        parts.append((1, "" if live.exact else "not exact"))
        parts.append((4, "accepted -" if counted.alpha is None else f"accepted {counted.alpha:.0%}"))
        parts.append((2, "" if counted.tokens_per_s is None else f"{counted.tokens_per_s:.1f} tok/s"))
        parts.append((5, "" if live.speed_up is None else f"x{live.speed_up:.2f} est"))
        meter = context_meter(live.context_tokens, live.n_ctx)
        parts.append((3, meter if roomy else f"ctx {live.context_tokens / live.n_ctx:.0%}"))
        idle = "" if self._engine.drafted is None else f"{self._engine.drafted} loaded, not in use"
        parts.append((2, self._fetching))
        parts += [(8, idle), (6, _memory(self._engine.memory_bytes)), (7, _short(self._engine.back_end))]
        return parts


def fitted(parts: list[tuple[int, str]], width: int) -> str:
    """The parts in order; the important ones (small numbers) get a place first, as long as they fit."""
    kept: set[int] = set()
    room = width + 2
    for at in sorted((i for i, (_, text) in enumerate(parts) if text), key=lambda i: parts[i][0]):
        if cell_len(parts[at][1]) + 2 <= room or not kept:
            kept.add(at)
            room -= cell_len(parts[at][1]) + 2
    return "  ".join(parts[at][1] for at in sorted(kept))[:width]


def context_meter(used: int, size: int) -> str:
    """Tokens in use of the context."""
    share = used / size if size else 0.0
    full = round(share * 8)
    return f"ctx {_thousands(used)}/{_thousands(size)} {'█' * full}{'░' * (8 - full)} {share:.0%}"


def _thousands(n: int) -> str:
    return str(n) if n < 1000 else f"{n / 1000:.1f}k"


def _memory(n_bytes: int | None) -> str:
    return "" if n_bytes is None else f"mem {size(n_bytes)}"


def _short(back_end: str) -> str:
    return printable(back_end).split(" (")[0]
