"""Makes the Homebrew formula and the AUR recipe of a published version: `python packaging/recipes.py 0.2.0 dist`.

Addresses and checksums come from pip, which is asked what it would install. The templates beside this script hold
neither, so that none can be out of date.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Compiled where they are installed. Wheels that hold no machine code are taken as they are.
FROM_SOURCE = ("llama-cpp-python", "markupsafe", "pyyaml", "specchat")
# numpy is a formula of its own; hf-xet is a way to download that specchat turns off, and needs a Rust compiler.
NOT_IN_FORMULA = ("numpy", "hf-xet", "specchat")


class CannotMake(ValueError):
    """What pip said cannot go into a recipe."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A file of the package index."""

    name: str
    version: str
    url: str
    sha256: str
    homepage: str | None


def archives(report: Mapping[str, Any]) -> dict[str, Archive]:
    """What pip's installation report names, by name. Raises CannotMake."""
    found = {}
    for each in report["install"]:
        name = str(each["metadata"]["name"]).lower().replace("_", "-")
        download = each["download_info"]
        if not download["url"].startswith("https://"):
            raise CannotMake(f"pip takes {name} from this machine ({download['url']}); try PIP_CONFIG_FILE=/dev/null")
        version = str(each["metadata"]["version"])
        named = (text.partition(", ") for text in each["metadata"].get("project_url", ()))
        homepage = next((url for label, _, url in named if label.lower() == "homepage"), None)
        found[name] = Archive(name, version, download["url"], download["archive_info"]["hashes"]["sha256"], homepage)
    return found


def formula(template: str, found: Mapping[str, Archive]) -> str:
    """The Homebrew formula."""
    parts = sorted(found.keys() - set(NOT_IN_FORMULA))
    for name in parts:
        if not found[name].url.endswith((".tar.gz", "-none-any.whl")):
            raise CannotMake(f"{name} comes as {found[name].url}, which holds machine code; add it to FROM_SOURCE")
    return _filled(template, {**_own(found), "  # @RESOURCES@": "\n\n".join(_resource(found[name]) for name in parts)})


def aur(template: str, found: Mapping[str, Archive]) -> str:
    """The PKGBUILD or the .SRCINFO."""
    return _filled(template, _own(found))


def _own(found: Mapping[str, Archive]) -> dict[str, str]:
    own = found["specchat"]
    if own.homepage is None:
        raise CannotMake("specchat has no homepage: both want one; add it to [project.urls] of pyproject.toml")
    return {"@VERSION@": own.version, "@URL@": own.url, "@SHA256@": own.sha256, "@HOMEPAGE@": own.homepage}


def _resource(part: Archive) -> str:
    return f'  resource "{part.name}" do\n    url "{part.url}"\n    sha256 "{part.sha256}"\n  end'


def _filled(template: str, values: Mapping[str, str]) -> str:
    lines = (line for line in template.splitlines(keepends=True) if not line.startswith("# A template: "))
    text = "".join(lines)
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


def ask_pip(version: str) -> Mapping[str, Any]:
    """What pip would install for a version, compiled packages as source. Raises CalledProcessError."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report=-"]
    command += [f"--no-binary={','.join(FROM_SOURCE)}", f"specchat=={version}"]
    answer: Mapping[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return answer


def main() -> None:
    """Writes the recipes and says where."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("version")
    options.add_argument("out", type=Path)
    args = options.parse_args()
    found = archives(ask_pip(args.version))
    for path, fill in (("homebrew/specchat.rb", formula), ("aur/PKGBUILD", aur), ("aur/.SRCINFO", aur)):
        target: Path = args.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(fill((HERE / path).read_text("utf-8"), found), "utf-8")
        print(target)


if __name__ == "__main__":
    main()
