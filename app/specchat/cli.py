"""The command line. Commands are imported when they are called: `specchat --help` loads no engine."""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence

from specchat import __version__
from specchat.history.options import add_chats
from specchat.rewrite.options import add_commands, take_words
from specchat.statistics.options import add_statistics

COMMANDS = ("ask", "bench", "chats", "models", "rewrite", "stats", "tune", "undo")
USAGE = 2
MODEL = 4
INPUT = 3
INTERRUPTED = 130
OUTPUT = 5
BROKEN_PIPE = 141

DEFAULTS: dict[str, object] = {
    "command": None,
    "call": "specchat.plain:chat",
    "plain": False,
    "model": None,
    "draft": None,
    "guess": "auto",
    "guess_max": None,
    "rule": "coupled",
    "system": None,
    "temp": 0.7,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "repeat_penalty": 1.0,
    "repeat_last_n": 64,
    "seed": None,
    "max_tokens": None,
    "stop": [],
    "on_full": None,
    "ctx": None,
    "cache_type": "f16",
    "threads": None,
    "yes": False,
    "resume": None,
    "private": False,
}


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    loading = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    model = loading.add_argument_group("models")
    model.add_argument("-m", "--model", metavar="NAME", help="a model of the catalogue, or the path of a .gguf file")
    model.add_argument("-d", "--draft", metavar="NAME", help="the model that guesses: NAME, a path, auto or none")
    model.add_argument("-c", "--ctx", type=int, metavar="N", help="context in tokens (8192)")
    model.add_argument("-t", "--threads", type=int, metavar="N", help="threads (one a fast core)")
    model.add_argument(
        "--cache-type", choices=["f16", "q8_0"], help="numbers of the cache; q8_0 takes half the memory (f16)"
    )
    model.add_argument("-y", "--yes", action="store_true", help="fetch missing models without asking")
    guess = loading.add_argument_group("guessing; it never changes the text")
    guess.add_argument("-g", "--guess", choices=["auto", "draft", "lookup", "off"], help="who guesses (auto)")
    guess.add_argument("--guess-max", type=int, metavar="N", help="longest draft of a guesser chosen by hand")
    guess.add_argument("--rule", choices=["coupled", "rejection", "block"], help="how guesses are checked (coupled)")
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS, parents=[loading])
    text = shared.add_argument_group("the reply")
    text.add_argument("-s", "--system", metavar="TEXT", help="system prompt")
    text.add_argument("--temp", type=float, metavar="T", help="temperature; 0 takes the best token (0.7)")
    text.add_argument("--top-k", type=int, metavar="K", help="keep the K best tokens; 0 keeps all (40)")
    text.add_argument("--top-p", type=float, metavar="P", help="keep the best tokens up to this mass (0.95)")
    text.add_argument("--min-p", type=float, metavar="P", help="keep tokens of this share of the best (0.05)")
    text.add_argument("--repeat-penalty", type=float, metavar="R", help="make recent tokens less likely; 1 is off (1)")
    text.add_argument("--repeat-last-n", type=int, metavar="N", help="how many tokens are recent; -1 all (64)")
    text.add_argument("--seed", type=int, metavar="N", help="the same seed writes the same text (a new one each time)")
    text.add_argument("--max-tokens", type=int, metavar="N", help="end the reply after N tokens")
    text.add_argument("--stop", action="append", metavar="TEXT", help="end the reply before TEXT; repeatable")

    main_parser = argparse.ArgumentParser(
        prog="specchat",
        parents=[shared],
        allow_abbrev=False,  # or an option of a command is taken for the beginning of one of these
        description="A private chat for the terminal that guesses ahead and never changes the answer.",
        epilog="Without a command: chat. `specchat COMMAND --help` says more.",
    )
    main_parser.add_argument("--version", action="version", version=f"specchat {__version__}")
    main_parser.add_argument("--plain", action="store_true", help="chat in line mode, without a full screen")
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
    ask.set_defaults(call="specchat.ask:ask")
    add_commands(commands, loading)
    add_chats(commands)
    add_statistics(commands)

    bench = commands.add_parser("bench", parents=[shared], help="what guessing is worth, measured here")
    suites = ["code", "prose", "json", "summary", "rewrite", "acceptance"]
    bench.add_argument("suite", nargs="?", choices=suites, help="one workload instead of all, or acceptance")
    bench.add_argument("--guessers", metavar="LIST", default="off,draft,lookup,auto", help="whom to compare (all)")
    bench.add_argument("--repeat", type=int, metavar="N", default=3, help="rounds (3)")
    bench.add_argument("--data", metavar="FILE", help="prompts of a file in Spec-Bench's or EditEval's format")
    bench.add_argument("--count", type=int, metavar="N", help="prompts of each group of the file (all)")
    bench.add_argument("--json", action="store_true", help="as JSON")
    bench.add_argument("--csv", metavar="FILE", help="write a table to FILE as well")
    bench.add_argument("--assert", dest="asserts", action="append", metavar="EXPR", default=[],
                       help="exit 1 unless it holds, like auto.speedup>=1.2 or identical; repeatable")  # fmt: skip
    bench.add_argument("--history", type=int, metavar="N",
                       help="what --draft would have given on your last N kept replies; only it is loaded")  # fmt: skip
    bench.add_argument("--replay", metavar="TRACE", help="recorded texts as token ids instead; needs no model")
    bench.add_argument("--task", metavar="NAME", help="of the replay: only the text of this name")
    bench.add_argument(
        "--cost", metavar="TABLE", default="cpu-2core", help="of the replay: a shipped price list or a file"
    )
    bench.add_argument("--controller", choices=["auto", "lookup", "off"], default="auto", help="of the replay (auto)")
    bench.set_defaults(call="specchat.bench.command:main")

    models = commands.add_parser("models", help="list, fetch and check models")
    actions = models.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what the catalogue knows and what is here")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.add_argument("--fits", action="store_true", help="only what fits into the memory that is free here")
    listing.set_defaults(call="specchat.listing:list_models")
    pull = actions.add_parser("pull", help="fetch models; goes on where it was interrupted")
    named = "one that is listed, or hf:OWNER/NAME:QUANTIZATION; without one, the starter pair"
    pull.add_argument("names", nargs="*", metavar="NAME", help=named)
    pull.add_argument("-y", "--yes", action="store_true", help="do not ask")
    pull.set_defaults(call="specchat.models:pull_models")
    verify = actions.add_parser("verify", help="check size and sha256")
    verify.add_argument("names", nargs="*", metavar="NAME", help="without one, all that are here")
    verify.set_defaults(call="specchat.models:verify_models")
    check = actions.add_parser("check-catalogue", help="compare what the catalogue says with the model hub")
    check.add_argument("names", nargs="*", metavar="NAME", help="without one, the whole catalogue")
    check.add_argument("--json", action="store_true", help="as JSON")
    check.set_defaults(call="specchat.check_catalogue:check_catalogue")
    path = actions.add_parser("path", help="where a model is, or all of them")
    path.add_argument("name", nargs="?", metavar="NAME")
    path.set_defaults(call="specchat.models:model_path")
    add = actions.add_parser("add", help="use a GGUF file by name, where it lies")
    add.add_argument("path", metavar="PATH", help="of a split model, any part")
    add.add_argument("--alias", metavar="NAME", help="its name (made from that of the file)")
    add.set_defaults(call="specchat.own_commands:add_model")
    find = actions.add_parser("find", help="models of Hugging Face, LM Studio, llama.cpp and Ollama on this machine")
    find.add_argument("--add", action="store_true", help="use them by name, where they lie")
    find.set_defaults(call="specchat.own_commands:find_others")
    info = actions.add_parser("info", help="what is known of a model, and what its file says")
    info.add_argument("name", metavar="NAME", help="or the path of a .gguf file")
    info.add_argument("--json", action="store_true", help="as JSON")
    info.set_defaults(call="specchat.own_commands:model_info")
    pair = actions.add_parser("pair", help="which models can guess for one, why others cannot, and what it is worth")
    pair.add_argument("name", metavar="NAME", help="or the path of a .gguf file")
    pair.add_argument("-t", "--threads", type=int, metavar="N", help="of the prices to go by (one a fast core)")
    pair.add_argument("--json", action="store_true", help="as JSON")
    pair.set_defaults(call="specchat.pair_command:pair")
    remove = actions.add_parser("rm", help="delete fetched models, forget linked ones (their files stay)")
    remove.add_argument("names", nargs="+", metavar="NAME")
    remove.add_argument("-y", "--yes", action="store_true", help="do not ask")
    remove.set_defaults(call="specchat.own_commands:remove_models")
    prune = actions.add_parser("prune", help="delete what downloads have left over; asks first")
    prune.add_argument("--dry-run", action="store_true", help="only say what and how much")
    prune.add_argument("-y", "--yes", action="store_true", help="do not ask; also files that are on no list")
    prune.set_defaults(call="specchat.pruning:prune_models")
    return main_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors that have a name become one line on stderr and an exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        if given[0].endswith(".gguf"):
            given.insert(0, "--model")
        else:
            near = difflib.get_close_matches(given[0], COMMANDS, 1)
            hint = f"; did you mean {near[0]}?" if near else f'; to ask something: specchat ask "{given[0]}"'
            return _fail(f"no command is named {given[0]!r}{hint}", USAGE)
    command_line = parser()
    args, rest = command_line.parse_known_args(given)
    if rest := take_words(args, rest):
        command_line.error(f"unrecognized arguments: {' '.join(rest)}")
    args.given = dict(vars(args))  # what was asked for, apart from what is so by default
    for name, value in DEFAULTS.items():
        if not hasattr(args, name):
            setattr(args, name, value)
    _mend_streams()
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if args.command is None and not args.plain and on_terminal:
        args.call = "specchat.tui.command:run"
    elif args.resume is not None and (args.plain or not on_terminal):
        return _fail("a chat goes on in the app, which needs a terminal; see also: specchat chats show", USAGE)
    module, _, function = args.call.partition(":")
    try:
        code: int = getattr(importlib.import_module(module), function)(args)
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left; nothing more can be said there
        return BROKEN_PIPE
    except OSError as error:  # what a command reads it answers for itself, so this is its output
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _fail(f"cannot write the output: {error.strerror or error}", OUTPUT)
    except Exception as error:
        exit_code = _exit_code(error)
        if exit_code is None:
            raise
        return _fail(str(error), exit_code)


def _mend_streams() -> None:
    """Streams that are closed or that cannot spell a character must not end a chat with a traceback."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 # it stays open as long as the process
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _exit_code(error: Exception) -> int | None:
    """The exit code of an error that is meant for people; None for a fault of ours."""
    from specchat.template import TemplateError
    from speculation.engine import ContextFull
    from speculation.types import Interrupted, SpeculationError

    declared = getattr(error, "exit_code", None)
    if isinstance(declared, int):
        return declared
    if isinstance(error, Interrupted):
        return INTERRUPTED
    if isinstance(error, ContextFull):
        return INPUT
    return MODEL if isinstance(error, SpeculationError | TemplateError) else None


def _fail(text: str, code: int) -> int:
    from specchat.console import say

    say(f"specchat: {' '.join(text.split())}")
    return code
