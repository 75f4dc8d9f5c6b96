"""What a setting may be: the values of one key, checked where a settings object is made. No keys, no files."""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")

LARGEST = sys.float_info.max
SHOWN = 60  # characters of a wrong value that an error repeats
_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class InProject(StrEnum):
    """Whether the file of a project may set a key: what others wrote must not lead out of its folder."""

    YES = "yes"
    TRUSTED = "when the file is trusted"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a key may have."""

    text: str  # for people, after "it must be"
    fits: Callable[[Any], bool]
    none: str | None = None  # the word that means None in the file; without one None is not allowed
    convert: Callable[[str], Any] = str  # a value that is written without TOML around it; may raise ValueError

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

    def read_word(self, raw: str) -> object:
        """The setting that a variable or a word of a command line means. Raises ValueError as `check` does."""
        if raw == self.none:
            return None
        try:
            value = self.convert(raw)
        except ValueError:
            value = raw  # which does not fit, and the error shows it
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


def key(default: T, allowed: Allowed, explained: str, project: InProject = InProject.NO) -> T:
    """A field of a `Checked` dataclass; `explained` is what the settings file says beside it."""
    return field(default=default, metadata={"allowed": allowed, "explained": explained, "project": project})


def one_of(names: tuple[str, ...]) -> Allowed:
    return Allowed(f"{', '.join(names[:-1])} or {names[-1]}", lambda value: isinstance(value, str) and value in names)


def some_of(names: tuple[str, ...]) -> Allowed:
    def fits(value: object) -> bool:
        return isinstance(value, tuple) and all(v in names for v in value) and len(set(value)) == len(value)

    return Allowed(f"a list of {', '.join(names)}, each at most once", fits, convert=_items)


def texts() -> Allowed:
    """Any number of texts, none of them empty."""

    def fits(value: object) -> bool:
        return isinstance(value, tuple) and all(is_text(each) and each for each in value)

    return Allowed("a list of texts, none of them empty", fits, convert=_items)


def whole(least: int, most: float = math.inf, *, none: str | None = None) -> Allowed:
    span = f"a whole number, {least} or more" if most == math.inf else f"a whole number from {least} to {most}"
    text = f'"{none}" or {span}' if none else span
    # Of another type, because True is an int too.
    return Allowed(text, lambda value: type(value) is int and least <= value <= most, none, int)


def number(text: str, fits: Callable[[float], bool]) -> Allowed:
    def is_one(value: object) -> bool:
        # Finite, and no whole number beyond the largest float, which arithmetic would choke on.
        return isinstance(value, int | float) and type(value) is not bool and abs(value) <= LARGEST and fits(value)

    return Allowed(text, is_one, convert=float)


def switch() -> Allowed:
    return Allowed("true or false", lambda value: isinstance(value, bool), convert=_switched)


def text(what: str, *, none: str | None = None) -> Allowed:
    """Any text that is not blank."""
    return Allowed(what, lambda value: is_text(value) and value != none and bool(value.strip()), none)


def text_or_empty() -> Allowed:
    return Allowed("text", is_text)


def absent_or(allowed: Allowed) -> Allowed:
    """For a key without a default: None where the file lacks it."""
    return replace(allowed, fits=lambda value: value is None or allowed.fits(value))


def _switched(raw: str) -> object:
    return _SWITCHES.get(raw.strip().lower(), raw)


def _items(raw: str) -> tuple[object, ...]:
    """A list as TOML has it, or words with commas between them."""
    if raw.lstrip().startswith("["):
        return tuple(tomllib.loads(f"items = {raw}")["items"])
    return tuple(filter(None, (item.strip() for item in raw.split(","))))


def shown(value: object) -> str:
    """A wrong value, as an error repeats it."""
    written = json.dumps(value, ensure_ascii=False, default=str)  # which is nearly TOML
    return written if len(written) <= SHOWN else f"{written[: SHOWN - 3]}..."


def is_text(value: object) -> bool:
    """Whether it is text that a file can hold, which names of files that are not UTF-8 are not."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)
