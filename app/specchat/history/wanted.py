"""Whether what is said on the command line is written down, and where."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from specchat.folders import history_path


def is_private(args: Namespace) -> bool:
    """Whether this run is to write nothing down, whatever the settings say."""
    return bool(args.private) or bool(os.environ.get("SPECCHAT_NO_HISTORY"))


def kept_in(args: Namespace) -> Path | None:
    """The store that this run keeps chats in; None for --private, SPECCHAT_NO_HISTORY and history.enabled = false."""
    if is_private(args):
        return None
    return history_path() if args.chosen.settings.history.enabled else None
