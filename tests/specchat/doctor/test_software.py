"""Python and packages, from what a package says that it asks for."""

from __future__ import annotations

from specchat.doctor.finding import Finding, Verdict
from specchat.doctor.installation import Installation, Installer
from specchat.doctor.software import check_packages, engine_pin

ASKED = [
    "llama-cpp-python==0.3.36",
    "rich<16,>=14.2",
    "numpy<3,>=1.26 ; python_version > '3'",
    "odd[x]>=1; extra == 'x'",
]
HERE = Installation(Installer.PIP, "python", "linux")


def look(installed: dict[str, str], asked: list[str] = ASKED, here: Installation = HERE) -> list[Finding]:
    return list(check_packages(asked, here, installed.get))


def test_packages_that_fit_are_listed_with_their_versions_and_extras_are_not_asked_for() -> None:
    (finding,) = look({"llama-cpp-python": "0.3.36", "rich": "15.0.0", "numpy": "2.0"})

    assert finding.verdict is Verdict.OK
    assert finding.said == "llama-cpp-python 0.3.36, numpy 2.0, rich 15.0.0"


def test_a_missing_package_and_another_version_of_a_pinned_one_are_problems() -> None:
    missing, other = look({"llama-cpp-python": "0.3.1", "rich": "1.0"})

    assert (missing.verdict, missing.said) == (Verdict.PROBLEM, "missing: numpy")
    assert other.said == "llama-cpp-python is 0.3.1; this specchat is made for 0.3.36"


def test_a_folder_says_nothing_of_packages_and_a_stand_alone_build_needs_none() -> None:
    (finding,) = look({}, [])

    assert finding.verdict is Verdict.NOTE
    assert look({}, [], Installation(Installer.STAND_ALONE, "specchat", "linux")) == []


def test_the_engine_that_is_asked_for_is_the_pinned_one() -> None:
    assert engine_pin(ASKED) == "0.3.36"
