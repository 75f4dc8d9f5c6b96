"""Completion, as shells do it: commands, options, their values, files, and models that the program itself names."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.catalogue_file import catalogue_path, load_catalogue
from specchat.cli import main
from specchat.completion import script
from tests.gguf import tiny

NAMES = "specchat models list --names"
CASES = [
    ("specchat mod", {"models"}),
    ("specchat models pu", {"pull"}),
    ("specchat models list --na", {"--names"}),
    ("specchat ask --guess-m", {"--guess-max"}),
    ("specchat ask -g dr", {"draft"}),
    ("specchat rewrite --eol cr", {"crlf"}),
    ("specchat rewrite -r proofr", {"proofread"}),
    ("specchat paths unfin", {"unfinished"}),
    ("specchat completion z", {"zsh"}),
    ("specchat chats show --he", {"--help"}),
    ("specchat rewrite notes.md mine.t", {"mine.txt"}),
    ("specchat -m alp", {"alpha-1b", "alpha-7b"}),
    ("specchat ask --draft alpha-7", {"alpha-7b"}),
    ("specchat models info bet", {"beta"}),
    ("specchat models rm alpha-1b bet", {"beta"}),
    ("specchat -m mine.g", {"mine.gguf"}),
    ("specchat -m beta as", {"ask"}),
    ("specchat rewrite note", {"notes.md"}),
    ("specchat ask -f note", {"notes.md"}),
    ("specchat bench --csv sub/res", {"sub/results.csv"}),
]
ZSH = """
zmodload zsh/zpty
for line in "$@"; do
  zpty child zsh -f -i
  zpty -w child "PROMPT= RPROMPT= TERM=dumb; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D
    eval \\"\\$SCRIPT\\"; bindkey '^X' beginning-of-line; print -r -- begin-\\$((40 + 2))"
  while zpty -r child out; do [[ $out == *begin-42* ]] && break; done
  zpty -w -n child "$line"$'\\t\\C-x'"print -r -- 'end-"$'\\C-e'"'"$'\\n'
  while zpty -r child out; do [[ $out == end-* ]] && break; done
  out=${out//[$'\\r\\n']/}
  print -r -- "${${out#end-}% }"
  zpty -d child
done
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with files, and a program that answers only for the names of models."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "specchat"
    program.write_text(f'#!/bin/sh\n[ "specchat $*" = "{NAMES}" ] && printf "alpha-1b\\nalpha-7b\\nbeta\\n"\n')
    program.chmod(0o755)
    (tmp_path / "sub").mkdir()
    for name in ("notes.md", "mine.gguf", "mine.txt", "sub/results.csv"):
        (tmp_path / name).touch()
    return tmp_path


def said(here: Path, *command: str) -> list[str]:
    environ = {
        "PATH": f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(here),
        "SCRIPT": script(command[0]),
    }
    return subprocess.run(
        command,
        cwd=here,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_has_nothing_against_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    (tmp_path / "script").write_text(script(shell))
    checked = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True, check=False)

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_bash_completes(line: str, wanted: set[str], here: Path) -> None:
    words = " ".join(shlex.quote(word) for word in line.split(" "))
    found = said(here, "bash", "-c", f'''
        eval "$SCRIPT"
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        $(complete -p specchat | sed "s/.*-F \\([^ ]*\\) .*/\\1/")
        printf "%s\\n" "${{COMPREPLY[@]}}"
    ''')  # fmt: skip

    assert set(found) == wanted


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_fish_completes(here: Path) -> None:
    marks = "\n".join(f"echo line {at}; complete -C {shlex.quote(line)}" for at, (line, _) in enumerate(CASES))
    found: list[set[str]] = []
    for row in said(here, "fish", "--no-config", "-c", f"echo $SCRIPT | source\n{marks}"):
        if row.startswith("line "):
            found.append(set())
        else:
            found[-1].add(row.split("\t")[0])

    assert found == [wanted for _, wanted in CASES]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not here")
def test_zsh_completes(here: Path) -> None:
    certain = [(line, wanted) for line, wanted in CASES if len(wanted) == 1]
    found = said(here, "zsh", "-f", "-c", ZSH, "zsh", *(line for line, _ in certain))

    assert found == [" ".join([*line.split(" ")[:-1], *wanted]) for line, wanted in certain]


def test_the_names_of_models_are_printed_one_a_line_those_of_the_user_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("CONFIG", "STATE_DIR", "CACHE_DIR", "MODELS_DIR"):
        monkeypatch.setenv(f"SPECCHAT_{name}", str(tmp_path / name.lower()))
    monkeypatch.delenv("SPECCHAT_CATALOGUE", raising=False)
    assert main(["models", "add", str(tiny.write_attention(tmp_path / "tiny.gguf")), "--alias", "mine"]) == 0
    capsys.readouterr()

    assert main(NAMES.split()[1:]) == 0

    told = capsys.readouterr()
    shipped = [model.id for model in load_catalogue(catalogue_path()).offered(lambda _: False)]
    assert told.out == "\n".join(["mine", *shipped]) + "\n"
    assert told.err == ""


def test_shells_wait_for_neither_engine_nor_numpy() -> None:
    code = "import sys, specchat.cli, specchat.listed_names; print(*{'numpy', 'llama_cpp', 'rich'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout

    assert loaded == "\n"


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    assert capsys.readouterr().out == script("fish") + "\n"


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["completion", "tcsh"])

    assert end.value.code == 2
    assert "bash" in capsys.readouterr().err
