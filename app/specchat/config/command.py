"""`specchat config show, check, path, edit, get` and `set`."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace

from specchat.config.checking import file_problems, problems
from specchat.config.showing import as_json, lines, shown_settings, spelled
from specchat.console import printable, say
from specchat.editor import edit
from specchat.errors import UsageError
from specchat.exit_codes import ExitCode
from specchat.folders import settings_path
from specchat.settings.file import SettingsFile
from specchat.settings.keys import KEYS, Settings, flattened, kind_of, settings_from
from specchat.settings.layers import Source
from specchat.settings.project import read_project
from specchat.settings.reading import Chosen, project_path, read_settings, working_folder
from specchat.settings.text import SettingsText, place_named


def show(args: Namespace) -> int:
    """Print every setting that holds in this folder. Raises UsageError, also for a file that is wrong."""
    chosen = _chosen()
    found = shown_settings(chosen, _files(chosen))
    if getattr(args, "json", False):
        print(json.dumps(as_json(found, chosen), indent=1))
    else:
        print("\n".join(map(_clean, lines(found, with_origin=getattr(args, "origin", False)))))
    return ExitCode.DONE


def check(args: Namespace) -> int:
    """Print a line for each problem. Returns 1 when there is one."""
    found = problems()
    for line in found:
        print(_clean(line))
    if not found:
        say(f"nothing is wrong with {settings_path()}, the variables and this folder")
    return ExitCode.CHECK_FAILED if found else ExitCode.DONE


def path(args: Namespace) -> int:
    """Print where the settings file is."""
    print(_clean(str(settings_path())))
    return ExitCode.DONE


def edit_file(args: Namespace) -> int:
    """Open the settings file in the user's editor, and check what was made of it. Raises SettingsError, NoEditor."""
    file = SettingsFile(settings_path())
    if not os.path.lexists(file.path):
        file.save(Settings())  # which writes every key with its default, commented out
    edit(file.path)
    found = file_problems(file)
    for line in found:
        say(line)
    return ExitCode.CHECK_FAILED if found else ExitCode.DONE


def get(args: Namespace) -> int:
    """Print the value of a setting, text without quotation marks. Raises UsageError."""
    place = place_named(args.key)
    value = spelled(place, flattened(_chosen().settings).get(place))
    print(_clean(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return ExitCode.DONE


def change(args: Namespace) -> int:
    """Write a setting into the user's file. Raises UsageError, also for a file that is wrong."""
    place = place_named(args.key)
    try:
        value = KEYS[kind_of(place)].metadata["allowed"].read_word(args.value)
    except ValueError as error:
        raise UsageError(f"{args.key} {error}") from None
    file = SettingsFile(settings_path())
    values = {**flattened(file.load()), place: value}
    file.save(settings_from({at: each for at, each in values.items() if at[0] != "targets" or each is not None}))
    origin = _chosen().resolved.origin(place)
    if origin.source.is_over_user_file:
        say(f"note: {origin.where} decides {args.key} here")
    return ExitCode.DONE


def _chosen() -> Chosen:
    """The settings that hold here; what is ignored is told. Raises UsageError, also for a file that is wrong."""
    chosen = read_settings({}, os.environ, working_folder())
    if chosen.problem is not None:
        raise chosen.problem
    for notice in chosen.notices:
        say(f"note: {notice}")
    return chosen


def _files(chosen: Chosen) -> dict[Source, SettingsText]:
    """The texts that decide settings."""
    sources = {origin.source for origin in chosen.resolved.origins.values()}
    files = {}
    contents = chosen.file.contents() if Source.USER in sources else None
    if contents is not None:
        files[Source.USER] = contents
    if Source.PROJECT in sources and (named := project_path(working_folder())) is not None:
        files[Source.PROJECT] = read_project(named).contents
    return files


def _clean(text: str) -> str:
    return printable(text) if sys.stdout.isatty() else text
