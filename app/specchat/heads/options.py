"""The actions of `specchat heads` and their options; importing this loads no engine."""

from __future__ import annotations

import argparse

POSITIONS = 150_000


def add_heads(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of the program."""
    heads = commands.add_parser("heads", help="train guessers that sit on a model's own states")
    actions = heads.add_subparsers(dest="action", metavar="ACTION", required=True)
    train = actions.add_parser("train", help="train one from text that the model writes itself; can be interrupted")
    train.add_argument("name", metavar="MODEL", help="a model of the catalogue, or the path of a .gguf file")
    train.add_argument("--kind", choices=["eagle", "medusa"], default="eagle", help="how it guesses (eagle)")
    train.add_argument(
        "--positions", type=int, metavar="N", default=POSITIONS, help=f"tokens of text to learn from ({POSITIONS})"
    )
    train.add_argument("--epochs", type=int, metavar="N", default=3, help="how often it sees them (3)")
    train.add_argument("--from-chats", action="store_true", help="from replies of the model in your kept chats instead")
    train.add_argument("--resume", action="store_true", help="go on from what was collected and learned before")
    train.add_argument("--seed", type=int, metavar="N", default=0, help="the same seed learns the same (0)")
    train.add_argument("-t", "--threads", type=int, metavar="N", help="threads (one a fast core)")
    train.add_argument("-y", "--yes", action="store_true", help="fetch a missing model without asking")
    train.set_defaults(call="specchat.heads.command:train")
    listing = actions.add_parser("list", help="which heads are here, and how good they are")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(call="specchat.heads.command:list_heads")
    remove = actions.add_parser("rm", help="delete the heads of a model, and the text that was collected for them")
    remove.add_argument("names", nargs="+", metavar="MODEL", help="as `specchat heads list` has it")
    remove.add_argument("--texts", action="store_true", help="delete that text alone, and keep the heads")
    remove.set_defaults(call="specchat.heads.command:remove_heads")
