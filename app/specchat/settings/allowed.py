"""What a setting may be: the values of one key, checked where a settings object is made. No keys, no files."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

T = TypeVar("T")

LARGEST = sys.float_info.max
SHOWN = 60  # characters of a wrong value that an error repeats


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a key may have."""

    text: str  # for people, after "it must be"
    fits: Callable[[Any], bool]
    none: str | None = None  # the word that means None in the file; without one None is not allowed

    def check(self, value: object) -> None:
        """Raises ValueError that shows the value and says what is allowed."""
        if not self.fits(value) and not (value is None and self.none is not None):
            raise ValueError(f"is {shown(value)}; it must be {self.text}")

    def read(self, raw: object) -> object:
        """The setting that a value of the file means. Raises ValueError as `check` does."""
        if isinstance(raw, str) and raw == self.none:
            return None
        value = tuple(raw) if isinstance(raw, list) else raw
        self.check(value)
        return value

    def spell(self, value: object) -> object:
        """A setting as the file has it."""
        return self.none if value is None else list(value) if isinstance(value, tuple) else value


class Checked:
    """A dataclass whose fields come from `key`; a value that is not allowed raises ValueError with the field's name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for described in fields(self):  # type: ignore[arg-type] # only dataclasses inherit from it
            if "allowed" in described.metadata:
                try:
                    described.metadata["allowed"].check(getattr(self, described.name))
                except ValueError as error:
                    raise ValueError(f"{described.name} {error}") from None


def key(default: T, allowed: Allowed, explained: str) -> T:
    """A field of a `Checked` dataclass; `explained` is what the settings file says beside it."""
    return field(default=default, metadata={"allowed": allowed, "explained": explained})


def one_of(names: tuple[str, ...]) -> Allowed:
    return Allowed(f"{', '.join(names[:-1])} or {names[-1]}", lambda value: isinstance(value, str) and value in names)


def some_of(names: tuple[str, ...]) -> Allowed:
    def fits(value: object) -> bool:
        return isinstance(value, tuple) and all(v in names for v in value) and len(set(value)) == len(value)

    return Allowed(f"a list of {', '.join(names)}, each at most once", fits)


def whole(least: int, most: float = math.inf, *, none: str | None = None) -> Allowed:
    span = f"a whole number, {least} or more" if most == math.inf else f"a whole number from {least} to {most}"
    text = f'"{none}" or {span}' if none else span
    return Allowed(text, lambda value: type(value) is int and least <= value <= most, none)  # True is an int too


def number(text: str, fits: Callable[[float], bool]) -> Allowed:
    def is_one(value: object) -> bool:
        # Finite, and no whole number beyond the largest float, which arithmetic would choke on.
        return isinstance(value, int | float) and type(value) is not bool and abs(value) <= LARGEST and fits(value)

    return Allowed(text, is_one)


def switch() -> Allowed:
    return Allowed("true or false", lambda value: isinstance(value, bool))


def text(what: str, *, none: str | None = None) -> Allowed:
    """Any text that is not blank."""
    return Allowed(what, lambda value: is_text(value) and value != none and bool(value.strip()), none)


def text_or_empty() -> Allowed:
    return Allowed("text", is_text)


def absent_or(allowed: Allowed) -> Allowed:
    """For a key without a default: None where the file lacks it."""
    return replace(allowed, fits=lambda value: value is None or allowed.fits(value))


def shown(value: object) -> str:
    """A wrong value, as an error repeats it."""
    written = json.dumps(value, ensure_ascii=False, default=str)  # which is nearly TOML
    return written if len(written) <= SHOWN else f"{written[: SHOWN - 3]}..."


def is_text(value: object) -> bool:
    """Whether it is text that a file can hold, which names of files that are not UTF-8 are not."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)
