"""The app is put together from classes that know nothing of each other's private names."""

from __future__ import annotations

from collections import Counter
from inspect import isfunction

from textual.app import App

from specchat.tui.app import SpecchatApp

OURS = [part for part in SpecchatApp.__mro__ if part.__module__.startswith("specchat.")]
METHODS = [
    name
    for part in OURS
    for name, value in vars(part).items()
    if (isfunction(value) or isinstance(value, property)) and not name.startswith("__")
]


def test_no_method_of_the_app_hides_that_of_another_part() -> None:
    assert len(OURS) > 5
    assert [name for name, times in Counter(METHODS).items() if times > 1] == []


def test_no_private_method_of_the_app_hides_one_of_textual_but_the_report_of_faults() -> None:
    of_textual = {name for part in App.__mro__ for name in vars(part)}
    assert {name for name in METHODS if name.startswith("_") and name in of_textual} == {"_fatal_error"}
