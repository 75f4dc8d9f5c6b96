"""What the parser takes, as plain data: for the man page, and for tests that all documents say the same."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from specchat.parser import commands_of


@dataclass(frozen=True, slots=True)
class Argument:
    """An option with all its names, or a word without one."""

    flags: tuple[str, ...]  # empty for a word
    value: str  # what follows the flags, or stands for the word; empty for a switch
    explained: str
    group: str  # the title that it stands under
    is_shared: bool  # whether it is one of the program's own, which a command takes too


@dataclass(frozen=True, slots=True)
class Command:
    """A command, an action of one, or without words the program itself."""

    words: tuple[str, ...]
    explained: str
    arguments: tuple[Argument, ...]
    needs_action: bool

    @property
    def options(self) -> tuple[Argument, ...]:
        """What begins with a dash."""
        return tuple(argument for argument in self.arguments if argument.flags)

    @property
    def synopsis(self) -> str:
        """The words of a call in short."""
        words = [argument.value for argument in self.arguments if not argument.flags]
        return " ".join(["specchat", *self.words, "[options]", *words])


def surface(command_line: argparse.ArgumentParser) -> Iterator[Command]:
    """The program, then each command with its actions behind it. What is hidden from help is left out."""
    own = {id(action) for action in command_line._actions}
    yield _command((), command_line.description or "", command_line, frozenset())
    yield from _commands((), command_line, frozenset(own))


def _commands(words: tuple[str, ...], owner: argparse.ArgumentParser, own: frozenset[int]) -> Iterator[Command]:
    explained = {choice.dest: choice.help or "" for action in _nested(owner) for choice in action._choices_actions}
    for name, each in commands_of(owner).items():
        if explained.get(name, argparse.SUPPRESS) != argparse.SUPPRESS:
            yield _command((*words, name), explained[name], each, own)
            yield from _commands((*words, name), each, own)


def _command(words: tuple[str, ...], explained: str, parser: argparse.ArgumentParser, own: frozenset[int]) -> Command:
    formatter = parser._get_formatter()
    arguments = [
        Argument(
            tuple(action.option_strings),
            _value(action),
            formatter._expand_help(action) if action.help else "",
            group.title or "",
            id(action) in own,
        )
        for group in parser._action_groups
        for action in group._group_actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)
    ]
    return Command(words, explained, tuple(arguments), any(action.required for action in _nested(parser)))


def _nested(parser: argparse.ArgumentParser) -> Iterator[argparse._SubParsersAction[argparse.ArgumentParser]]:
    return (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))


def _value(action: argparse.Action) -> str:
    """How a value is written: NAME, [NAME], NAME..., A B, or one|another."""
    if action.nargs == 0:
        return ""
    shown = "|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest.upper()
    name = shown if isinstance(shown, str) else " ".join(shown)
    if "..." in name:
        return name
    if isinstance(action.nargs, int):
        return " ".join([name] * action.nargs)
    forms = {argparse.OPTIONAL: f"[{name}]", argparse.ZERO_OR_MORE: f"[{name}...]", argparse.ONE_OR_MORE: f"{name}..."}
    return forms.get(action.nargs or "", name)
