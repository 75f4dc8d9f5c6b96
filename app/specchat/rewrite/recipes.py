"""Requests with a name and with variables: those that come with the program, and the user's own ones.

A recipe says what the model is asked and which guard rails hold. It names no file and runs nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from specchat.attachments import label
from specchat.errors import UsageError, in_one_line
from specchat.folders import recipes_folder
from specchat.rewrite.checks import Kept, Rails, rails
from specchat.tables import CatalogueError, Table, suggestion

_BUILT_IN = Path(__file__).with_name("recipes.toml")
_MOST_BYTES = 1 << 16  # of a recipe of the user's own
_NONE: Mapping[str, str] = MappingProxyType({})

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]{0,31}")
_PLACE = re.compile(rf"\{{({_VARIABLE.pattern})\}}")  # other braces stand for themselves


@dataclass(frozen=True, slots=True)
class Variable:
    """Something that a recipe leaves open."""

    name: str
    default: str | None  # None: it must be given


@dataclass(frozen=True, slots=True)
class Recipe:
    """A request with a name."""

    name: str
    description: str
    instruction: str
    variables: tuple[Variable, ...] = ()  # in the order of their places in the instruction
    keep: frozenset[Kept] = frozenset()
    max_change: float | None = None  # percent

    def filled(self, values: Mapping[str, str] = _NONE) -> str:
        """The instruction with values in the places of variables. Raises UsageError for missing and unknown ones."""
        known = [variable.name for variable in self.variables]
        for name in values:
            if name not in known:
                has = f"; it has {', '.join(known)}" if known else "; it has none"
                raise UsageError(f"recipe {self.name} has no variable {label(name)}{suggestion(name, known) or has}")
        given = {variable.name: values.get(variable.name, variable.default) for variable in self.variables}
        if missing := [f"-p {name}=..." for name, value in given.items() if value is None]:
            raise UsageError(f"recipe {self.name} needs {' and '.join(missing)}")
        return _PLACE.sub(lambda place: given[place[1]] or "", self.instruction)

    def guard(self, own: Rails) -> Rails:
        """The user's guard rails and those of the recipe; of two limits the user's."""
        return own.beside(Rails(self.max_change, self.keep))


def load_recipes(
    report: Callable[[str], None] = lambda problem: None, folder: Path | None = None
) -> tuple[Recipe, ...]:
    """All recipes by name. A file that cannot be used is reported in one line and left out."""
    found = {recipe.name: recipe for recipe in _built_in()}
    for name, path in _own_files(folder).items():
        try:
            found[name] = _own(name, path)
        except CatalogueError as error:
            report(str(error))
    return tuple(found[name] for name in sorted(found))


def find_recipe(name: str, folder: Path | None = None) -> Recipe:
    """The recipe with a name. Raises UsageError where there is none, CatalogueError where its file cannot be used."""
    own = _own_files(folder)  # a name is looked for in a list, so that none is ever part of a path
    if name in own:
        return _own(name, own[name])
    known = {recipe.name: recipe for recipe in _built_in()}
    if name not in known:
        near = suggestion(name, [*known, *own]) or "; `specchat rewrite --recipes` lists them"
        raise UsageError(f"no recipe is named {label(name)}{near}")
    return known[name]


def values_of(words: Iterable[str]) -> dict[str, str]:
    """Values of variables that are given as NAME=VALUE. Raises UsageError."""
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name and value.strip()):
            raise UsageError(f"-p {label(word)}: it must be NAME=VALUE")
        values[name] = value
    return values


def _built_in() -> list[Recipe]:
    toml = _BUILT_IN.read_text("utf-8")
    return [
        _recipe(name, Table(_BUILT_IN, f"{name}.", values, toml, (name,)))
        for name, values in tomllib.loads(toml).items()
    ]


def _own_files(folder: Path | None) -> dict[str, Path]:
    try:
        paths = list((folder or recipes_folder()).iterdir())
    except OSError:
        return {}
    own = (path for path in paths if path.suffix == ".toml" and _NAME.fullmatch(path.stem))
    return {path.stem: path for path in own if path.is_file()}


def _own(name: str, path: Path) -> Recipe:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise CatalogueError(path, f"is longer than {_MOST_BYTES} bytes, which no recipe is")
        toml = data.decode("utf-8-sig")
        return _recipe(name, Table(path, "", tomllib.loads(toml), toml))
    except OSError as error:
        raise CatalogueError(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # not UTF-8, not TOML
        raise CatalogueError(path, in_one_line(error)) from error


def _recipe(name: str, table: Table) -> Recipe:
    table.check_known("description instruction variables keep max_change")
    instruction = table.text("instruction").strip()
    defaults = _defaults(table)
    places = list(dict.fromkeys(_PLACE.findall(instruction)))
    for variable in defaults:
        if variable not in places:
            raise table.error("variables", f"{{{variable}}} stands nowhere in the instruction")
    try:
        keep = rails(None, table.texts("keep") if table.has("keep") else ()).keep
    except UsageError as error:
        raise table.error("keep", str(error)) from error
    return Recipe(
        name=name,
        description=" ".join(table.text("description").split()) if table.has("description") else "",
        instruction=instruction,
        variables=tuple(Variable(place, defaults.get(place)) for place in places),
        keep=keep,
        max_change=table.number("max_change", most=100) if table.has("max_change") else None,
    )


def _defaults(table: Table) -> dict[str, str]:
    if not table.has("variables"):
        return {}
    variables = table.table("variables")
    return {name: variables.text(name) for name in variables.values}
