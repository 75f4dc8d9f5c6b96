"""Which commands take which settings, and how they get them: a flag that was not given has the value of its setting."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from specchat.settings.flags import put_into
from specchat.settings.keys import Place
from specchat.settings.reading import read_settings

Takes = Callable[[Place], bool]


def _all(_: Place) -> bool:
    return True


def _loading(place: Place) -> bool:
    """What models are loaded and guessed with: how replies are written is said by the task, or measured."""
    return place[0] in ("model", "guess", "context") or place == ("sampling", "rule")


def _rewriting(place: Place) -> bool:
    return _loading(place) or place[0] in ("targets", "rewrite")


COMMANDS: Mapping[str, Takes] = {  # by what they call
    "specchat.tui.command:run": _all,
    "specchat.plain:chat": _all,
    "specchat.ask:ask": _all,
    "specchat.rewrite.command:rewrite": _rewriting,
    "specchat.bench.command:main": _loading,
}


def take_settings(args: Namespace, environ: Mapping[str, str], folder: Path) -> None:
    """Put what holds into the arguments of a command that takes settings, and all of it as `chosen`.

    Raises UsageError for wrong flags and variables; a wrong file is told in `chosen`.
    """
    if (takes := COMMANDS.get(args.call)) is not None:
        args.chosen = read_settings(args.given, environ, folder, takes)
        put_into(args, args.chosen.settings)
