"""The flags of `specchat rewrite` and `specchat undo`; nothing else, because `specchat --help` reads it too."""

from __future__ import annotations

import argparse

_USAGE = """\
%(prog)s FILE... "INSTRUCTION" [options]
       %(prog)s FILE... -r RECIPE [-p NAME=VALUE]... ["MORE"] [options]
       %(prog)s FILE... --continue [options]"""


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], models: argparse.ArgumentParser
) -> None:
    """Add both; `models` has the flags of models and guessing."""
    rewrite = commands.add_parser(
        "rewrite",
        parents=[models],
        help="write files again as an instruction says; nothing else in them moves by a byte",
        usage=_USAGE,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=34),
    )
    rewrite.add_argument(
        "words", nargs="*", metavar="FILE... INSTRUCTION", help="files or folders, or -; then what to do"
    )
    _add_modes(rewrite)
    asked = rewrite.add_argument_group("what is asked")
    asked.add_argument("-r", "--recipe", metavar="NAME", help="an instruction with a name")
    asked.add_argument(
        "-p",
        dest="values",
        action="append",
        metavar="NAME=VALUE",
        default=[],
        help="a variable of it; repeatable",
    )
    asked.add_argument("--recipes", action="store_true", help="list the recipes and their variables")
    asked.add_argument("--continue", dest="goes_on", action="store_true", help="go on where a rewrite was cut off")
    asked.add_argument(
        "--chunk", choices=["auto", "never"], default="auto", help="cut files longer than the context (auto)"
    )
    _add_files(rewrite)
    rails = rewrite.add_argument_group("guard rails")
    rails.add_argument("--max-change", type=float, metavar="PCT", help="refuse when more lines change, percent")
    rails.add_argument("--keep", metavar="LIST", default="", help="leave be: numbers,urls,quotes,headings")
    rails.add_argument("--protect", action="append", metavar="RE", default=[], help="leave this be; repeatable")
    rails.add_argument("--strict", action="store_true", help="refuse doubtful changes, in every mode")
    rails.add_argument("--force", action="store_true", help="accept all that may be accepted")
    written = rewrite.add_argument_group("when a file is written")
    written.add_argument("--eol", choices=["keep", "lf", "crlf"], default="keep", help="line ends (keep)")
    written.add_argument(
        "--final-newline", choices=["keep", "yes", "no"], default="keep", help="end of the last line (keep)"
    )
    written.add_argument("--backup-suffix", metavar="SUFFIX", help="a copy of the old file beside it: .orig")
    written.add_argument("--no-backup", action="store_true", help="keep nothing for `specchat undo`")
    written.add_argument("--after", metavar="CMD", help='run it without a shell: "ruff check {}"')
    written.add_argument("--after-fail", choices=["ask", "keep", "undo"], help="when that fails (ask, where it can)")
    shown = rewrite.add_argument_group("output")
    shown.add_argument("--format", choices=["unified", "side", "json"], help="how changes are shown (unified)")
    shown.add_argument("--json", action="store_true", help="a line of JSON a file, then a summary")
    rewrite.set_defaults(call="specchat.rewrite.command:rewrite")

    undo = commands.add_parser("undo", help="take back what rewrite wrote")
    undo.add_argument("wanted", nargs="?", metavar="ID|FILE", help="which write, or the last one of a file (the last)")
    undo.add_argument("--list", action="store_true", help="what can be taken back")
    undo.set_defaults(call="specchat.rewrite.taking_back:undo")


def _add_modes(rewrite: argparse.ArgumentParser) -> None:
    title = "what to do with it; without one: ask about each change"
    mode = rewrite.add_argument_group(title).add_mutually_exclusive_group()
    for flags, name, help_text in (
        (("-w", "--write"), "write", "write it, unless something looks wrong"),
        (("-D", "--diff"), "diff", "print a patch; write nothing"),
        (("-O", "--stdout"), "stdout", "print the whole result; write nothing"),
        (("--check",), "check", "only say whether something would change"),
        (("-n", "--dry-run"), "dry-run", "files, tokens, seconds; nothing is written"),
    ):
        mode.add_argument(*flags, dest="mode", action="store_const", const=name, help=help_text)
    rewrite.set_defaults(mode=None)


def _add_files(rewrite: argparse.ArgumentParser) -> None:
    files = rewrite.add_argument_group("files")
    parts = files.add_mutually_exclusive_group()
    parts.add_argument("--lines", metavar="A:B", help="only these lines may change, like 40:120")
    parts.add_argument("--between", nargs=2, metavar="RE", help="only lines between two that match")
    parts.add_argument("--match", metavar="RE", help="only paragraphs with a line that matches")
    files.add_argument("--files-from", metavar="FILE", help="names of files, from FILE or piped in (-)")
    files.add_argument("--null", action="store_true", help="NUL characters between those names")
    files.add_argument(
        "--exclude", action="append", metavar="GLOB", default=[], help="leave out files or folders; repeatable"
    )
    files.add_argument("--no-ignore", action="store_true", help="take what git ignores, too")
    files.add_argument("--encoding", metavar="NAME", help="how the files spell text (found out)")


def take_words(args: argparse.Namespace, rest: list[str]) -> list[str]:
    """Add words that stand behind options, which argparse leaves over, to a command that takes words.

    What is left over still.
    """
    words = getattr(args, "words", None)
    if words is None:
        return rest
    words += [word for word in rest if word == "-" or not word.startswith("-")]
    return [word for word in rest if word != "-" and word.startswith("-")]
