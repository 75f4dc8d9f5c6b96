"""`specchat completion`: a script for a shell, made from the parser; it asks for names of models when it needs them."""

from __future__ import annotations

import argparse
import re
from argparse import Namespace

import shtab

from specchat import paths
from specchat.parser import commands_of, parser
from specchat.rewrite.recipes import load_recipes
from specchat.settings.keys import ANY, KEYS
from specchat.settings.text import dotted

_FILES = ("FILE", "PATH", "TRACE", "TABLE", "FILE... INSTRUCTION", "ID|FILE")
_NAMES = "specchat models list --names 2>/dev/null"
_BASH_FUNCTION, _ZSH_FUNCTION, _FISH_FUNCTION = "_specchat_model_file", "_specchat_models", "__specchat_models"
_MODELS = {
    "bash": _BASH_FUNCTION,
    "zsh": _ZSH_FUNCTION,
    "fish": f"({_FISH_FUNCTION})",
    "preamble": {
        "bash": f"""
{_BASH_FUNCTION}() {{
  compgen -W "$({_NAMES})" -- "$1"
  compgen -f -X '!*.gguf' -- "$1"
  compgen -d -- "$1"
}}""",
        "zsh": f"""
{_ZSH_FUNCTION}() {{
  local -a names
  names=(${{(f)"$({_NAMES})"}})
  _alternative 'models:model:compadd -a names' 'files:file:_files -g "*.gguf"'
}}""",
        "fish": f"""
function {_FISH_FUNCTION}
  {_NAMES}
  __fish_complete_suffix .gguf
end""",
    },
}

_NOTHING = {  # without it zsh does not complete an option that begins where such a word may stand
    "bash": "_specchat_nothing",
    "zsh": "_specchat_nothing",
    "preamble": {"bash": "_specchat_nothing() { :; }", "zsh": "_specchat_nothing() { return 1 }"},
}


def completion(args: Namespace) -> int:
    """Print the script for a shell."""
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The script for "bash", "zsh" or "fish"."""
    command_line = parser()
    _describe(command_line, ())
    text: str = shtab.complete(command_line, shell)
    if shell == "zsh":  # where shtab means all further words, it writes what zsh takes for the next one alone
        text = re.sub(r'^  "\(\*\)::?', '  "*:', text, flags=re.MULTILINE)
    return text


def _describe(command: argparse.ArgumentParser, path: tuple[str, ...]) -> None:
    """Tell shtab what the arguments of a command and of its actions stand for."""
    for action in command._actions:
        _describe_argument(action, path)
    for name, each in commands_of(command).items():
        _describe(each, (*path, name))


def _describe_argument(action: argparse.Action, path: tuple[str, ...]) -> None:
    chooses_model = action.dest in ("model", "draft") and path[:1] != ("stats",)
    if chooses_model or (path[:1] == ("models",) and action.metavar == "NAME" and action.dest != "alias"):
        action.complete = _MODELS  # type: ignore[attr-defined] # where shtab looks for it
    elif action.metavar in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif path == ("paths",) and action.dest == "name":
        action.choices = [place.name for place in paths.places()]
    elif path[:1] == ("config",) and action.metavar == "KEY":
        action.choices = [dotted(place) for place in KEYS if ANY not in place]
    elif action.dest == "recipe":
        action.choices = [recipe.name for recipe in load_recipes()]
    elif not action.option_strings and not action.choices:
        action.complete = _NOTHING  # type: ignore[attr-defined]
