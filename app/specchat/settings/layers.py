"""Which of several sources decides each setting: a pure function from layers to values and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from specchat.settings.keys import Place, Settings, flattened, settings_from


class Source(StrEnum):
    """What can decide a setting, the strongest first."""

    FLAG = "flag"
    VARIABLE = "variable"
    PROJECT = "project"
    USER = "user"
    BUILT_IN = "built-in"

    @property
    def is_over_user_file(self) -> bool:
        """Whether it decides before what the user's file says."""
        return self in (Source.FLAG, Source.VARIABLE, Source.PROJECT)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the value of a setting comes from."""

    source: Source
    where: str = ""  # the flag, the variable or the file; "" for what is built in


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one source. Every value is an allowed one."""

    source: Source
    values: Mapping[Place, Any]
    names: Mapping[Place, str]  # of the flags, the variables or the file


@dataclass(frozen=True, slots=True)
class Resolved:
    """All settings, and what decided each."""

    settings: Settings = field(default_factory=Settings)
    origins: Mapping[Place, Origin] = field(default_factory=dict)  # of what is not built in

    def origin(self, place: Place) -> Origin:
        """What decided a setting."""
        return self.origins.get(place, Origin(Source.BUILT_IN))

    @property
    def decided(self) -> set[str]:
        """The keys that something decides before what the user's file says."""
        return {".".join(place) for place, origin in self.origins.items() if origin.source.is_over_user_file}


def resolved(layers: Sequence[Layer]) -> Resolved:
    """The settings that layers make, the strongest first; what none of them has is built in."""
    values: dict[Place, Any] = {}
    origins: dict[Place, Origin] = {}
    for layer in layers:
        for place, value in layer.values.items():
            if place not in values:
                values[place] = value
                origins[place] = Origin(layer.source, layer.names[place])
    return Resolved(settings_from({**flattened(Settings()), **values}), origins)


def only(layer: Layer, wanted: Callable[[Place], bool]) -> Layer:
    """A layer without the settings that nobody wants."""
    return Layer(layer.source, {place: value for place, value in layer.values.items() if wanted(place)}, layer.names)
