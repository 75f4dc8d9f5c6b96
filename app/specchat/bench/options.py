"""The options of `specchat bench`; importing this loads no engine."""

from __future__ import annotations

import argparse


def add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    """Add the command to those of the program."""
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
