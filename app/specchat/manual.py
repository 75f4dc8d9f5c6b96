"""`specchat manual`: the man page in roff, made from the parser and from the tables of codes, variables and places."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import groupby

from specchat.exit_codes import ExitCode
from specchat.parser import parser
from specchat.paths import places
from specchat.settings.allowed import shown
from specchat.settings.endpoints import ENDPOINT_KEYS
from specchat.settings.keys import ANY, KEYS, Place
from specchat.settings.text import dotted
from specchat.settings.variables import OTHERS, SETTINGS
from specchat.surface import Argument, Command, surface

_HOME = "/HOME"
_ON_LINUX = {
    "SPECCHAT_CONFIG": f"{_HOME}/.config/specchat/config.toml",
    "SPECCHAT_DATA_DIR": f"{_HOME}/.local/share/specchat",
    "SPECCHAT_STATE_DIR": f"{_HOME}/.local/state/specchat",
    "SPECCHAT_CACHE_DIR": f"{_HOME}/.cache/specchat",
}
# A minus stays one when it is copied, and quotes stay straight; a backslash begins an escape, a dot in front a request.
_ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", '"': r"\(dq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def manual(_: Namespace) -> int:
    """Print the page."""
    print(page())
    return 0


def page() -> str:
    """The man page, in ASCII; the same on every machine."""
    program, *commands = surface(parser())
    lines = [
        '.TH SPECCHAT 1 "" specchat "User Commands"',
        ".nh",  # a name that is cut at the end of a line cannot be copied
        ".ad l",
        *_section("NAME", [roff("specchat") + r" \- " + roff("private chat for the terminal that guesses ahead")]),
        *_section("SYNOPSIS", _lines(_synopsis(each) for each in (program, *commands) if not each.needs_action)),
        *_section("DESCRIPTION", [roff(f"{program.explained} {parser().epilog}")]),
        *_section("OPTIONS", _grouped(program.arguments)),
        *_section("COMMANDS", [line for each in commands for line in _command(each)]),
        *_section("SETTINGS", _settings()),
        *_section("ENVIRONMENT", _terms((variable.name, variable.meaning) for variable in OTHERS)),
        *_section("FILES", _files()),
        *_section("EXIT STATUS", _terms((str(int(code)), code.meaning) for code in ExitCode)),
    ]
    return "\n".join(lines)


def roff(text: str) -> str:
    """Text on one line that roff shows as it is."""
    escaped = "".join(
        _ESCAPES.get(character, character) if character.isascii() else rf"\[u{ord(character):04X}]"
        for character in " ".join(text.split())
    )
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f".SH {title}", *lines]


def _lines(lines: Iterable[str]) -> list[str]:
    return [".nf", *lines, ".fi"]


def _terms(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for term, text in rows for line in _term(_bold(term), text)]


def _term(term: str, text: str) -> list[str]:
    return [".TP", term, roff(text) or r"\&"]


def _bold(text: str) -> str:
    return rf"\fB{roff(text)}\fR"


def _synopsis(command: Command) -> str:
    name, *rest = command.synopsis.split(" [options]", 1)
    return f"{_bold(name)} {roff('[options]' + rest[0])}"


def _command(command: Command) -> Iterator[str]:
    """A command with what it takes; the program's own options by name alone."""
    yield f".SS {roff(' '.join(command.words))}"
    yield roff(_sentence(command.explained))
    yield from _lines([_synopsis(command)])
    own = (argument for argument in command.arguments if not argument.is_shared and "--help" not in argument.flags)
    yield from _grouped(own)
    if shared := [flag for argument in command.options if argument.is_shared for flag in argument.flags]:
        yield ".PP"
        yield roff(f"It takes these options of specchat, too: {', '.join(shared)}.")


def _grouped(arguments: Iterable[Argument]) -> Iterator[str]:
    """Arguments under the titles of their groups; those without a title of ours come without one."""
    for title, group in groupby(arguments, key=lambda argument: argument.group):
        if title not in ("options", "positional arguments"):
            yield ".PP"
            yield roff(_sentence(title, end=":"))
        for argument in group:
            flags = ", ".join(_bold(flag) for flag in argument.flags)
            value = rf"\fI{roff(argument.value)}\fR" if argument.value else ""
            yield from _term(f"{flags} {value}".strip(), argument.explained)


def _settings() -> Iterator[str]:
    yield roff(
        "Keys of the settings file, with what holds where nothing is set. A flag goes before the variable of a key, "
        "the variable before the .specchat.toml of a project, and that before the settings file."
    )
    for place, described in KEYS.items():
        default = shown(described.metadata["allowed"].spell(described.default))
        value = "" if ANY in place else f" {roff(f'= {default}')}"
        explained = described.metadata["explained"] or f"the same for one model alone ({place[-1]})"
        yield from _term(f"{_bold(_key(place))}{value}", f"{explained}{_variable_of(place)}")
    for key, explained in ENDPOINT_KEYS.items():
        yield from _term(_bold(_key(("endpoints", ANY, key))), explained)


def _key(place: Place) -> str:
    return dotted(tuple("NAME" if part == ANY else part for part in place))


def _variable_of(place: Place) -> str:
    return next((f" ({name})" for name, owner in SETTINGS.items() if owner == place), "")


def _files() -> Iterator[str]:
    yield roff("On Linux; specchat paths says where they are on this machine.")
    yield from _terms((str(place.path).replace(_HOME, "~"), place.holds) for place in places(_ON_LINUX))


def _sentence(text: str, end: str = ".") -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}{end}"
