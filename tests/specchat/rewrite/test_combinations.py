"""Any flags together, on any file: no traceback, no file of which nobody knows where it comes from."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.specchat.rewrite.files import files
from tests.specchat.rewrite.scripted import COPY, edited
from tests.specchat.rewrite.shell import Shell

CODES = {0, 1, 2, 3, 5, 7}
MODES = [["-w"], ["-D"], ["-O"], ["--check"], ["-n"]]
ASKED = st.lists(
    st.sampled_from(
        [
            ["--lines", "2:3"],
            ["--lines", ":"],
            ["--between", "^", "x"],
            ["--match", r"\S\r?$"],
            ["--match", "^$"],
            ["--max-change", "0"],
            ["--keep", "numbers,urls,quotes,headings"],
            ["--protect", "(?s)a.*b"],
            ["--protect", "^"],
            ["--strict"],
            ["--force"],
            ["--json"],
            ["--format", "side"],
            ["--format", "json"],
            ["--chunk", "never"],
            ["--no-backup"],
            ["--continue"],
            ["--encoding", "latin-1"],
            ["--encoding", "utf-16"],
            ["-r", "translate", "-p", "to={from} {{to}}"],
        ]
    ),
    max_size=3,
    unique_by=lambda flags: "part" if flags[0] in ("--lines", "--between", "--match") else flags[0],
)
ENDS = st.lists(
    st.sampled_from([["--eol", "crlf"], ["--eol", "lf"], ["--final-newline", "yes"], ["--final-newline", "no"]]),
    max_size=2,
    unique_by=lambda flags: flags[0],
)


def words(flags: list[list[str]]) -> list[str]:
    return [word for each in flags for word in each]


@given(data=files(), mode=st.sampled_from(MODES), asked=ASKED, ends=ENDS, edits=st.booleans())
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_flags_together_end_with_a_code_that_is_documented_and_change_only_what_they_may(
    shell: Shell, data: bytes, mode: list[str], asked: list[list[str]], ends: list[list[str]], edits: bool
) -> None:
    shell.model.script = edited(lambda text: re.sub("[aeiou]", "y", text, count=3)) if edits else COPY
    path = Path("a.txt")
    path.write_bytes(data)

    done = shell("rewrite", "a.txt", "do it", *mode, *words(asked), *words(ends))

    assert done.code in CODES, done.err
    assert "Traceback" not in done.err
    if mode != ["-w"] or done.code not in (0, 8):
        assert path.read_bytes() == data
    if mode == ["-w"] and not edits and not ends:
        assert path.read_bytes() == data
    assert [each.name for each in Path().iterdir()] == ["a.txt"]
