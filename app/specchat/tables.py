"""Tables of a settings or catalogue file, read so that every complaint names the file, the key and the way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path


class CatalogueError(Exception):
    """The catalogue cannot be used; the message names the file, the key and the way out."""

    exit_code = 2

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class Table:
    """A TOML table that knows its place, so that every complaint can name the file and the key."""

    def __init__(self, path: Path, place: str, values: object) -> None:
        self.path = path
        self.place = place
        if not isinstance(values, dict):
            raise CatalogueError(path, f"{place.rstrip('. ')}: must be a table")
        self.values: dict[str, object] = values

    def named(self, model_id: str) -> Table:
        """The same table under the name of its model."""
        return Table(self.path, f'model "{model_id}" ', self.values)

    def error(self, key: str, problem: str) -> CatalogueError:
        """A complaint about a key."""
        return CatalogueError(self.path, f"{self.place}{key}: {problem}")

    def check_known(self, known: str) -> None:
        """Raises CatalogueError for a key that is none of these words."""
        for key in self.values:
            if key not in known.split():
                raise self.error(key, f"unknown key{suggestion(key, known.split())}")

    def value(self, key: str) -> object:
        """What stands under a key. Raises CatalogueError where nothing does, as all below."""
        if key not in self.values:
            raise self.error(key, "is missing")
        return self.values[key]

    def text(self, key: str, *, form: re.Pattern[str] | None = None, want: str = "") -> str:
        """A text; of this form, which `want` puts into words."""
        return self._checked(key, self.value(key), form, want)

    def texts(self, key: str, *, form: re.Pattern[str] | None = None, want: str = "") -> tuple[str, ...]:
        """A list of at least one such text."""
        value = self.value(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be a list of at least one text, not {value!r}")
        return tuple(self._checked(key, item, form, want) for item in value)

    def count(self, key: str) -> int:
        """A whole number above zero."""
        value = self.value(key)
        if type(value) is not int or value <= 0:  # a TOML true is a Python int
            raise self.error(key, f"must be a whole number above zero, not {value!r}")
        return value

    def table(self, key: str) -> Table:
        """A table inside this one."""
        return Table(self.path, f"{self.place}{key}.", self.value(key))

    def tables(self, key: str) -> list[Table]:
        """A list of at least one table."""
        value = self.value(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be one or more tables, [[{key}]]")
        places = [f"{self.place}{key}[{number}]." for number in range(1, len(value) + 1)]
        return [Table(self.path, place, item) for place, item in zip(places, value, strict=True)]

    def _checked(self, key: str, value: object, form: re.Pattern[str] | None, want: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"must be a text, not {value!r}")
        if form is not None and not form.fullmatch(value):
            raise self.error(key, f"{value!r} must be {want}")
        return value


def suggestion(word: str, known: Iterable[str]) -> str:
    """How a complaint about an unknown word ends, where a known one is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
