"""The text of a settings file: what it says, where, and how to change that and nothing else. No disk."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchat.errors import UsageError
from specchat.settings.allowed import shown
from specchat.settings.keys import ANY, KEYS, OTHER_TABLES, SECTIONS, Place, Settings, kind_of, settings_from
from specchat.toml_lines import line_of

TABLES = frozenset(place[:depth] for place in KEYS for depth in range(1, len(place)))
INTRODUCTION = """\
# Settings of specchat. To change one, take away the "# " in front of it.
# When specchat writes here, it keeps your comments, your order and keys that it does not know.
# It adds a table [targets."NAME"] for each model for which you chose a guesser or a draft.
"""


class SettingsError(UsageError):
    """The settings file cannot be used; the text names file, line and key and says what would be right."""

    def __init__(self, path: Path, key: str, problem: str, line: int | None = None) -> None:
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {key} {problem}" if key else f"{where}: {problem}")
        self.path = path
        self.key = key  # empty where it is not about one
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class SettingsText:
    """A text that holds settings, and which."""

    path: Path  # named in errors
    text: str
    known: Mapping[Place, Any]  # the settings that it has
    unknown: Mapping[Place, Any]  # other keys, as TOML has them
    wrong: tuple[SettingsError, ...] = ()  # of the keys whose values are not allowed

    @classmethod
    def read(cls, path: Path, text: str) -> SettingsText:
        """Raises SettingsError for what is not TOML and for the first wrong value."""
        found = cls.examine(path, text)
        for error in found.wrong:
            raise error
        return found

    @classmethod
    def examine(cls, path: Path, text: str) -> SettingsText:
        """What a text says, wrong values apart. Raises SettingsError for what is not TOML."""
        try:
            values = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
            at = re.search(r"at line (\d+)", str(error))
            raise SettingsError(path, "", f"not valid TOML: {error}", int(at[1]) if at else None) from error
        known: dict[Place, Any] = {}
        unknown: dict[Place, Any] = {}
        wrong: list[SettingsError] = []
        for place, value in _leaves(values):
            described = KEYS.get(kind_of(place))
            try:
                if described is not None:
                    known[place] = described.metadata["allowed"].read(value)
                elif kind_of(place) in TABLES:
                    raise ValueError(f"is {shown(value)}; it must be a table, [{dotted(place)}]")
                else:
                    unknown[place] = value
            except ValueError as error:
                wrong.append(SettingsError(path, dotted(place), str(error), line_of(text, place)))
        return cls(path, text, known, unknown, tuple(wrong))

    @property
    def settings(self) -> Settings:
        return settings_from(self.known)

    def warnings(self) -> dict[Place, str]:
        """A line for each key that is ignored."""
        return {
            place: f"{self.where(place)}: {dotted(place)} is not a setting and is ignored{suggestion(place)}"
            for place in self.unknown
            if place not in OTHER_TABLES
        }

    def where(self, place: Place) -> str:
        """The file and the line that say something, for people."""
        return f"{self.path}, line {line_of(self.text, place)}"

    def edited(self, edits: Mapping[Place, Any], removed: Collection[Place]) -> SettingsText:
        """The text with settings changed and removed, and nothing else. Raises SettingsError."""
        import tomlkit  # 30 ms that only a change needs

        wanted = {place: value for place, value in {**self.known, **edits}.items() if place not in removed}
        try:
            newline = "\r\n" if "\r\n" in self.text else "\n"
            document: Any = tomlkit.parse(self._uncommented(edits).text.replace("\r\n", "\n"))
            for place, value in edits.items():
                spelled = _spelled(place, value)
                # Not with a carriage return, which readers of TOML may drop there.
                long = isinstance(spelled, str) and "\n" in spelled and "\r" not in spelled
                _table(document, place)[place[-1]] = tomlkit.string(spelled, multiline=True) if long else spelled
            for place in removed:
                del _table(document, place)[place[-1]]
            changed = SettingsText.read(self.path, tomlkit.dumps(document).replace("\n", newline))
            right = changed._differs_only(self, wanted)
        except Exception:  # whatever tomlkit stumbles over, the file stays as it is
            right = False
        if not right:
            names = ", ".join(dotted(place) for place in (*edits, *removed))
            raise SettingsError(self.path, names, "cannot be saved without harm to the rest; change it by hand")
        return changed

    def _uncommented(self, places: Collection[Place]) -> SettingsText:
        """The text with the commented default of each place made live where there is one, so that it changes there."""
        present = self
        for place in places:
            wanted = {**present.known, place: KEYS[kind_of(place)].default}
            for mark in re.finditer(rf"^# ?(?={re.escape(place[-1])} *=)", present.text, re.MULTILINE):
                live = present.text[: mark.start()] + present.text[mark.end() :]
                try:
                    candidate = SettingsText.read(self.path, live)
                except SettingsError:
                    continue
                if candidate._differs_only(present, wanted):
                    present = candidate
                    break
        return present

    def _differs_only(self, other: SettingsText, known: Mapping[Place, Any]) -> bool:
        """Whether it has just these settings, and what is unknown is as in another."""
        # As text, because a nan differs from itself.
        return self.known == known and str(self.unknown) == str(other.unknown)


def template() -> str:
    """A file that changes nothing: every key commented out, with its default and what it means."""
    blocks = [INTRODUCTION]
    for section in ((), *((name,) for name in SECTIONS)):
        own = [place for place in KEYS if place[:-1] == section]
        keys = [f"# {place[-1]} = {json.dumps(_spelled(place, KEYS[place].default))}" for place in own]
        width = max(map(len, keys))
        explained = [KEYS[place].metadata["explained"] for place in own]
        lines = [f"{each:{width}}  # {meaning}\n" for each, meaning in zip(keys, explained, strict=True)]
        blocks.append("".join([*(f"[{name}]\n" for name in section), *lines]))
    return "\n".join(blocks)


def place_named(key: str) -> Place:
    """The place of a setting that exists, from its key as `dotted` writes it. Raises UsageError."""
    place: Place = ()
    try:
        inner: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        inner = {key: 0}
    while isinstance(inner, dict) and len(inner) == 1:
        name, inner = next(iter(inner.items()))
        place = (*place, name)
    place = place or (key,)
    if inner == 0 and kind_of(place) in TABLES:
        first = next(each for each in KEYS if each[: len(place)] == kind_of(place))
        raise UsageError(f"{shown(key)} is not a setting but a table; name a setting in it, such as {dotted(first)}")
    if inner != 0 or kind_of(place) not in KEYS or ANY in place:
        raise UsageError(f"{shown(key)} is not a setting{suggestion(place)}; specchat config show lists them")
    return place


def suggestion(place: Place) -> str:
    """The end of a sentence that asks whether another setting was meant; "" where none is like it."""
    meant = _meant(place)
    return f"; did you mean {meant}?" if meant else ""


def dotted(place: Place) -> str:
    """A key as TOML writes it: targets."a model".draft."""
    return ".".join(
        name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False) for name in place
    )


def _leaves(values: Mapping[str, Any], above: Place = ()) -> Iterator[tuple[Place, Any]]:
    for name, value in values.items():
        place = (*above, name)
        if isinstance(value, dict) and kind_of(place) in TABLES:
            yield from _leaves(value, place)
        else:
            yield place, value


def _spelled(place: Place, value: object) -> Any:
    return KEYS[kind_of(place)].metadata["allowed"].spell(value)


def _table(document: Any, place: Place) -> Any:
    """The table of a key, made where it is missing."""
    import tomlkit

    table = document
    for name in place[:-1]:
        table = table.setdefault(name, tomlkit.table())
    return table


def _meant(place: Place) -> str | None:
    """What an unknown name stands for: a setting of that name, else the most similar in its table, else anywhere."""
    everywhere = {each[-1]: each for each in (*TABLES, *KEYS) if ANY not in each}
    beside = {each[-1]: (*place[:-1], each[-1]) for each in (*TABLES, *KEYS) if each[:-1] == kind_of(place)[:-1]}
    if place[-1] in everywhere:
        return dotted(everywhere[place[-1]])
    for known in (beside, everywhere):
        if close := difflib.get_close_matches(place[-1], known, 1):
            return dotted(known[close[0]])
    return None
