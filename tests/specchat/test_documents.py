"""Variables, keys, exit codes and command lines: what the documents say exists, and what exists they say."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from specchat.cli import parsed
from specchat.errors import UsageError
from specchat.exit_codes import ExitCode
from specchat.manual import page
from specchat.parser import parser
from specchat.settings.endpoints import ENDPOINT_KEYS
from specchat.settings.keys import ANY, KEYS
from specchat.settings.text import SettingsText, dotted
from specchat.settings.variables import OTHERS, SETTINGS, variables
from specchat.surface import surface
from tests.specchat.roff import between, plain

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROSE = FENCED.sub("", README)


def test_every_variable_that_the_code_reads_is_documented() -> None:
    assert _read_by_us() - {variable.name for variable in variables()} == set()


def test_variables_are_found_in_the_code_however_it_asks_for_them() -> None:
    assert {"SPECCHAT_MODELS_DIR", "SPECCHAT_LOG", "SPECCHAT_NO_HISTORY", "VISUAL", "HF_HOME"} <= _read_by_us()


def test_every_documented_variable_is_read() -> None:
    theirs = {variable.name for variable in OTHERS} - _read_by_us()

    assert {name for name in theirs if name.startswith("SPECCHAT_")} == set()
    assert theirs - _named_by("huggingface-hub", "platformdirs", "rich", "textual", "pip") == set()


def test_every_variable_is_documented_once_and_in_the_man_page() -> None:
    names = [variable.name for variable in variables()]

    assert len(names) == len(set(names))
    assert [name for name in names if name not in plain(page())] == []
    assert [variable.name for variable in variables() if not variable.meaning or not variable.read_by] == []


def test_every_variable_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"\b(?:SPECCHAT|HF)_[A-Z_]+\b", README))

    assert named - {variable.name for variable in variables()} == set()


def test_the_man_page_lists_every_key_of_the_settings_and_no_other() -> None:
    settings = between(page(), ".SH SETTINGS", ".SH")
    wanted = {dotted(tuple("NAME" if part == ANY else part for part in place)) for place in KEYS}

    assert {plain(key) for key in re.findall(r"^\.TP\n\\fB(.*?)\\fR", settings, re.MULTILINE)} == wanted | {
        f"endpoints.NAME.{key}" for key in ENDPOINT_KEYS
    }
    assert [name for name in SETTINGS if name not in plain(settings)] == []


def test_every_key_that_the_readme_names_exists() -> None:
    tables = sorted({place[0] for place in KEYS if len(place) > 1})
    named = set(re.findall(rf"`((?:{'|'.join(tables)})\.\w+)(?: = [^`]*)?`", README))

    assert named - {dotted(place) for place in KEYS} == set()


def test_settings_that_the_readme_shows_are_right() -> None:
    for text in (text for language, text in FENCED.findall(README) if language == "toml"):
        read = SettingsText.read(Path("README.md"), text)
        assert not read.wrong
        assert not read.warnings()


# ---- exit codes


def test_the_readme_lists_the_exit_codes_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", between(README, "## Exit codes", "\n## "), re.MULTILINE)

    assert [(int(code), text.replace("`", "")) for code, text in rows] == [
        (int(each), each.meaning) for each in ExitCode
    ]


def test_no_error_has_an_exit_code_that_is_not_listed() -> None:
    codes = [
        (path.name, node.value.value)
        for path, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and any(isinstance(target, ast.Name) and target.id == "exit_code" for target in _targets(node))
    ]

    assert [code for code in codes if code[1] not in list(ExitCode)] == []


# ---- command lines of the README


def _command_lines() -> Iterator[str]:
    for _, block in FENCED.findall(README):
        yield from (line for line in block.splitlines() if re.search(r"(^|\| )(specchat|make)( |$)", line))
    yield from (code for code in re.findall(r"`([^`\n]+)`", PROSE) if re.match(r"(specchat|make) ", code))


@pytest.mark.parametrize("line", sorted(set(_command_lines())))
def test_a_command_line_of_the_readme_is_understood(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in _commands(line):
        if words[0] == "make":
            assert re.search(rf"^{re.escape(words[1])}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif words[0] == "specchat":
            assert _complaint(words[1:], capsys) == ""


def test_wrong_command_lines_would_be_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum("specchat" in line for line in _command_lines()) > 20
    assert _commands('a "b > c" | specchat ask -q > file  # note') == [["a", "b > c"], ["specchat", "ask", "-q"]]
    for wrong in ("aks", "ask --nope", "chats shwo 1", "bench --repeat many", "rewrite a b --eol mac"):
        assert _complaint(wrong.split(), capsys)


def test_every_option_that_the_readme_names_exists() -> None:
    known = {flag for each in surface(parser()) for option in each.options for flag in option.flags}
    named = {code.split()[0].split("=")[0] for code in re.findall(r"`(--?[A-Za-z][^`\n]*)`", PROSE)}

    assert named - known == set()


def _complaint(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the parser has against words; nothing against those that ask for help."""
    try:
        parsed(words)
    except UsageError as error:
        return str(error)
    except SystemExit as end:  # with 0 after --help and --version
        return capsys.readouterr().err if end.code else ""
    return ""


def _commands(line: str) -> list[list[str]]:
    """The commands of a line of a shell, without what goes into files."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.commenters, lexer.whitespace_split = "#", True
    found: list[list[str]] = [[]]
    is_file = False
    for word in lexer:
        if word in ("<", ">", ">>"):
            is_file = True
        elif set(word) <= set("|&;"):
            found.append([])
        elif is_file:
            is_file = False
        else:
            found[-1].append(word)
    return [words for words in found if words]


# ---- reading code


@cache
def _trees() -> tuple[tuple[Path, ast.Module], ...]:
    paths = [path for folder in ("app", "speculation") for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple((path, ast.parse(path.read_text())) for path in paths)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


@cache
def _read_by_us() -> set[str]:
    """Names that are looked up in an environment, and words that are names of ours, but for the table of them."""
    found: set[str] = set(SETTINGS)
    for path, tree in _trees():
        names = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            key: ast.expr | None = None
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_environment(node.value):
                key = node.slice
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                is_asked = node.func.attr in ("get", "getenv")
                key = node.args[0] if is_asked and _is_environment(node.func.value) else None
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
                key = node.left if _is_environment(node.comparators[0]) else None
            elif isinstance(node, ast.Constant) and path.name != "variables.py":
                key = node if re.fullmatch("SPECCHAT_[A-Z_]*[A-Z]", str(node.value)) else None
            if isinstance(key, ast.Constant):
                found.add(str(key.value))
            elif isinstance(key, ast.Name) and key.id in names:
                found.add(str(names[key.id]))
    return found


def _is_environment(node: ast.expr) -> bool:
    return ast.unparse(node).endswith(("environ", "environment")) or ast.unparse(node) == "os"


@cache
def _named_by(*packages: str) -> set[str]:
    """Words in capitals in the code of packages, and names that two of them put together from parts."""
    found = {"PIP_INDEX_URL", "HTTPS_PROXY"}
    for package in packages:
        for file in metadata.files(package) or ():
            if file.suffix == ".py":
                found.update(re.findall(r"\b[A-Z][A-Z_]{3,}\b", file.read_text(encoding="utf-8")))
    return found
