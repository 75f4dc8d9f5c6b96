"""Every place where specchat keeps something, and the only module that asks the system for them.

Each function takes the variables of the environment; none makes a folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

_TAG = "CACHEDIR.TAG"
_TAG_TEXT = """\
Signature: 8a477f597d28d172789f06886806bc55
# This folder holds a cache of specchat: backups may leave it out, and it may be deleted.
"""


def settings_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The settings file: SPECCHAT_CONFIG, or config.toml in the folder that the system has for such files."""
    chosen = _chosen(environ, "SPECCHAT_CONFIG")
    return chosen or platformdirs.user_config_path("specchat", appauthor=False) / "config.toml"


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What a person writes by hand: the folder of the settings file."""
    return settings_path(environ).parent


def own_catalogue_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's own catalogue: SPECCHAT_CATALOGUE, or models.toml beside the settings."""
    return _chosen(environ, "SPECCHAT_CATALOGUE") or config_folder(environ) / "models.toml"


def recipes_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's own recipes of rewrites."""
    return config_folder(environ) / "recipes"


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What would be missed: SPECCHAT_DATA_DIR, or where the system has such files."""
    return _chosen(environ, "SPECCHAT_DATA_DIR") or platformdirs.user_data_path("specchat", appauthor=False)


def models_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The model files: SPECCHAT_MODELS_DIR, or a folder among the data."""
    return _chosen(environ, "SPECCHAT_MODELS_DIR") or data_folder(environ) / "models"


def heads_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Heads that were trained here."""
    return data_folder(environ) / "heads"


def history_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file of the chats, in a folder of its own among the data."""
    return data_folder(environ) / "chats" / "chats.db"


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What nobody edits and few would miss: SPECCHAT_STATE_DIR, or where the system has such files."""
    return _chosen(environ, "SPECCHAT_STATE_DIR") or platformdirs.user_state_path("specchat", appauthor=False)


def trusted_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Which files of projects are trusted."""
    return state_folder(environ) / "trusted.json"


def undo_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What rewrites wrote, and what stood there before."""
    return state_folder(environ) / "undo"


def unfinished_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Rewrites that were cut off."""
    return state_folder(environ) / "unfinished"


def refused_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What models wrote and rewrites did not use."""
    return state_folder(environ) / "refused"


def crash_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Reports of faults."""
    return state_folder(environ) / "crashes"


def log_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Logs: below SPECCHAT_STATE_DIR where it is set, or where the system has such files."""
    chosen = _chosen(environ, "SPECCHAT_STATE_DIR")
    return chosen / "log" if chosen else platformdirs.user_log_path("specchat", appauthor=False)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What is made again when it is gone: SPECCHAT_CACHE_DIR, or where the system has such files."""
    return _chosen(environ, "SPECCHAT_CACHE_DIR") or platformdirs.user_cache_path("specchat", appauthor=False)


def states_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Saved states of the caches of models, one a chat."""
    return cache_folder(environ) / "states"


def texts_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What heads learn from, a folder for each model."""
    return cache_folder(environ) / "heads"


def prices_path(environ: Mapping[str, str] = os.environ) -> Path:
    """What a step costs with each model."""
    return cache_folder(environ) / "prices.json"


def survival_path(environ: Mapping[str, str] = os.environ) -> Path:
    """What guesses have been worth with each model."""
    return cache_folder(environ) / "survival.json"


def trials_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Which model files have been loaded once in a process of their own."""
    return cache_folder(environ) / "trials.json"


def mark_as_cache(folder: Path) -> None:
    """Put the file into a folder by which backup programs know a cache. Raises OSError."""
    tag = folder / _TAG
    if not tag.exists():
        tag.write_text(_TAG_TEXT)


def _chosen(environ: Mapping[str, str], name: str) -> Path | None:
    """What a variable names; None where it is not set or empty."""
    chosen = environ.get(name)
    return Path(os.path.expanduser(chosen)) if chosen else None
