"""Tables of a catalogue or a list, read so that every complaint names the file, the line, the key and the way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from specchat.exit_codes import ExitCode
from specchat.toml_lines import Step, line_of


class CatalogueError(Exception):
    """The catalogue cannot be used; the message names file, line where there is one, key and the way out."""

    exit_code = ExitCode.USAGE

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        super().__init__(f"{path}: {problem}" if line is None else f"{path}, line {line}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line


class Table:
    """A table that knows its place, so that every complaint can name it; keys that it lacks are those of `under`."""

    def __init__(
        self,
        path: Path,
        place: str,
        values: object,
        toml: str = "",
        at: tuple[Step, ...] = (),
        under: Table | None = None,
    ) -> None:
        """`place` is for people; `toml` is the text that it is read from, if it is TOML, and stands `at` there."""
        self.path = path
        self.place = place
        self.toml = toml
        self.at = at
        self.under = under
        if not isinstance(values, dict):
            raise CatalogueError(path, f"{place.rstrip('. ')}: must be a table", line_of(toml, at))
        self.values: dict[str, object] = values

    def named(self, name: str, what: str = "model") -> Table:
        """The same table under the name of its model, or of what it is about."""
        return Table(self.path, f'{what} "{name}" ', self.values, self.toml, self.at, self.under)

    def over(self, under: Table) -> Table:
        """The same table, with another one for the keys that it lacks."""
        return Table(self.path, self.place, self.values, self.toml, self.at, under)

    def error(self, key: str, problem: str) -> CatalogueError:
        """A complaint about a key."""
        owner = self._owner(key)
        return CatalogueError(owner.path, f"{self.place}{key}: {problem}", line_of(owner.toml, (*owner.at, key)))

    def check_known(self, known: str) -> None:
        """Raises CatalogueError for a key that is none of these words."""
        for key in self.values:
            if key not in known.split():
                raise self.error(key, f"unknown key{suggestion(key, known.split())}")

    def has(self, key: str) -> bool:
        """Whether something stands under a key."""
        return key in self._owner(key).values

    def value(self, key: str) -> object:
        """What stands under a key. Raises CatalogueError where nothing does, as all below."""
        if not self.has(key):
            raise self.error(key, "is missing")
        return self._owner(key).values[key]

    def text(self, key: str, *, form: re.Pattern[str] | None = None, want: str = "") -> str:
        """A text; of this form, which `want` puts into words."""
        return self._checked(key, self.value(key), form, want)

    def texts(self, key: str, *, form: re.Pattern[str] | None = None, want: str = "") -> tuple[str, ...]:
        """A list of at least one such text."""
        value = self.value(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be a list of at least one text, not {value!r}")
        return tuple(self._checked(key, item, form, want) for item in value)

    def one_of(self, key: str, words: Iterable[str]) -> str:
        """One of these words."""
        value, known = self.text(key), tuple(words)
        if value not in known:
            raise self.error(key, f"must be {' or '.join(known)}, not {value!r}")
        return value

    def count(self, key: str, *, least: int = 1) -> int:
        """A whole number above zero, or from `least` on."""
        value = self.value(key)
        if type(value) is not int or value < least:  # a TOML true is a Python int
            wanted = "above zero" if least == 1 else f"of {least} or more"
            raise self.error(key, f"must be a whole number {wanted}, not {value!r}")
        return value

    def counts(self, key: str) -> tuple[int, ...]:
        """A list of at least one whole number above zero."""
        value = self.value(key)
        if not isinstance(value, list) or not value or any(type(each) is not int or each <= 0 for each in value):
            raise self.error(key, f"must be a list of whole numbers above zero, not {value!r}")
        return tuple(value)

    def number(self, key: str, *, most: float) -> float:
        """A number from 0 to `most`."""
        value = self.value(key)
        if type(value) not in (int, float) or not 0 <= float(str(value)) <= most:
            raise self.error(key, f"must be a number from 0 to {most:g}, not {value!r}")
        return float(str(value))

    def table(self, key: str) -> Table:
        """A table inside this one."""
        value, owner = self.value(key), self._owner(key)
        return Table(owner.path, f"{self.place}{key}.", value, owner.toml, (*owner.at, key))

    def tables(self, key: str) -> list[Table]:
        """A list of at least one table."""
        value, owner = self.value(key), self._owner(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be one or more tables, [[{key}]]")
        return [
            Table(owner.path, f"{self.place}{key}[{number + 1}].", each, owner.toml, (*owner.at, key, number))
            for number, each in enumerate(value)
        ]

    def _owner(self, key: str) -> Table:
        """The table that has a key; where none has, the one that a person would add it to."""
        return self if key in self.values or self.under is None or not self.under.has(key) else self.under._owner(key)

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
