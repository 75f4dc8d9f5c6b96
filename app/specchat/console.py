"""What the line-mode commands put on a terminal: clean text, progress, figures, questions."""

from __future__ import annotations

import re
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # rich takes 50 ms to import, which `--help` and pipes need not pay
    from rich.progress import Progress, TaskID

    from specchat.session import Reading, Reply

# Control characters; line separators that only some programs break at, so that lines would be counted in two ways;
# bidirectional overrides, which make a line read as another; halves of surrogate pairs, which no terminal can be sent.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_TURN_S = 0.1  # seconds of waiting for an answer at a time
_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def printable(text: str) -> str:
    """Text that cannot steer a terminal, with a mark for each character that could; newline and tab stay."""
    return _STEERING.sub(lambda found: _mark(found[0]), text)


def _mark(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"  # control pictures: escape becomes its symbol


def say(text: str) -> None:
    """A line for the person, beside the result: stderr. Where that cannot be written, the work goes on without it."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


def size(n_bytes: int) -> str:
    """A size as people read it: 1.1 GB."""
    amount, units = float(n_bytes), iter(["B", "kB", "MB", "GB", "TB", "PB", "EB"])
    unit = next(units)
    while amount >= 1000:
        amount, unit = amount / 1000, next(units)
    return f"{amount:.0f} {unit}" if unit in ("B", "kB") or amount >= 100 else f"{amount:.1f} {unit}"


def confirmed(question: str, *, by_enter: bool = True) -> bool:
    """Ask on the terminal; the end of input means no, and so does Enter where `by_enter` is False.

    False without a terminal to ask on.
    """
    if not can_ask():
        return False
    answer = answer_to(f"{question} {'[Y/n]' if by_enter else '[y/N]'} ")
    return answer in (("", "y", "yes") if by_enter else ("y", "yes"))


def answer_to(question: str) -> str | None:
    """What is typed behind a question on the terminal, in lower case; None at the end of input."""
    print(question, end="", file=sys.stderr, flush=True)
    # Ctrl-C on the brink of a blocking read, or seen by another thread, would raise only behind the read.
    with suppress(OSError, ValueError):  # of input that cannot be waited for, as on Windows
        while not select.select([sys.stdin], [], [], _TURN_S)[0]:
            pass
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        say("")
        return None
    return answer.strip().lower()


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """While inside, Ctrl-C calls `stop` instead of raising, because an exception would be lost inside the engine.

    Where the end is like Ctrl-C (`end_interrupts`), that does too.
    """
    alike = [each for each in _ENDS if callable(signal.getsignal(each))]
    before = {each: signal.signal(each, lambda *_: stop()) for each in (signal.SIGINT, *alike)}
    try:
        yield
    finally:
        _put_back(before)


@contextmanager
def end_interrupts() -> Iterator[None]:
    """While inside, being asked to end, or losing the terminal, is like Ctrl-C, so that what was done is kept."""
    wanted = [each for each in _ENDS if signal.getsignal(each) is signal.SIG_DFL]
    before = {each: signal.signal(each, signal.default_int_handler) for each in wanted}
    try:
        yield
    finally:
        _put_back(before)


def _put_back(handlers: dict[signal.Signals, Any]) -> None:
    for each, handler in handlers.items():
        signal.signal(each, handler)


class Bar:
    """A progress bar on stderr that vanishes when done; silent where stderr is not a terminal."""

    def __init__(self, title: str, unit: str) -> None:
        """`unit` is "bytes", "tokens" or "parts"."""
        self._title = title
        self._unit = unit
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away; it does not come back."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def start(self, total: int, /) -> None:
        """Begin to show."""
        from rich.console import Console

        console = Console(stderr=True)
        if not console.is_terminal or console.is_dumb_terminal:
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        amounts: dict[str, list[ProgressColumn]] = {
            "bytes": [DownloadColumn(), TransferSpeedColumn()],
            "tokens": [MofNCompleteColumn()],
        }
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            *amounts.get(self._unit, []),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task(printable(self._title), total=total)
        self._progress.start()

    def advance(self, more: int, /) -> None:
        """Move on."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, more)

    def move_to(self, done: float, /) -> None:
        """Move to an absolute place."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done)

    def note(self, text: str, /) -> None:
        """What is being done, beside the title."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=printable(f"{self._title}, {text}"))


class Watched:
    """Work whose share that is done is shown, and that Ctrl-C ends."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.is_wanted = True

    def stop(self) -> None:
        """Let it end at its next progress."""
        self.is_wanted = False

    def progress(self, done: float) -> bool:
        """Show the share, 0 to 1; False where the work is to end."""
        self.bar.move_to(done)
        return self.is_wanted


@contextmanager
def watched(title: str) -> Iterator[Watched]:
    """A bar for work that tells its progress."""
    with Bar(title, "parts") as bar, on_interrupt((work := Watched(bar)).stop):
        bar.start(1)
        yield work


class ReadingBar(Bar):
    """The progress of reading a prompt; shown only where it takes long enough to be read."""

    def __init__(self) -> None:
        super().__init__("reading", "tokens")
        self._started = False

    def show(self, reading: Reading) -> None:
        """Draw one reading."""
        if not self._started and reading.seconds_left is not None and reading.seconds_left > 0.5:
            self._started = True
            self.start(reading.total)
        self.move_to(reading.read)


def figures(reply: Reply) -> str:
    """One line that says what a reply took."""
    if reply.server is not None:
        from specchat.remote.telling import figures_line

        return figures_line(reply)
    totals = reply.totals
    parts = [f"{totals.emitted} tokens"]
    if totals.tokens_per_s is not None:
        parts.append(f"{totals.tokens_per_s:.1f} tok/s")
    if totals.tokens_per_step is not None:
        parts.append(f"{totals.tokens_per_step:.2f} tokens/step")
    if totals.alpha is not None:
        parts.append(f"accepted {totals.alpha:.0%}")
    if reply.speed_up is not None:
        parts.append(f"x{reply.speed_up:.2f} est")
    if not reply.exact:
        parts.append("not exact")
    parts += [
        f"seed {reply.seed}",
        f"read {reply.read_tokens}, reused {reply.reused_tokens}",
    ]
    return " · ".join(parts)
