"""What the user has set: one commented TOML file, checked when it is read and merged when it is written."""

from specchat.folders import settings_path
from specchat.modes import MODES
from specchat.settings.file import SettingsFile, to_sampling_config
from specchat.settings.keys import (
    RULES,
    SOURCES,
    TINTS,
    ContextSettings,
    GuessSettings,
    HistorySettings,
    RewriteSettings,
    SamplingSettings,
    Settings,
    TargetSettings,
    ViewSettings,
)
from specchat.settings.text import SettingsError, template

__all__ = [
    "MODES",
    "RULES",
    "SOURCES",
    "TINTS",
    "ContextSettings",
    "GuessSettings",
    "HistorySettings",
    "RewriteSettings",
    "SamplingSettings",
    "Settings",
    "SettingsError",
    "SettingsFile",
    "TargetSettings",
    "ViewSettings",
    "settings_path",
    "template",
    "to_sampling_config",
]
