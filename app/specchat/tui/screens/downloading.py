"""A download as a screen follows it: how far, how fast, how long still. Knows no widget and no network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from specchat.console import size

WINDOW_S = 10.0  # of the rate: shorter jumps about, longer hides a network that has died
SURE_S = 1.0  # of bytes before a rate is said at all
REPORT_S = 0.1  # between two reports


class Stopped(Exception):
    """Raised into a pull that nobody wants any more; what has arrived whole stays for the next one."""


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far a pull is."""

    done_bytes: int = 0
    total_bytes: int = 0
    note: str = ""  # what is being done
    per_s: float | None = None  # bytes a second; None: too early to say

    @property
    def left_s(self) -> float | None:
        """Seconds until all is here at this rate; None where there is no rate."""
        return None if not self.per_s else (self.total_bytes - self.done_bytes) / self.per_s

    def __str__(self) -> str:
        """For example "412 MB of 1.1 GB, 37 %, 8.2 MB/s, 1 min 25 s left, part 9 of 22"."""
        parts = [f"{size(self.done_bytes)} of {size(self.total_bytes)}"]
        if self.total_bytes:
            parts.append(f"{self.done_bytes * 100 // self.total_bytes} %")
        if self.per_s is not None and self.done_bytes < self.total_bytes:
            parts.append(f"{size(round(self.per_s))}/s")
            parts.append("stalled" if self.left_s is None else f"{duration(self.left_s)} left")
        return ", ".join([*parts, self.note] if self.note else parts)


class Follower:
    """The progress of one pull, reported at a bearable rate and with a speed; stops the pull when asked to.

    Every call may raise Stopped, once `wanted` says False.
    """

    def __init__(
        self,
        report: Callable[[Progressed], None],
        wanted: Callable[[], bool],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._report = report
        self._wanted = wanted
        self._clock = clock
        self._done_bytes = 0
        self._total_bytes = 0
        self._note = ""
        self._reported_s = float("-inf")
        self._seen: deque[tuple[float, int]] = deque()  # (seconds, bytes then)

    def start(self, total_bytes: int, /) -> None:
        """A pull of this many bytes begins."""
        self._total_bytes = total_bytes
        self._tell()

    def advance(self, more_bytes: int, /) -> None:
        """More bytes are here; 0 says that the pull still waits for some."""
        self._done_bytes += more_bytes
        if self._clock() - self._reported_s >= REPORT_S or self._done_bytes == self._total_bytes:
            self._tell()
        elif not self._wanted():
            raise Stopped

    def note(self, text: str, /) -> None:
        """Another thing is being done from now on."""
        self._note = text
        if not self._seen:  # what was counted before came from an earlier pull and at no speed
            self._seen.append((self._clock(), self._done_bytes))
        self._tell()

    def _tell(self) -> None:
        if not self._wanted():
            raise Stopped
        now_s = self._reported_s = self._clock()
        if self._seen:
            self._seen.append((now_s, self._done_bytes))
            while now_s - self._seen[1][0] >= WINDOW_S:
                self._seen.popleft()
        self._report(Progressed(self._done_bytes, self._total_bytes, self._note, self._per_s()))

    def _per_s(self) -> float | None:
        if not self._seen:
            return None
        (first_s, first_bytes), (last_s, last_bytes) = self._seen[0], self._seen[-1]
        return (last_bytes - first_bytes) / (last_s - first_s) if last_s - first_s >= SURE_S else None


def duration(seconds: float) -> str:
    """A time as people say it: 48 s, 1 min 25 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
