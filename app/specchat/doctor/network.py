"""Every place in the code that can connect to anything, and every program that is started: a list kept true by a test.

The test walks the imports of the whole code: a module that imports a library of the network, or one that starts
programs, and does not stand here, fails it; so does one that stands here and no longer does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specchat.console import printable

SCHEMA = "specchat.doctor.network/1"
_YES = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the outside."""

    name: str
    reaches: str
    when: str
    connecting: tuple[str, ...]  # modules that import a library of the network
    starting: tuple[str, ...] = ()  # modules that start a process which connects
    shut_by: tuple[str, ...] = ()  # variables of the environment that shut it, of the library that connects


@dataclass(frozen=True, slots=True)
class Program:
    """What one module starts beside specchat that connects to nothing of its own accord."""

    module: str
    what: str


HUB, INDEX, ENDPOINT = "model hub", "package index", "endpoint"
_SHUT = "SPECCHAT_OFFLINE=1, or offline = true in the settings, shuts it"

WAYS = (
    Way(
        HUB,
        "huggingface.co, or what HF_ENDPOINT names; its files come from where that server sends the request",
        "models pull, check-catalogue and p in the list of models, and a model of the catalogue that is not here "
        "after a yes or -y",
        connecting=("specchat.hub_worker",),
        starting=("specchat.hub",),
        shut_by=("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
    ),
    Way(
        INDEX,
        "pypi.org, or what the settings of pip name",
        "the same, for models that are packages there",
        connecting=(),
        starting=("specchat.package_index",),
        shut_by=("PIP_NO_INDEX",),
    ),
    Way(
        ENDPOINT,
        "the one server that you name; a chat that is sent there leaves specchat",
        "--endpoint on a command, for that command",
        connecting=("specchat.remote.client", "specchat.remote.refusals"),
    ),
)

PROGRAMS = (
    Program("specchat.attachments", "git, which lists the files of a folder"),
    Program("specchat.editor", "your own editor, for the settings"),
    Program("specchat.machine", "sysctl and vm_stat on macOS, which tell of processor and memory"),
    Program("specchat.rewrite.after", "your own command of rewrite --after, which does what you wrote"),
    Program("specchat.rewrite.asking", "your own editor"),
    Program("specchat.template", "a process of specchat that runs the template of a model"),
    Program("specchat.trial", "a process of specchat that tries a model nobody vouches for"),
    Program("specchat.tui.outside", "your own editor, and a program that puts text into the clipboard"),
)


@dataclass(frozen=True, slots=True)
class State:
    """Whether a way is open now."""

    way: Way
    is_open: bool
    why: str


def states(environ: Mapping[str, str], endpoints: Sequence[str], why_offline: str) -> list[State]:
    """The ways as they are now; the settings say which endpoints there are and why nothing may be fetched, if so."""
    return [_state(way, environ, endpoints, why_offline) for way in WAYS]


def _state(way: Way, environ: Mapping[str, str], endpoints: Sequence[str], why_offline: str) -> State:
    if way.name == ENDPOINT:
        known = f"; the settings name {', '.join(endpoints)}" if endpoints else "; the settings name none"
        return State(way, False, f"none is chosen unless a command has --endpoint{known}")
    if why_offline:
        return State(way, False, why_offline)
    for name in way.shut_by:
        if environ.get(name, "").lower() in _YES:
            return State(way, False, f"{name} is set")
    return State(way, True, f"at no other time; {_SHUT}")


def lines(found: list[State]) -> list[str]:
    """The list for people."""
    told = ["specchat connects in these places and in no other:"]
    for state in found:
        way = state.way
        modules = ", ".join(dict.fromkeys(way.connecting + way.starting))
        told += [
            "",
            f"{'on' if state.is_open else 'off':<5}{way.name}: {way.reaches}",
            f"     when: {way.when}",
            f"     now {'on' if state.is_open else 'off'}: {state.why}",
            f"     in the code: {modules}",
        ]
    told += ["", "Programs that it starts, which connect to nothing unless they are yours and you made them:"]
    told += [f"     {program.what} ({program.module})" for program in PROGRAMS]
    told += ["", "There is no telemetry and no update check."]
    return [printable(line) for line in told]


def as_json(found: list[State]) -> dict[str, object]:
    """The list for programs."""
    ways = [
        {
            "name": state.way.name,
            "open": state.is_open,
            "why": state.why,
            "reaches": state.way.reaches,
            "when": state.way.when,
            "modules": list(dict.fromkeys(state.way.connecting + state.way.starting)),
        }
        for state in found
    ]
    programs = [{"module": program.module, "what": program.what} for program in PROGRAMS]
    return {"schema": SCHEMA, "ways": ways, "programs": programs}
