"""Every command and every option: help, completion and the man page are made from this parser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat import __version__
from specchat.bench.options import add_bench
from specchat.config.options import add_config
from specchat.doctor.options import add_doctor
from specchat.heads.options import add_heads
from specchat.history.options import add_chats
from specchat.models_options import add_models
from specchat.modes import MODES
from specchat.paths_options import add_surface
from specchat.rewrite.options import add_commands
from specchat.statistics.options import add_statistics

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def _or(word: str) -> Callable[[str], int | str]:
    """The type of a flag that takes a whole number, or the word by which settings say that there is none."""

    def read(text: str) -> int | str:
        try:
            return word if text == word else int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor {word}") from None

    return read


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Raises OSError for help that cannot be written, which argparse passes over."""
        if file is None or file is not sys.stdout:
            super()._print_message(message, file)
        else:
            print(message, end="", flush=True)


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    loading = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    model = loading.add_argument_group("models")
    model.add_argument("-m", "--model", metavar="NAME", help="a model of the catalogue, or the path of a .gguf file")
    model.add_argument("-d", "--draft", metavar="NAME", help="the model that guesses: NAME, a path, auto or none")
    model.add_argument("-c", "--ctx", type=_or("auto"), metavar="N", help="context in tokens (auto: 8192)")
    model.add_argument("-t", "--threads", type=_or("auto"), metavar="N", help="threads (auto: one a fast core)")
    model.add_argument(
        "--cache-type", choices=["f16", "q8_0"], help="numbers of the cache; q8_0 takes half the memory (f16)"
    )
    model.add_argument(
        "--endpoint", metavar="NAME|URL", help="a server instead: [endpoints.NAME] of your settings, or its address"
    )
    model.add_argument("-y", "--yes", action="store_true", help="fetch missing models without asking")
    guess = loading.add_argument_group("guessing; but for --rule typical it never changes the text")
    guess.add_argument("-g", "--guess", choices=MODES, help="who guesses (auto)")
    guess.add_argument(
        "--guess-max", type=_or("auto"), metavar="N", help="longest draft of a guesser chosen by hand (auto)"
    )
    guess.add_argument(
        "--rule",
        choices=["coupled", "rejection", "block", "typical"],
        help="how guesses are checked (coupled); with typical the text no longer follows the model exactly",
    )
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS, parents=[loading])
    text = shared.add_argument_group("the reply")
    text.add_argument("-s", "--system", metavar="TEXT", help="system prompt")
    text.add_argument("--temp", type=float, metavar="T", help="temperature; 0 takes the best token (0.7)")
    text.add_argument("--top-k", type=int, metavar="K", help="keep the K best tokens; 0 keeps all (40)")
    text.add_argument("--top-p", type=float, metavar="P", help="keep the best tokens up to this mass (0.95)")
    text.add_argument("--min-p", type=float, metavar="P", help="keep tokens of this share of the best (0.05)")
    text.add_argument("--repeat-penalty", type=float, metavar="R", help="make recent tokens less likely; 1 is off (1)")
    text.add_argument("--repeat-last-n", type=int, metavar="N", help="how many tokens are recent; -1 all (64)")
    text.add_argument(
        "--seed",
        type=_or("random"),
        metavar="N",
        help="the same seed writes the same text (random: a new one each time)",
    )
    text.add_argument(
        "--max-tokens", type=_or("none"), metavar="N", help="end the reply after N tokens (none: no limit)"
    )
    text.add_argument("--stop", action="append", metavar="TEXT", help="end the reply before TEXT; repeatable")

    main_parser: argparse.ArgumentParser = _Parser(
        prog="specchat",
        parents=[shared],
        allow_abbrev=False,  # or an option of a command is taken for the beginning of one of these
        description="A private chat for the terminal that guesses ahead and never changes the answer.",
        epilog="Without a command: chat. `specchat COMMAND --help` says more.",
    )
    main_parser.add_argument("--version", action="version", version=f"specchat {__version__}")
    main_parser.add_argument(
        "--plain", action="store_true", default=argparse.SUPPRESS, help="chat in line mode, without a full screen"
    )
    main_parser.add_argument(
        "--resume", nargs="?", const="last", metavar="ID", help="go on with a kept chat: its number, title, or last"
    )
    main_parser.add_argument("--private", action="store_true", help="keep nothing of what is said")
    on_full = "when the chat outgrows the context: ask, drop the oldest turns, or stop (ask; stop without a terminal)"
    main_parser.add_argument("--on-full", choices=["ask", "drop", "stop"], default=argparse.SUPPRESS, help=on_full)
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND")

    ask = commands.add_parser("ask", parents=[shared], help="one answer on stdout")
    ask.add_argument("prompt", nargs="?", help="the question; without one, what is piped in")
    ask.add_argument("-f", "--file", action="append", metavar="FILE", default=[], help="attach a text file; repeatable")
    ask.add_argument("--json", action="store_true", help="one JSON object with text and figures")
    ask.add_argument("-q", "--quiet", action="store_true", help="no line of figures on stderr")
    ask.add_argument("--private", action="store_true", default=argparse.SUPPRESS, help="keep nothing of it")
    ask.set_defaults(call="specchat.ask:ask")
    add_commands(commands, loading)
    add_chats(commands)
    add_statistics(commands)

    add_bench(commands, shared)
    add_models(commands)
    add_heads(commands)
    add_surface(commands)
    add_doctor(commands)
    add_config(commands)
    return main_parser


def commands_of(command_line: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser, or the actions of a command, by name."""
    for action in command_line._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}
