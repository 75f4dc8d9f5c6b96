"""Which flag of the command line stands for which setting."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from specchat.errors import UsageError
from specchat.settings.keys import KEYS, Place, Settings, flattened
from specchat.settings.layers import Layer, Source

FLAGS: Mapping[str, Place] = {  # by its name among the arguments
    "model": ("model",),
    "system": ("system",),
    "draft": ("guess", "draft"),
    "guess": ("guess", "mode"),
    "guess_max": ("guess", "length"),
    "rule": ("sampling", "rule"),
    "temp": ("sampling", "temperature"),
    "top_k": ("sampling", "top_k"),
    "top_p": ("sampling", "top_p"),
    "min_p": ("sampling", "min_p"),
    "repeat_penalty": ("sampling", "repeat_penalty"),
    "repeat_last_n": ("sampling", "repeat_last_n"),
    "seed": ("sampling", "seed"),
    "max_tokens": ("sampling", "max_tokens"),
    "stop": ("sampling", "stop"),
    "ctx": ("context", "size"),
    "threads": ("context", "threads"),
    "cache_type": ("context", "cache_type"),
    "on_full": ("context", "policy"),
    "plain": ("view", "line_mode"),
    "after": ("rewrite", "after"),
    "after_fail": ("rewrite", "after_fail"),
    "backup_suffix": ("rewrite", "backup_suffix"),
}


def flag_layer(given: Mapping[str, Any]) -> Layer:
    """The settings that flags give; a flag that is None was not given. Raises UsageError that names the wrong one."""
    values, names = {}, {}
    for name, place in FLAGS.items():
        if given.get(name) is None:
            continue
        names[place] = f"--{name.replace('_', '-')}"
        allowed = KEYS[place].metadata["allowed"]
        try:
            values[place] = allowed.read(given[name])
        except ValueError as error:
            raise UsageError(f"{names[place]} {error}") from None
    return Layer(Source.FLAG, values, names)


def put_into(args: Namespace, settings: Settings) -> None:
    """Give every flag the value of its setting."""
    values = flattened(settings)
    for name, place in FLAGS.items():
        setattr(args, name, values[place])
