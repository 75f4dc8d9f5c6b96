"""Regular expressions that a user gives on the command line. Some would take for ever; those are refused in time.

Python's own engine looks for signals while it matches, so an alarm ends it. Where a system has no alarm, or in a thread
that no signal reaches, there is no limit but Ctrl-C.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from specchat.attachments import label
from specchat.errors import UsageError

MOST_S = 5.0  # for one file, in which expressions that come to an end need milliseconds

_MOST_SHOWN = 80  # characters

Span = tuple[int, int]  # characters of a text


class _TooSlow(Exception):
    """The alarm rang."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What to look for, and the option that says so."""

    text: str
    option: str

    def __post_init__(self) -> None:
        """Raises UsageError for what is no expression."""
        try:
            self._compiled()
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{self} is no regular expression: {error}") from error

    def __str__(self) -> str:
        """As it was given, fit to be shown."""
        shown = label(self.text)
        return f"{self.option} {shown if len(shown) <= _MOST_SHOWN else f'{shown[:_MOST_SHOWN]}...'}"

    def lines(self, texts: Sequence[str], name: str) -> list[int]:
        """The indexes of the lines that match. Raises UsageError, which calls the file `name`, past the limit."""
        search = self._compiled().search
        with self._limited(name):
            return [index for index, text in enumerate(texts) if search(text)]

    def spans(self, text: str, name: str) -> tuple[Span, ...]:
        """Where a whole text matches, in order; nothing is no match. Raises as `lines` does."""
        with self._limited(name):
            return tuple(found.span() for found in self._compiled(re.MULTILINE).finditer(text) if found[0])

    def _compiled(self, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what may mean something else in a later Python is told to nobody
            return re.compile(self.text, flags)

    @contextmanager
    def _limited(self, name: str) -> Iterator[None]:
        try:
            with _alarm(MOST_S):
                yield
        except _TooSlow as error:
            raise UsageError(
                f"{self} takes more than {MOST_S:g} seconds to look for in {name}; "
                "a repetition inside a repetition, as in (a+)+, may be why"
            ) from error


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _TooSlow inside when the time is over, where the system can."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
