"""The flags of `specchat stats` and `specchat tune`; nothing else, because `specchat --help` reads it too."""

from __future__ import annotations

import argparse


def add_statistics(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both commands."""
    days = "only replies of the last N days"
    stats = commands.add_parser("stats", help="what guessing was worth in the chats kept here, and what to choose")
    stats.add_argument("--days", type=int, metavar="N", help=days)
    stats.add_argument("-m", "--model", metavar="NAME", help="only replies of this model, named as in the table")
    stats.add_argument("--temperature", action="store_true", help="only what each temperature costs")
    stats.add_argument("--json", action="store_true", help="as JSON")
    stats.set_defaults(call="specchat.statistics.command:stats", days=None)
    tune = commands.add_parser("tune", help="try settings of the lookups on the chats kept here; loads no model")
    tune.add_argument("--days", type=int, metavar="N", help=days)
    tune.add_argument("--json", action="store_true", help="as JSON")
    tune.add_argument("--write", action="store_true", help="put what is better into the settings")
    tune.set_defaults(call="specchat.statistics.tune_command:tune", days=None)
