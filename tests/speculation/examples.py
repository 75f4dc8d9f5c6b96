"""How many examples a property is tried on."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 100  # of hypothesis itself


def examples(n: int) -> settings:
    """For a property that wants n examples where others have the usual number; the profile scales both."""
    return settings(max_examples=max(1, n * settings().max_examples // _USUAL))
