"""The flags of `specchat doctor`; nothing else, because `specchat --help` reads it too."""

from __future__ import annotations

import argparse


def add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of the program."""
    doctor = commands.add_parser("doctor", help="what works on this machine, and what would make it faster")
    doctor.add_argument("--network", action="store_true", help="only list every place in the code that can connect")
    doctor.add_argument("--quick", action="store_true", help="load no model to measure how fast this machine reads")
    doctor.add_argument("--full", action="store_true", help="compare the checksums of all models, which reads them")
    doctor.add_argument("--json", action="store_true", help="as JSON")
    doctor.set_defaults(call="specchat.doctor.command:doctor")
