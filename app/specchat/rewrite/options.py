"""The flags of `specchat rewrite` and `specchat undo`; nothing else, because `specchat --help` reads it too."""

from __future__ import annotations

import argparse


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], models: argparse.ArgumentParser
) -> None:
    """Add both; `models` has the flags of models and guessing."""
    rewrite = commands.add_parser(
        "rewrite",
        parents=[models],
        help="write files again as an instruction says; nothing else in them moves by a byte",
        usage='%(prog)s FILE... "INSTRUCTION" [options]',
    )
    rewrite.add_argument("words", nargs="*", metavar="FILE... INSTRUCTION", help="files, or -, then what to do")
    mode = rewrite.add_argument_group(
        "what to do with it; without one: ask about each change"
    ).add_mutually_exclusive_group()
    for flags, name, help_text in (
        (("-w", "--write"), "write", "write all changes at once, unless something looks wrong"),
        (("-D", "--diff"), "diff", "print a patch; write nothing"),
        (("-O", "--stdout"), "stdout", "print the whole result; write nothing"),
        (("--check",), "check", "only say whether anything would change: exit 1 if so"),
        (("-n", "--dry-run"), "dry-run", "files, tokens and how long it will take; the model writes nothing"),
    ):
        mode.add_argument(*flags, dest="mode", action="store_const", const=name, help=help_text)
    rewrite.set_defaults(mode=None)
    files = rewrite.add_argument_group("files")
    files.add_argument("--lines", metavar="A:B", help="only these lines may change")
    files.add_argument(
        "--files-from", metavar="FILE", help="take names of files from FILE, or from - for what is piped in"
    )
    files.add_argument("--null", action="store_true", help="NUL characters between those names, not line ends")
    files.add_argument("--encoding", metavar="NAME", help="how the files spell text (found out)")
    rails = rewrite.add_argument_group("guard rails")
    rails.add_argument("--max-change", type=float, metavar="PCT", help="refuse when more lines change, in percent")
    rails.add_argument(
        "--keep", metavar="LIST", default="", help="refuse when these change: numbers,urls,quotes,headings"
    )
    rails.add_argument(
        "--protect", action="append", metavar="RE", default=[], help="refuse changes to this; repeatable"
    )
    rails.add_argument("--strict", action="store_true", help="refuse doubtful changes too, in every mode")
    rails.add_argument("--force", action="store_true", help="accept all that may be accepted")
    rewrite.add_argument("--no-backup", action="store_true", help="keep nothing to undo with")
    rewrite.add_argument("--after", metavar="CMD", help='run after writing a file, without a shell: "ruff check {}"')
    rewrite.add_argument("--json", action="store_true", help="a line of JSON for each file, then a summary")
    rewrite.set_defaults(call="specchat.rewrite.command:rewrite")

    undo = commands.add_parser("undo", help="take back what rewrite wrote")
    undo.add_argument("wanted", nargs="?", metavar="ID|FILE", help="which write, or the last one of a file (the last)")
    undo.add_argument("--list", action="store_true", help="what can be taken back")
    undo.set_defaults(call="specchat.rewrite.taking_back:undo")


def take_words(args: argparse.Namespace, rest: list[str]) -> list[str]:
    """Add words that stand behind options, which argparse leaves over, to a command that takes words.

    What is left over still.
    """
    words = getattr(args, "words", None)
    if words is None:
        return rest
    words += [word for word in rest if word == "-" or not word.startswith("-")]
    return [word for word in rest if word != "-" and word.startswith("-")]
