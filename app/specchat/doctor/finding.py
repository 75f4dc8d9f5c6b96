"""What a check of `specchat doctor` found: one line for people, and what they can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from textwrap import wrap

from specchat.console import printable
from specchat.errors import in_one_line

_INDENT = " " * 9


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    NOTE = "note"  # works; could be better, or should be known
    PROBLEM = "problem"  # something does not work, or is not safe


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor."""

    check: str
    verdict: Verdict
    said: str
    advice: str = ""  # what to do, a command where there is one
    values: Mapping[str, object] = field(default_factory=dict)  # the figures in it, for --json

    def lines(self, width: int | None = None) -> list[str]:
        """The finding as it is printed, wrapped to a width; the advice stays one line, so that it can be copied."""
        first = printable(f"{self.verdict:<9}{self.check}: {self.said}")
        advice = [f"{_INDENT}{printable(self.advice)}"] if self.advice else []
        if width is None:
            return [first, *advice]
        form = {"subsequent_indent": _INDENT, "break_long_words": False, "break_on_hyphens": False}
        return [*wrap(first, width, **form), *advice]  # type: ignore[arg-type] # of each word there is one kind

    @property
    def as_json(self) -> dict[str, object]:
        """The finding as values that JSON has."""
        known = {"check": self.check, "verdict": str(self.verdict), "said": self.said, "advice": self.advice or None}
        return known | {"values": dict(self.values)}


@dataclass(frozen=True, slots=True)
class Check:
    """A check that has a name before it has run, so that one that breaks can be named."""

    name: str
    run: Callable[[], Iterable[Finding]]


def findings_of(checks: Sequence[Check]) -> Iterator[Finding]:
    """What the checks find, one after another; one that breaks is a problem of its own and stops no other."""
    for check in checks:
        try:
            yield from check.run()
        except Exception as error:
            # The words of an error that was not made for people may hold anything.
            why = (isinstance(error, OSError) and error.strerror) or type(error).__name__  # the system's own words
            why = in_one_line(error) if hasattr(error, "exit_code") else why
            yield Finding(check.name, Verdict.PROBLEM, f"cannot be checked: {why}")


def ok(check: str, said: str, **values: object) -> Finding:
    """All is well."""
    return Finding(check, Verdict.OK, said, values=values)


def note(check: str, said: str, advice: str = "", **values: object) -> Finding:
    """Something to know."""
    return Finding(check, Verdict.NOTE, said, advice, values)


def problem(check: str, said: str, advice: str = "", **values: object) -> Finding:
    """Something to mend."""
    return Finding(check, Verdict.PROBLEM, said, advice, values)
