"""The options of `specchat paths`, `specchat completion` and `specchat manual`; importing this loads no engine."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")


def add_surface(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three commands that tell of the program itself."""
    paths = commands.add_parser("paths", help="where specchat keeps what")
    paths.add_argument("name", nargs="?", metavar="NAME", help="print only this place: one of the first column")
    paths.add_argument("--all", action="store_true", help="with sizes, and what may be deleted without loss")
    paths.add_argument("--json", action="store_true", help="as JSON")
    paths.set_defaults(call="specchat.paths:paths")
    completion = commands.add_parser("completion", help="print a script that completes commands, options and models")
    completion.add_argument("shell", choices=SHELLS, help="source its output, or put it where your shell looks")
    completion.set_defaults(call="specchat.completion:completion")
    manual = commands.add_parser("manual", help="print the man page: specchat manual | man -l -")
    manual.set_defaults(call="specchat.manual:manual")
