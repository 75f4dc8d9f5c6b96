"""`specchat config trust`: a project's file may then do what its settings ask for, as long as it stays as it is."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from specchat.console import say
from specchat.errors import InputRefused
from specchat.exit_codes import ExitCode
from specchat.settings.project import NAME, read_project, wants_trust
from specchat.settings.reading import project_path, trust_in, working_folder


def trust(args: Namespace) -> int:
    """Trust a file, or do so no longer. Raises InputRefused, SettingsError, NotKept."""
    named = _named(args.path)
    if args.remove:
        was = trust_in(os.environ).remove(named)
        say(f"{named} is trusted no longer" if was else f"{named} was not trusted")
        return ExitCode.DONE
    if not os.path.lexists(named):
        raise InputRefused(f"{named} is not there")
    project = read_project(named)
    trust_in(os.environ).add(project)
    say(f"{named} is trusted as it is now")
    for line in wants_trust(project):
        say(f"  {line}")
    return ExitCode.DONE


def _named(asked: str | None) -> Path:
    """The file that is meant. Raises InputRefused where there is none."""
    if asked is None:
        found = project_path(working_folder())
        if found is None:
            raise InputRefused(f"no {NAME} holds in this folder; name one: specchat config trust PATH")
        return found
    path = Path(os.path.abspath(os.path.expanduser(asked)))
    return path / NAME if path.is_dir() else path
