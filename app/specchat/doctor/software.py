"""Python, the packages that specchat stands on, and its settings."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata

from specchat import __version__
from specchat.doctor.finding import Finding, note, ok, problem
from specchat.doctor.installation import ENGINE, Installation, Installer

LEAST_PYTHON = (3, 11)


def requirements() -> Sequence[str]:
    """What specchat asks for, as its package says; nothing where it runs from a folder."""
    try:
        return metadata.requires("specchat") or []
    except metadata.PackageNotFoundError:
        return []


def version_of(package: str) -> str | None:
    """The installed version of a package; None where it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def engine_pin(asked: Sequence[str]) -> str:
    """The version of the engine that specchat is made for; "" where that is not known."""
    return _pins(asked).get(ENGINE) or version_of(ENGINE) or ""


def check_python(here: Installation) -> Finding:
    """Which specchat runs in which Python."""
    said = f"specchat {__version__} ({here.installer}), Python {platform.python_version()}, {platform.system()}"
    values = {"specchat": __version__, "python": platform.python_version(), "installer": str(here.installer)}
    if sys.version_info < LEAST_PYTHON:
        return problem("python", said, "specchat needs Python 3.11 or newer", **values)
    return ok("python", said, **values)


def check_packages(
    asked: Sequence[str], here: Installation, installed: Callable[[str], str | None] = version_of
) -> Iterator[Finding]:
    """The versions of what specchat asks for; those that are missing or not the ones that it was made for."""
    if not asked:
        if here.installer is not Installer.STAND_ALONE:
            yield note("packages", "specchat runs from a folder, so nobody has looked at its packages")
        return
    pins = _pins(asked)
    found = {name: installed(name) for name in pins}
    missing = [name for name, version in found.items() if version is None]
    others = [name for name, version in found.items() if version and pins[name] and version != pins[name]]
    if missing:
        yield problem("packages", f"missing: {', '.join(missing)}", "install specchat anew")
    for name in others:
        said = f"{name} is {found[name]}; this specchat is made for {pins[name]}"
        yield problem("packages", said, "install specchat anew")
    if not missing and not others:
        listed = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
        yield ok("packages", listed, **{name: version for name, version in sorted(found.items())})


def _pins(asked: Sequence[str]) -> Mapping[str, str]:
    """Each package by name, with the one version that is asked for where there is only one."""
    pins = {}
    for requirement in asked:
        name, _, condition = requirement.partition(";")
        if "extra" in condition:
            continue
        found = re.match(r"\s*([A-Za-z0-9._-]+?)\s*(?:==([\w.]+))?\s*(?:[<>=!~(\[].*)?$", name)
        if found is not None:
            pins[found[1].lower()] = found[2] or ""
    return pins
