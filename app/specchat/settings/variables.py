"""The variables of the environment that are read: one for each setting, and the others, as data for documents."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from specchat.errors import UsageError
from specchat.settings.keys import ANY, KEYS, Place
from specchat.settings.layers import Layer, Source

PREFIX = "SPECCHAT_"
NO_HISTORY = "SPECCHAT_NO_HISTORY"
OFFLINE = "SPECCHAT_OFFLINE"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is read."""

    name: str
    meaning: str
    read_by: str


SETTINGS: Mapping[str, Place] = {
    PREFIX + "_".join(place).upper(): place for place in KEYS if ANY not in place
}  # such as SPECCHAT_GUESS_MODE
OTHERS = (
    Variable("SPECCHAT_CONFIG", "the settings file", "every command"),
    Variable("SPECCHAT_CATALOGUE", "your own catalogue of models", "every command that knows models"),
    Variable("SPECCHAT_DATA_DIR", "the folder of chats and models", "every command"),
    Variable("SPECCHAT_MODELS_DIR", "the folder of the model files", "every command that knows models"),
    Variable("SPECCHAT_STATE_DIR", "the folder of undo copies, logs and reports", "every command"),
    Variable("SPECCHAT_CACHE_DIR", "the folder of what is made again when it is gone", "every command"),
    Variable("SPECCHAT_LOG", "another file for the log of figures, or off", "every command"),
    Variable(NO_HISTORY, "not empty: nothing of what is said is kept", "the app, --plain, ask"),
    Variable("HF_ENDPOINT", "another address of the model hub", "whatever fetches models"),
    Variable("HF_TOKEN", "a token for gated and private models", "whatever fetches models"),
    Variable("HF_HUB_OFFLINE", "1: nothing is fetched from the hub", "whatever fetches models"),
    Variable("HF_HOME", "where Hugging Face keeps its files", "models find, whatever fetches models"),
    Variable("HF_HUB_CACHE", "where Hugging Face keeps models", "models find"),
    Variable("HUGGINGFACE_HUB_CACHE", "an older name of HF_HUB_CACHE", "models find"),
    Variable("LLAMA_CACHE", "where llama.cpp keeps models", "models find"),
    Variable("OLLAMA_MODELS", "where Ollama keeps models", "models find"),
    Variable("HTTPS_PROXY", "the proxy of this network", "whatever fetches models"),
    Variable("PIP_INDEX_URL", "another package index, as all variables of pip", "whatever fetches models"),
    Variable("XDG_CACHE_HOME", "the folder of caches", "every command"),
    Variable("XDG_CONFIG_HOME", "the folder of settings", "every command"),
    Variable("XDG_DATA_HOME", "the folder of data", "every command"),
    Variable("XDG_STATE_HOME", "the folder of states", "every command"),
    Variable("LOCALAPPDATA", "the folder of all of these on Windows", "every command"),
    Variable("VISUAL", "your editor", "the app, rewrite, config edit"),
    Variable("EDITOR", "your editor, where VISUAL is not set", "the app, rewrite, config edit"),
    Variable("NO_COLOR", "not empty: no colours", "everything that is drawn"),
    Variable("TERM", "dumb: no progress bars", "everything that is drawn"),
    Variable("COLORTERM", "truecolor: all colours", "everything that is drawn"),
    Variable("TMUX", "set by tmux, which may hide colours of the terminal", "doctor"),
    Variable("STY", "set by screen, which may hide colours of the terminal", "doctor"),
    Variable("WT_SESSION", "set by Windows Terminal, which has all colours", "doctor"),
    Variable("DISPLAY", "a desktop that can open files", "the app"),
    Variable("WAYLAND_DISPLAY", "a desktop that can open files", "the app"),
)


def variables() -> tuple[Variable, ...]:
    """Every variable that is read, those of the settings first."""
    of_settings = (
        Variable(name, KEYS[place].metadata["explained"], "every command that takes the setting")
        for name, place in SETTINGS.items()
    )
    return (*of_settings, *OTHERS)


def variable_layer(environ: Mapping[str, str]) -> Layer:
    """The settings that variables give; an empty one counts as not set. Raises UsageError that names the wrong one."""
    layer, wrong = examined(environ)
    if wrong:
        raise UsageError(wrong[0])
    return layer


def examined(environ: Mapping[str, str]) -> tuple[Layer, list[str]]:
    """The settings that variables give, and a line for each wrong one."""
    values: dict[Place, object] = {}
    names: dict[Place, str] = {}
    wrong = []
    for name, place in SETTINGS.items():
        if raw := environ.get(name):
            try:
                values[place] = KEYS[place].metadata["allowed"].read_word(raw)
                names[place] = name
            except ValueError as error:
                wrong.append(f"{name} {error}")
    if environ.get(NO_HISTORY):  # which no other variable takes back
        values["history", "enabled"], names["history", "enabled"] = False, NO_HISTORY
    return Layer(Source.VARIABLE, values, names), wrong


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """A line for each variable that is named as ours are and is none."""
    known = {variable.name for variable in variables()}
    lines = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            lines.append(f"{name} is not a variable of specchat and is ignored{meant}")
    return lines
