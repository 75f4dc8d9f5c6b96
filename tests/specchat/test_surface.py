"""The parser, the help, the scripts for shells and the man page have the same commands and options."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from itertools import pairwise

import pytest

from specchat.completion import script
from specchat.manual import page
from specchat.parser import commands_of, parser
from specchat.surface import Command, surface
from tests.specchat.roff import between, bold_flags, plain

COMMANDS = list(surface(parser()))
BY_WORDS = [pytest.param(each, id=" ".join(each.words) or "specchat") for each in COMMANDS]


def flags(command: Command) -> set[str]:
    return {flag for option in command.options for flag in option.flags}


def of(words: tuple[str, ...]) -> argparse.ArgumentParser:
    """The parser of a command."""
    found = parser()
    for word in words:
        found = commands_of(found)[word]
    return found


@pytest.mark.parametrize("command", BY_WORDS)
def test_help_lists_the_options_of_the_parser(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    heads = re.findall(r"^  (-.*?)(?:  |$)", of(command.words).format_help(), re.MULTILINE)

    assert {flag for head in heads for flag in re.findall(r"(?:^|, )(--?[A-Za-z][\w-]*)", head)} == flags(command)


@pytest.mark.parametrize("command", BY_WORDS)
def test_every_command_and_every_option_says_what_it_is(command: Command) -> None:
    assert command.explained
    assert [option.flags for option in command.options if not option.explained] == []


@pytest.mark.parametrize("command", BY_WORDS)
def test_help_lists_the_actions_of_the_parser(command: Command) -> None:
    inner = {each.words[-1] for each in COMMANDS if each.words[:-1] == command.words and each.words}

    assert inner == set(commands_of(of(command.words)))


def test_the_man_page_lists_the_options_of_the_parser() -> None:
    text = page()
    found: dict[tuple[str, ...], set[str]] = {(): bold_flags(between(text, ".SH OPTIONS", ".SH"))}
    for section in between(text, ".SH COMMANDS", ".SH").split(".SS ")[1:]:
        name, _, body = section.partition("\n")
        shared = re.findall(r"(?<= )(--?[A-Za-z][\w-]*)", plain(between(body, "It takes these options", "\n")))
        found[tuple(plain(name).split())] = bold_flags(body) | set(shared)

    of_help = {"-h", "--help"}
    assert {words: each - of_help for words, each in found.items()} == {
        each.words: flags(each) - of_help for each in COMMANDS
    }
    assert of_help <= found[()]


def test_the_bash_script_lists_the_options_and_actions_of_the_parser() -> None:
    told = subprocess.run(
        ["bash", "-c", 'eval "$1"; declare -p', "bash", script("bash")], capture_output=True, text=True, check=True
    ).stdout
    arrays = {
        name: set(re.findall(r'\[\d+\]="([^"]*)"', value))
        for name, value in re.findall(r"^declare -a _shtab_(specchat\w*)=\((.*)\)$", told, re.MULTILINE)
    }

    for each in COMMANDS:
        name = re.sub(r"\W", "_", "_".join(("specchat", *each.words)))
        assert arrays[f"{name}_option_strings"] == flags(each)
        assert arrays.get(f"{name}_subparsers", set()) == set(commands_of(of(each.words)))


def test_the_fish_script_lists_the_options_of_the_parser() -> None:
    found: dict[tuple[str, ...], set[str]] = {}
    for line in re.findall(r"^complete -c specchat -n .*$", script("fish"), re.MULTILINE):
        _, _, _, _, condition, *rest = shlex.split(line)
        options = found.setdefault(tuple(condition.split(";")[0].split()[1:]), set())
        for kind, name in pairwise(rest):
            options |= {f"--{name}"} if kind == "-l" else {f"-{name}"} if kind == "-s" else set()

    assert found == {each.words: flags(each) for each in COMMANDS}


def test_the_zsh_script_lists_the_options_of_the_parser() -> None:
    found = {
        name: {
            flag
            for line in body.splitlines()
            for flag in re.findall(r"--?[A-Za-z][\w-]*", line.replace('"(- : *)"', "").split("[")[0])
            if not line.lstrip().startswith('":')
        }
        for name, body in re.findall(r"^_shtab_(specchat\w*)_options=\(\n(.*?)^\)$", script("zsh"), re.M | re.S)
    }

    assert {name: each for name, each in found.items() if "defaults" not in name} == {
        re.sub(r"\W", "_", "_".join(("specchat", *each.words))): flags(each) for each in COMMANDS
    }
