"""Stamps a version on the tree: `python packaging/release.py 0.2.0`.

It stands in one place, from where pyproject.toml, the program and the folder build read it, and in the changelog as
the heading of what was unreleased. The recipes of other package managers are made from the published archive:
packaging/recipes.py.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}")
SOURCE = Path("app/specchat/__init__.py")
CHANGES = Path("CHANGELOG.md")


class CannotStamp(ValueError):
    """A version or a file that is not as it has to be."""


def stamp(tree: Path, version: str, today: date) -> None:
    """Gives a tree a version; a second time with the same one changes nothing. Raises CannotStamp."""
    if not VERSION.fullmatch(version):
        raise CannotStamp(f"{version} is not a version like 1.2.3")
    source, changes = (tree / SOURCE).read_text("utf-8"), (tree / CHANGES).read_text("utf-8")
    new = _with(source, r'^__version__ = ".*"$', f'__version__ = "{version}"', SOURCE)
    if f"## [{version}]" not in changes:
        heading = f"## [Unreleased]\n\n## [{version}] - {today.isoformat()}"
        changes = _with(changes, r"^## \[Unreleased\]$", heading, CHANGES)
    (tree / SOURCE).write_text(new, "utf-8")
    (tree / CHANGES).write_text(changes, "utf-8")


def _with(text: str, pattern: str, line: str, name: Path) -> str:
    new, found = re.subn(pattern, lambda _: line, text, flags=re.MULTILINE)
    if found != 1:
        raise CannotStamp(f"{name} has {found} lines like {pattern}, and must have one")
    return new


def main() -> None:
    """Stamps this tree."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("version")
    stamp(ROOT, options.parse_args().version, datetime.now(UTC).date())


if __name__ == "__main__":
    main()
