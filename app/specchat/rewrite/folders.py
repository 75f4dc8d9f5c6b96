"""Where the files of rewrites are that outlive a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs


def undo_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """What was written, and what stood there before."""
    return _state_folder(environ) / "undo"


def unfinished_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Rewrites that were cut off."""
    return _state_folder(environ) / "unfinished"


def _state_folder(environ: Mapping[str, str]) -> Path:
    """SPECCHAT_STATE_DIR, or where the system has files that nobody edits."""
    if chosen := environ.get("SPECCHAT_STATE_DIR"):
        return Path(os.path.expanduser(chosen))
    return platformdirs.user_state_path("specchat", appauthor=False)
