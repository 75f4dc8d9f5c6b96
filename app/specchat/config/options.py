"""The flags of `specchat config`; nothing else, because `specchat --help` reads it too."""

from __future__ import annotations

import argparse


def add_config(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command with all its actions; without one it shows."""
    showing = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    showing.add_argument("--origin", action="store_true", help="which flag, variable or file says so")
    showing.add_argument("--json", action="store_true", help="as JSON")
    config = commands.add_parser("config", parents=[showing], help="show, check and change the settings")
    config.set_defaults(call="specchat.config.command:show")
    actions = config.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("show", parents=[showing], help="every setting that holds in this folder")
    check = actions.add_parser("check", help="what is wrong with settings and variables; exit 1 when something is")
    check.set_defaults(call="specchat.config.command:check")
    path = actions.add_parser("path", help="where the settings file is, whether it is there or not")
    path.set_defaults(call="specchat.config.command:path")
    edit = actions.add_parser("edit", help="open the settings file in $VISUAL or $EDITOR; a new one has every key")
    edit.set_defaults(call="specchat.config.command:edit_file")
    get = actions.add_parser("get", help="print the value of a setting")
    get.add_argument("key", metavar="KEY", help="such as guess.mode")
    get.set_defaults(call="specchat.config.command:get")
    change = actions.add_parser("set", help="write a setting into the settings file; comments stay")
    change.add_argument("key", metavar="KEY", help="such as guess.mode")
    change.add_argument("value", metavar="VALUE", help="lists have commas between their items")
    change.set_defaults(call="specchat.config.command:change")
    trust = actions.add_parser("trust", help="let a project's .specchat.toml run commands and name files elsewhere")
    trust.add_argument("path", nargs="?", metavar="PATH", help="the file or its folder (the one that holds here)")
    trust.add_argument("--remove", action="store_true", help="trust it no longer")
    trust.set_defaults(call="specchat.config.trusting:trust")
