"""`specchat doctor`: every check, one after another. It changes nothing, and shows nothing of what was said."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from shutil import get_terminal_size

from specchat import __version__
from specchat.doctor import network
from specchat.doctor.finding import Check, Finding, Verdict, findings_of, note, ok, problem
from specchat.doctor.hardware import hardware
from specchat.doctor.installation import this_installation
from specchat.doctor.settings import check_settings, known_endpoints, why_offline
from specchat.doctor.software import check_packages, check_python, engine_pin, requirements
from specchat.doctor.terminal import check_terminal, this_terminal
from specchat.exit_codes import ExitCode
from specchat.settings.reading import working_folder

SCHEMA = "specchat.doctor/1"


def doctor(args: Namespace) -> int:
    """Look at everything, or list the ways to the network. Returns 1 when there is a problem."""
    if args.network:
        return _network(as_json=args.json)
    found = []
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    for finding in findings_of(checks(is_quick=args.quick, is_full=args.full)):
        found.append(finding)
        if not args.json:
            print("\n".join(finding.lines(width)), flush=True)
    problems = sum(finding.verdict is Verdict.PROBLEM for finding in found)
    if args.json:
        report = {"schema": SCHEMA, "version": __version__, "problems": problems}
        json.dump(report | {"findings": [finding.as_json for finding in found]}, sys.stdout, indent=2)
        print()
    return ExitCode.CHECK_FAILED if problems else ExitCode.DONE


def checks(*, is_quick: bool, is_full: bool) -> Sequence[Check]:
    """All of them, in the order of a report: what everything stands on first."""
    return (
        Check("python", lambda: [check_python(this_installation())]),
        Check("packages", lambda: check_packages(requirements(), this_installation())),
        Check("engine", _engine),
        Check("memory", _memory),
        Check("disk", _disk),
        Check("terminal", lambda: check_terminal(this_terminal())),
        Check("settings", _settings),
        Check("catalogue", _catalogue),
        Check("models", partial(_models, is_full=is_full)),
        Check("ceiling", partial(_ceiling, is_quick=is_quick)),
        Check("chats", _chats),
        Check("private files", _private_files),
        Check("log", _log),
    )


def _network(*, as_json: bool) -> int:
    found = network.states(os.environ, known_endpoints(os.environ), why_offline(os.environ))
    if as_json:
        json.dump(network.as_json(found), sys.stdout, indent=2)
        print()
    else:
        print("\n".join(network.lines(found)))
    return ExitCode.DONE


def _engine() -> Iterator[Finding]:
    here, pin = this_installation(), engine_pin(requirements())
    try:
        from speculation.llama import ENGINE_VERSION, back_ends, features, gpus
    except Exception as error:  # a library that does not fit this system breaks in many ways
        said = f"it cannot be loaded ({type(error).__name__}), so no model can"
        yield problem("engine", said, here.rebuild("", pin))
        return
    from specchat.doctor.back_ends import Engine, check_back_end, check_processor
    from specchat.machine import decoding_threads

    engine, machine = Engine(ENGINE_VERSION, back_ends(), features(), gpus()), hardware()
    yield ok("engine", engine.version, version=engine.version)
    yield from check_back_end(engine, machine, here, pin)
    yield from check_processor(engine, machine, here, pin, decoding_threads())


def _memory() -> Iterable[Finding]:
    from specchat.doctor.storage import check_memory
    from specchat.fit import Room
    from specchat.machine import free_memory, total_memory
    from specchat.recommended import memory_bytes
    from specchat.shelf import Shelf
    from speculation.llama import gpus

    targets = [memory_bytes(model) for model in Shelf(_ignored).catalogue.models if "target" in model.roles]
    smallest = min(targets, default=None)
    yield check_memory(Room(free_memory(), total_memory()), smallest, is_gpu=False)
    if devices := gpus():
        room = Room(sum(each.free for each in devices), sum(each.total for each in devices))
        yield check_memory(room, smallest, is_gpu=True)


def _disk() -> Iterable[Finding]:
    from specchat.doctor.storage import check_disk
    from specchat.shelf import Shelf

    shelf = Shelf(_ignored)
    pair = [shelf.catalogue.find(name) for name in (shelf.catalogue.default_target, shelf.catalogue.default_draft)]
    yield check_disk(shelf.store.folder, sum(each.file.size for each in pair if not shelf.store.has(each)))


def _settings() -> Iterator[Finding]:
    yield from check_settings(os.environ, working_folder())


def _catalogue() -> Iterator[Finding]:
    from specchat.doctor.models import check_catalogue
    from specchat.shelf import Shelf

    troubles: list[str] = []
    yield from check_catalogue(Shelf(troubles.append), troubles)


def _models(*, is_full: bool) -> Iterator[Finding]:
    from specchat.doctor.models import check_models
    from specchat.shelf import Shelf

    yield from check_models(Shelf(_ignored), is_full=is_full)


def _ceiling(*, is_quick: bool) -> Iterable[Finding]:
    from specchat.doctor.ceiling import check_ceiling, known, measured
    from specchat.kept import kept_prices
    from specchat.machine import decoding_threads
    from specchat.shelf import Shelf
    from speculation.llama import ENGINE_VERSION

    shelf, prices = Shelf(_ignored), kept_prices()
    preferred = shelf.catalogue.find(shelf.catalogue.default_target)
    found = known(prices.all(), ENGINE_VERSION, shelf.store.path(preferred).stem)
    # Only what was compared with its checksum when it came: another file might end this process.
    here = [model for model in shelf.catalogue.models if not model.origin and shelf.store.has(model)]
    if found is None and not is_quick and here:
        smallest = min(here, key=lambda model: model.file.size)
        found = measured(shelf.store.path(smallest), decoding_threads(), prices)
    yield check_ceiling(found, is_quick=is_quick)


def _chats() -> Iterator[Finding]:
    from specchat.doctor.chats import check_chats
    from specchat.folders import history_path

    yield from check_chats(history_path())


def _private_files() -> Iterator[Finding]:
    from specchat.doctor.storage import private_files

    yield from private_files()


def _log() -> Iterator[Finding]:
    from specchat.crash import reports
    from specchat.doctor.storage import can_be_written
    from specchat.logs import log_path

    path = log_path(os.environ)
    if path is None or can_be_written(path.parent):
        yield ok("log", "off" if path is None else f"{path}, counts and times only")
    else:
        yield note(
            "log", f"none is kept: nothing can be written into {path.parent}", "set SPECCHAT_LOG to another file"
        )
    if kept := reports():
        many = "1 report" if len(kept) == 1 else f"{len(kept)} reports"
        yield note("log", f"{many} of a crash, the last {kept[-1]}; they hold no text", "send it to us, or delete it")


def _ignored(_: str) -> None:
    """What the check of the catalogue tells is told there alone."""
