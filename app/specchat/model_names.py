"""What the name of a model means, which nothing has to be read for."""

from __future__ import annotations

import os

PREFIX = "hf:"  # of names of models of the hub


def is_spec(name: str) -> bool:
    """Whether a name means a model of the hub."""
    return name.startswith(PREFIX)


def is_path(name: str) -> bool:
    """Whether a name means a file rather than a model that is known or on the hub."""
    return not is_spec(name) and (name.endswith(".gguf") or "/" in name or os.sep in name)
